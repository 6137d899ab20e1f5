import { type Clock, toTimestamp } from "../clock.ts";
import type { Command } from "../command/command.ts";
import { isForPerson } from "../command/foreign-question.ts";
import { ProtocolError, RpcCode } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import type { Engine } from "../task/engine.ts";
import { statusLine } from "../task/status-line.ts";
import { type EndedTask, isTerminal, openQuestions, type Task, type TaskQuestion } from "../task/task.ts";
import { outcomeOf } from "../task/task-outcome.ts";
import { metaKeys } from "../wire/request-envelope.ts";
import { toTaskInputRequest } from "./questions.ts";
import type { Result } from "./request.ts";
import { toCallResult } from "./results.ts";

/** A task in the words of both generations. What is stored is neutral; everything about the wire is here. */

/** Finds the command that a task runs, if it is still there. */
export type FindCommand = (toolName: string) => Command | undefined;

/** What it takes to tell of a task. */
export interface TaskTelling {
  /** The tasks, opened when they are first needed. */
  readonly openEngine: () => Promise<Engine>;
  readonly find: FindCommand;
  readonly clock: Clock;
  readonly isDebug: boolean;
}

const minPollMs = 500;
const maxPollMs = 5_000;
const defaultPollMs = 1_000;

/** How often a client should ask: twenty times in an expected run. */
function pollIntervalMs({ estimateMs }: Pick<Task, "estimateMs">): number {
  return estimateMs === undefined
    ? defaultPollMs
    : Math.round(Math.min(maxPollMs, Math.max(minPollMs, estimateMs / 20)));
}

/** Whether the client that is told can answer a question. */
type CanAnswer = (question: TaskQuestion) => boolean;

interface WireFacts {
  readonly taskId: string;
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
}

function factsOf(task: Task, message: string): WireFacts {
  return {
    taskId: task.taskId,
    ...(message !== "" && { statusMessage: message }),
    createdAt: toTimestamp(task.createdAt),
    lastUpdatedAt: toTimestamp(task.updatedAt),
  };
}

/** `Task` of 2025-11-25. A tool error is `failed` there, unless the server was told to spare clients that. */
export function toTask2025(task: Task, now: number, errorsAsCompleted: boolean): Record<string, unknown> {
  const isToolError =
    errorsAsCompleted && isTerminal(task) && task.status === "failed" && rpcErrorOf(task) === undefined;
  const status = task.status === "queued" ? "working" : isToolError ? "completed" : task.status;
  return { ...factsOf(task, statusLine(task, now)), status, ttl: task.ttlMs, pollInterval: pollIntervalMs(task) };
}

/** `Task` of 2026-07-28: what a client is handed instead of a result. */
export function toTask2026(task: Task, now: number, canAnswer: CanAnswer): Record<string, unknown> {
  const isUnanswerable = task.status === "input_required" && !openQuestions(task).some(canAnswer);
  const status = wireStatus(task, isUnanswerable);
  const typed = thisProgram.typed(`tasks answer ${task.taskId}`);
  const where = typed === undefined ? "it is answered in the app that runs this server" : `answer with: ${typed}`;
  const message =
    isUnanswerable && openQuestions(task).some(isForPerson)
      ? `${statusLine(task, now)} (this client cannot show it; ${where})`
      : statusLine(task, now);
  return { ...factsOf(task, message), status, ttlMs: task.ttlMs, pollIntervalMs: pollIntervalMs(task) };
}

function wireStatus(task: Task, isUnanswerable: boolean): string {
  if (task.status === "queued") return "working";
  // A client that cannot be asked has nothing to do but wait.
  if (isUnanswerable) return "working";
  // A tool that says no has completed; `failed` is for errors of the protocol.
  if (isTerminal(task) && task.status === "failed" && rpcErrorOf(task) === undefined) return "completed";
  return task.status;
}

/** `DetailedTask` of 2026-07-28: the result, the error or the questions are in it. */
export function toDetailedTask(
  task: Task,
  find: FindCommand,
  facts: { now: number; canAnswer: CanAnswer; isDebug: boolean },
): Result {
  const wire = { resultType: "complete", ...toTask2026(task, facts.now, facts.canAnswer) };
  if (!isTerminal(task)) {
    const asked = openQuestions(task).filter(facts.canAnswer);
    if (asked.length === 0) return wire as Result;
    const inputRequests = Object.fromEntries(asked.map((question) => [question.key, toTaskInputRequest(question)]));
    return { ...wire, inputRequests } as Result;
  }
  const error = rpcErrorOf(task);
  if (error !== undefined) return { ...wire, error } as Result;
  if (task.status === "cancelled") return wire as Result;
  // Who reads such a task declares the extension, and is listed other servers' output schemas as they are.
  const result = resultOf(task, find, { isDebug: facts.isDebug, hasOwnSchema: true });
  return { ...wire, result: { resultType: "complete", ...result } } as Result;
}

/** The JSON-RPC error that a task ended in, if it did. */
function rpcErrorOf(task: EndedTask): { code: number; message: string; data?: unknown } | undefined {
  const { outcome } = task;
  if (outcome?.ending !== "failed") return undefined;
  if (outcome.rpc !== undefined) return { ...outcome.rpc };
  return outcome.cause === "interrupted" ? { code: RpcCode.Internal, message: outcome.message } : undefined;
}

/** What the call would have been answered with, had its client waited. */
export function resultOf(
  task: EndedTask,
  find: FindCommand,
  { isDebug, hasOwnSchema = false }: { readonly isDebug: boolean; readonly hasOwnSchema?: boolean },
): Result {
  const about = { withLog: isDebug, progressToken: task.progressToken, taskId: task.taskId, hasOwnSchema };
  return toCallResult(outcomeOf(task), find(task.command), about);
}

/** The same, where a JSON-RPC error is thrown. */
export function resultOrError(task: EndedTask, find: FindCommand, isDebug: boolean): Result {
  const { outcome } = task;
  const error = outcome.ending === "failed" ? outcome.rpc : undefined;
  if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data);
  return resultOf(task, find, { isDebug });
}

/** Ties a message to its task, as 2025-11-25 asks. */
export function relatedTask(taskId: string): Record<string, unknown> {
  return { [metaKeys.relatedTask]: { taskId } };
}
