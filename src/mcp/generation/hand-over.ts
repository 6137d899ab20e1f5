import type { Clock } from "../../clock.ts";
import { callerKey } from "../../command/caller.ts";
import { isForPerson } from "../../command/foreign-question.ts";
import { RequestError } from "../../errors.ts";
import type { Budget } from "../../host/budget.ts";
import type { Logger } from "../../log.ts";
import type { CallEnding } from "../../task/call-request.ts";
import { undelivered } from "../../task/call-request.ts";
import type { Engine } from "../../task/engine.ts";
import { cancelLostTask } from "../parked-calls.ts";
import { canAnswer } from "../questions.ts";
import type { ClientRequest, Result } from "../request.ts";
import { toTask2026 } from "../task-wire.ts";
import { announceJob, toJobAnswer } from "./jobs.ts";
import { noteUnlessGone } from "./note-unless-gone.ts";
import type { FollowUpTools } from "./plain.ts";

/** A client has to have read the answer that made a task before it hears of the task. */
const followGapMs = 50;

export type DeferredCall = CallEnding & { kind: "deferred" };

export interface HandOverOptions {
  readonly engine: Engine;
  readonly toolName: string;
  /** The tool is another server's. */
  readonly isForeign: boolean;
  readonly request: ClientRequest;
  readonly budget: () => Budget;
  readonly clock: Clock;
  readonly log: Logger;
  readonly isDebug: boolean;
  /** Absent when the follow-up tools are switched off. */
  readonly plain: FollowUpTools | undefined;
}

/** What a call that became a task is answered with, in its client's generation; from then on the client is told of it. */
export function handOver(deferred: DeferredCall, options: HandOverOptions): Result {
  const { as, task, isJoined, note } = deferred;
  const { request, clock, log, plain, toolName, isForeign } = options;
  const { progressToken, connection, client } = request;
  log.debug("call deferred", { tool: toolName, as, reason: task.reason });
  if (progressToken !== undefined && !isJoined) dropTokenWithClient(deferred, options);
  if (as === "job") return handOverJob(deferred, options);
  if (client.isModern && !isJoined) cancelUnlessDelivered(deferred, options);
  if (as === "task" && client.isModern)
    return {
      resultType: "task",
      ...toTask2026(task, clock.now(), (question) => canAnswer(question, client.capabilities)),
      ...(note !== undefined && { _meta: { "meanwhile/call": { note } } }),
    };
  if (as === "task" && connection.tasks2025 !== undefined) {
    const tasks = connection.tasks2025;
    const caller = callerKey(request.caller);
    clock.after(followGapMs, () => void tasks.follow(task, { caller, progressToken }));
    return tasks.toCreated(task, note);
  }
  if (plain === undefined)
    throw new RequestError(
      "busy",
      `${toolName} takes longer than this client waits, and follow-up tools are switched off.`,
    );
  askClientAlone(deferred, options);
  return plain.toHandle(task, { request, budget: options.budget(), note, mayBeRefused: isForeign });
}

/** Who has a handle answers by follow-up tools, except for what nobody but the client itself can answer. */
function askClientAlone({ task }: DeferredCall, { engine, request, log }: HandOverOptions): void {
  const { tasks2025, closed, client } = request.connection;
  const { sampling, roots } = client.capabilities;
  if (tasks2025 === undefined || (sampling === undefined && roots === undefined)) return;
  const caller = callerKey(request.caller);
  const questions = tasks2025.questions.follow(task, caller, (question) => !isForPerson(question));
  engine
    .wait(caller, task.taskId, { signal: closed, onTask: (news) => questions.look(news) })
    .catch((error: unknown) => noteUnlessGone(error, closed, log))
    .finally(() => questions.stop());
}

function handOverJob({ task, note }: DeferredCall, { engine, request, clock, log, isDebug }: HandOverOptions): Result {
  const { connection, progressToken } = request;
  const answer = toJobAnswer(task, clock, note);
  if (connection.jobs.has(task.taskId)) return answer;
  connection.jobs.add(task.taskId);
  const forget = () => void connection.jobs.delete(task.taskId);
  const facts = { engine, clock, log, isDebug, connection, caller: callerKey(request.caller), progressToken };
  clock.after(followGapMs, () => void announceJob(task, facts).finally(forget));
  return answer;
}

/** A token is its client's: on record, too, it goes with the client, while the task goes on. */
function dropTokenWithClient({ task: { taskId } }: DeferredCall, { engine, request, log }: HandOverOptions): void {
  const { connection, exchange } = request;
  const { closed } = connection;
  const caller = callerKey(request.caller);
  const drop = () => {
    engine
      .dropToken(caller, taskId)
      .catch((error: unknown) => log.debug("the token of a client that is gone could not be dropped", { error }));
  };
  if (closed.aborted || exchange?.aborted === true) return void drop();
  // For as long as the task lives: a connection may have thousands of them, one after the other.
  engine.wait(caller, taskId, { signal: closed }).catch(() => closed.aborted && drop());
}

/** A task whose id nobody received could never be found again: on 2026-07-28 there is no list. */
function cancelUnlessDelivered({ task: { taskId } }: DeferredCall, { engine, request, log }: HandOverOptions): void {
  const { exchange } = request;
  const cancel = () => cancelLostTask({ engine, caller: callerKey(request.caller), taskId, log }, undelivered);
  if (exchange?.aborted === true) cancel();
  else exchange?.addEventListener("abort", cancel, { once: true });
}
