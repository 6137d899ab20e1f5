import { type Json, numberOf, textOf } from "../../wire/json.ts";
import type { Answer, Progress, Question, TaskState, TaskStatus, ToolResult } from "../client.ts";

/**
 * Work that goes on by itself on a server. Each generation has its way to follow it: tasks of 2026-07-28 and of
 * 2025-11-25, plain handles, and jobs that the server tells of by notifications.
 */
export interface RemoteTask {
  readonly taskId: string;
  /** How it stands. */
  look(options: LookOptions): Promise<Snapshot>;
  /** True when `look` with `wait` lasts as long as nothing happens. */
  readonly isWaiting: boolean;
  /** Hears of changes without asking. */
  watch(watcher: Watcher): () => void;
  /** Does its part about what is asked, once for each question. */
  answerAsked(snapshot: Snapshot, watcher: Watcher): Promise<void>;
  /** What a task that has ended gave. */
  result(snapshot: Snapshot, signal: AbortSignal | undefined): Promise<ToolResult>;
  answer(answers: Readonly<Record<string, Answer>>): Promise<void>;
  cancel(signal?: AbortSignal): Promise<void>;
}

export interface LookOptions {
  readonly signal?: AbortSignal | undefined;
  /** The server may take its time, when it has a way of its own to wait. */
  readonly wait?: boolean;
}

export interface Snapshot {
  readonly state: TaskState;
  readonly progress?: Progress | undefined;
  /** There when it came along with the state. */
  readonly result?: ToolResult;
  /** Fails the call: the task ended in an error of the protocol. */
  readonly error?: Error;
}

/** Who follows. */
export interface Watcher {
  readonly signal: AbortSignal;
  /** Undefined where nobody can be asked. */
  readonly ask: ((question: Question) => Promise<Answer>) | undefined;
  onNews(snapshot: Snapshot): void;
  onProgress(progress: Progress | undefined): void;
  /** Whether changes are told by the server from now on. */
  onTold(isTold: boolean): void;
  /** Ends the following; the task is left alone. */
  fail(error: unknown): void;
}

export function isTerminal(status: TaskStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

const statuses: readonly string[] = [
  "working",
  "input_required",
  "completed",
  "failed",
  "cancelled",
] satisfies TaskStatus[];

/** A task of either generation, as both are told to the caller; undefined for what is no task. */
export function readTask(fields: Json): TaskState | undefined {
  const taskId = textOf(fields.taskId);
  const status = textOf(fields.status) ?? "";
  if (taskId === undefined || taskId === "" || !statuses.includes(status)) return undefined;
  const statusMessage = textOf(fields.statusMessage);
  const createdAt = momentOf(fields.createdAt);
  const lastUpdatedAt = momentOf(fields.lastUpdatedAt);
  const ttl = fields.ttlMs === undefined ? fields.ttl : fields.ttlMs;
  const ttlMs = ttl === null ? null : numberOf(ttl);
  const pollIntervalMs = numberOf(fields.pollIntervalMs) ?? numberOf(fields.pollInterval);
  return {
    taskId,
    status: status as TaskStatus,
    ...(statusMessage !== undefined && { statusMessage }),
    ...(createdAt !== undefined && { createdAt }),
    ...(lastUpdatedAt !== undefined && { lastUpdatedAt }),
    ...(ttlMs !== undefined && { ttlMs }),
    ...(pollIntervalMs !== undefined && { pollIntervalMs }),
  };
}

function momentOf(value: unknown): number | undefined {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
