import { fieldsOf, isObject } from "../../../wire/json.ts";
import { tasksExtension } from "../../../wire/revisions.ts";
import type { ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";
import type { Callable } from "../callables.ts";
import type { Facts } from "../facts.ts";
import { failureOf } from "../failure.ts";
import { likelySlowFirst } from "../likely-slow.ts";
import type { Probe } from "../probe.ts";

/** What one call of a tool looked like to a host without tasks. */
export interface Observation {
  readonly isNamed: boolean;
  /** Until its answer, or until nobody looked any more. */
  readonly elapsedMs: number;
  readonly isFinished: boolean;
  /** It was refused or failed, so it says nothing about how long it takes. */
  readonly isFailed: boolean;
  /** How many notifications came, and the longest silence from the call's begin to its end. */
  readonly progress: number;
  readonly silenceMs: number;
  /** Asked by a client with the tasks of 2026-07-28, it answered with a task. */
  readonly givesTask: boolean;
}

const maxTools = 8;
const slowMs = 3_000;

/** A call of this length is one that hosts may cut when there is more to do. */
export function isSlow({ elapsedMs, isFinished, isFailed }: Observation): boolean {
  return !isFailed && (!isFinished || elapsedMs >= slowMs);
}

/** Whether the server declares the tasks of 2026-07-28. */
export function declaresTasks({ modern }: Pick<Facts, "modern">): boolean {
  return isObject(fieldsOf(modern?.capabilities.extensions)[tasksExtension]);
}

/** Calls the tools that may be called, all at the same time, and watches them for as long as it takes to know. */
export async function observeTools(probe: Probe): Promise<ReadonlyMap<string, Observation>> {
  const chosen = likelySlowFirst(probe.callables).slice(0, maxTools);
  if (chosen.length === 0) return new Map();
  const session = await probe.open({ capabilities: {} });
  const seen = await Promise.all(
    chosen.map((callable, at) => observe(probe, session, { callable, token: `meanwhile-diagnose-${at}` })),
  );
  const observed = new Map(chosen.map(({ tool }, at) => [tool.name, seen[at] as Observation]));
  return await withTasks(probe, chosen, observed);
}

async function observe(
  probe: Probe,
  session: ProbeSession,
  { callable, token }: { callable: Callable; token: string },
): Promise<Observation> {
  const { clock } = probe;
  const startedAt = clock.monotonic();
  const timeoutMs = probe.isFull ? 35_000 : 12_000;
  const { id, answer } = session.start(
    "tools/call",
    { name: callable.tool.name, arguments: callable.arguments },
    { timeoutMs, meta: { progressToken: token } },
  );
  const marks = () => session.heard.filter(({ message }) => isProgress(message, token)).map(({ at }) => at);
  const enough = Promise.withResolvers<undefined>();
  // Slow, and heard from twice: more is not needed to foretell.
  const watch = () =>
    clock.monotonic() - startedAt >= slowMs && marks().length >= 2 ? enough.resolve(undefined) : undefined;
  const stopWatching = every(probe, 250, watch);
  const given = await Promise.race([answer, enough.promise]);
  stopWatching();
  const isFinished = given?.message !== undefined;
  if (!isFinished)
    void session
      .notify("notifications/cancelled", { requestId: id, reason: "Enough was seen." })
      .catch(() => undefined);
  const endedAt = clock.monotonic();
  const points = [startedAt, ...marks(), endedAt];
  return {
    isNamed: callable.isNamed,
    elapsedMs: endedAt - startedAt,
    isFinished,
    isFailed: given !== undefined && isFailure(given),
    progress: points.length - 2,
    silenceMs: Math.max(...points.slice(1).map((at, before) => at - (points[before] ?? at))),
    givesTask: false,
  };
}

/**
 * Asks the slow ones, and those that want a task, once more as a client that takes tasks, where the server declares
 * them.
 */
async function withTasks(
  probe: Probe,
  chosen: readonly Callable[],
  observed: ReadonlyMap<string, Observation>,
): Promise<ReadonlyMap<string, Observation>> {
  const slow = chosen.filter(({ tool }) => {
    const seen = observed.get(tool.name) as Observation;
    return isSlow(seen) || (seen.isFailed && tool.taskSupport === "required");
  });
  if (slow.length === 0 || !declaresTasks(probe.facts)) return observed;
  const session = await probe.open();
  const given = await Promise.all(
    slow.map(async ({ tool, arguments: args }) => {
      const { result } = await session.request(
        "tools/call",
        { name: tool.name, arguments: args },
        { timeoutMs: 2_000 },
      );
      const isTask = result?.resultType === "task";
      if (isTask) await session.request("tasks/cancel", { taskId: result.taskId }, { timeoutMs: 500 });
      return [tool.name, isTask] as const;
    }),
  );
  const tasks = new Map(given);
  return new Map([...observed].map(([name, seen]) => [name, { ...seen, givesTask: tasks.get(name) === true }]));
}

function isProgress({ method, params }: Readonly<Record<string, unknown>>, token: string): boolean {
  return method === "notifications/progress" && fieldsOf(params).progressToken === token;
}

/**
 * An error, a text that tells of one, or no way to an answer at all: whatever it is, it is quick only because nothing
 * was done.
 */
function isFailure(answer: ProbeAnswer): boolean {
  const { problem, message } = answer;
  if (message === undefined) return problem !== undefined && !problem.startsWith("no answer within");
  return failureOf(answer) !== undefined;
}

function every({ clock }: Probe, ms: number, callback: () => void): () => void {
  let stop = clock.after(ms, tick);
  function tick() {
    callback();
    stop = clock.after(ms, tick);
  }
  return () => stop();
}
