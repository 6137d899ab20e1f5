import { sleep, systemClock } from "../clock.ts";
import { type Relay, ServerGone } from "../command/foreign.ts";
import { CommandError, ProtocolError, RpcCode, ShuttingDown } from "../errors.ts";
import type { GuestClient } from "../mcp/guest-client.ts";
import type { GuestEra } from "../mcp/guest-host.ts";
import { fieldsOf, type Json, textOf } from "../wire/json.ts";
import { ConnectionError, cut } from "../wire/peer-errors.ts";
import { tasksExtension } from "../wire/revisions.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";
import type { SessionMark } from "./upstream-link.ts";

/** A task that an upstream keeps itself. */
export interface UpstreamTask {
  readonly era: GuestEra;
  readonly taskId: string;
  /** In which it was begun: servers before 2026-07-28 know it nowhere else. */
  readonly session?: SessionMark;
  readonly pollMs?: number;
  /** How long its result is kept; one that is short is fetched the sooner. */
  readonly ttlMs?: number;
}

interface Follower {
  readonly relay: Relay;
  readonly client: GuestClient;
  /** In a sentence. */
  readonly upstream: string;
}

const defaultPollMs = 1_000;
const minPollMs = 100;
const maxPollMs = 5_000;
/** A lost connection, or one that answers with its own trouble, is asked again for so long. */
const maxFailures = 10;

const taskCapabilities = {
  extensions: { [tasksExtension]: {} },
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: {},
};

/** Follows a task of 2026-07-28 to its end: everything is in what `tasks/get` says. */
export async function followModern(
  connection: UpstreamConnection,
  task: UpstreamTask,
  follower: Follower,
): Promise<Json> {
  const { relay } = follower;
  const { taskId } = task;
  const release = connection.hold();
  const cancel = () => {
    if (isToStop(relay))
      connection.request("tasks/cancel", { taskId }, { capabilities: taskCapabilities }).catch(() => undefined);
  };
  relay.signal.addEventListener("abort", cancel, { once: true });
  const answered = new Set<string>();
  try {
    for (;;) {
      relay.signal.throwIfAborted();
      const state = await look(connection, task, follower);
      const { status, statusMessage } = state;
      if (status === "completed") return fieldsOf(state.result);
      if (status === "failed") throw toFailure(state, follower);
      if (status === "cancelled") throw new CommandError(`The upstream ${follower.upstream} has cancelled its task.`);
      if (typeof statusMessage === "string") relay.progress({ message: statusMessage });
      if (status === "input_required") await answerAsked(connection, taskId, state, { relay, answered });
      await sleep(systemClock, pauseFor(task), relay.signal);
    }
  } finally {
    relay.signal.removeEventListener("abort", cancel);
    release();
  }
}

/** Follows a task of 2025-11-25: `tasks/result` waits for its end, and asks on its way. */
export async function followLegacy(
  connection: UpstreamConnection,
  task: UpstreamTask,
  follower: Follower,
): Promise<Json> {
  const { relay, client } = follower;
  const { taskId } = task;
  const { session } = task.session?.session === connection.session?.session ? {} : task;
  const cancel = () => {
    if (isToStop(relay)) connection.request("tasks/cancel", { taskId }, { session }).catch(() => undefined);
  };
  relay.signal.addEventListener("abort", cancel, { once: true });
  const over = new AbortController();
  const told = connection.onTaskStatus;
  connection.onTaskStatus = (params) => {
    told?.(params);
    const { statusMessage } = params;
    if (params.taskId === taskId && typeof statusMessage === "string") relay.progress({ message: statusMessage });
  };
  try {
    return await connection.request("tasks/result", { taskId }, { client, session });
  } catch (error) {
    throw relay.signal.aborted ? relay.signal.reason : toDoubt(error, follower);
  } finally {
    over.abort();
    connection.onTaskStatus = told;
    relay.signal.removeEventListener("abort", cancel);
  }
}

/** Who only has to leave comes back to it. */
const isToStop = ({ signal }: Relay) => !(signal.reason instanceof ShuttingDown);

/** Looks until it is told something; who cannot be reached now may be reached later. */
async function look(connection: UpstreamConnection, task: UpstreamTask, follower: Follower): Promise<Json> {
  for (let failures = 1; ; failures++) {
    try {
      const options = { capabilities: taskCapabilities, client: follower.client };
      return await connection.request("tasks/get", { taskId: task.taskId }, options);
    } catch (error) {
      follower.relay.signal.throwIfAborted();
      const isPassing = error instanceof ConnectionError && error.isPassing && connection.why === undefined;
      if (!isPassing || failures === maxFailures) throw toDoubt(error, follower);
      await sleep(systemClock, maxPollMs, follower.relay.signal);
    }
  }
}

/** Who no longer knows its own task cannot say what became of it. */
function toDoubt(error: unknown, { upstream }: Follower): unknown {
  const isForgotten = error instanceof ConnectionError && error.status === 404;
  if (isForgotten || (error instanceof ProtocolError && error.code === RpcCode.Params))
    return new ServerGone(upstream, `The upstream ${upstream} no longer knows the task that it had begun.`);
  return error;
}

function toFailure(state: Json, { upstream }: Follower): Error {
  const { code, message, data } = fieldsOf(state.error);
  if (typeof code === "number") return new ProtocolError(code, textOf(message) ?? "The task failed.", data);
  return new CommandError(
    `The task of the upstream ${upstream} failed. ${cut(textOf(state.statusMessage) ?? "")}`.trim(),
  );
}

interface Answering {
  readonly relay: Relay;
  /** Keys that were answered; each is asked once over a task's life. */
  readonly answered: Set<string>;
}

async function answerAsked(
  connection: UpstreamConnection,
  taskId: string,
  state: Json,
  { relay, answered }: Answering,
): Promise<void> {
  const open = Object.entries(fieldsOf(state.inputRequests)).filter(([key]) => !answered.has(key));
  const asked = open.map(async ([key, request]) => {
    const { method, params } = fieldsOf(request);
    const answer = await relay.ask({ method: textOf(method) ?? "", params: fieldsOf(params) }, { key });
    answered.add(key);
    return [key, answer] as const;
  });
  if (asked.length === 0) return;
  const inputResponses = Object.fromEntries(await Promise.all(asked));
  await connection.request("tasks/update", { taskId, inputResponses }, { capabilities: taskCapabilities });
}

function pauseFor({ pollMs = defaultPollMs, ttlMs }: UpstreamTask): number {
  const soon = ttlMs === undefined ? maxPollMs : ttlMs / 3;
  return Math.max(minPollMs, Math.min(pollMs, soon, maxPollMs));
}
