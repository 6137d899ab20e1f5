import type { CatalogEntry } from "../command/catalog.ts";
import type { LogLine, Origin, Question } from "../command/context.ts";
import type { JsonObject } from "../command/foreign.ts";
import type { HostLimit } from "../host/profiles.ts";
import type { ClientTakes } from "./deferral.ts";
import type { EndedCall } from "./ended-call.ts";
import type { CreateRequest } from "./engine.ts";
import type { ProgressUpdate } from "./progress.ts";
import type { Task, TaskQuestion } from "./task.ts";
import { hasNeverStarted, isInterrupted } from "./transitions.ts";

/** How far a run is in time; the client's view of it is made from both. */
export interface Timing {
  readonly elapsedMs: number;
  readonly estimateMs: number | undefined;
}

/** What the door that waits for a call is told meanwhile. */
export interface CallWatcher {
  progress(update: ProgressUpdate, timing: Timing): void;
  log(line: LogLine): void;
  /** What a server behind the command tells the client, word for word. */
  notify?(method: string, params: JsonObject): void;
  /** Ends the stream on which the client waits; undefined where it could not come back. */
  readonly hangUp?: (() => void) | undefined;
  /** Resolves when there is room for this result on its way to the client; undefined when there is. */
  room?(data: unknown): Promise<unknown> | undefined;
  /** Nothing was heard for a while, and the host should not take that for a death. */
  beat(timing: Timing): void;
  /** Only where `whenAsked` says `elicit`: these questions are open; answer them through the engine. */
  questions(task: Task, open: readonly TaskQuestion[]): void;
}

/** What a client asked for, and what it could take. */
export interface CallingClient extends ClientTakes {
  /** 2025-11-25 by `params.task`; 2026-07-28 by a hint of ours. */
  readonly asked: { readonly ttlMs: unknown } | undefined;
}

export type WhenAsked = "elicit" | "park" | "handOut";

/** One request to run a command, from somebody who waits. */
export interface CallRequest {
  readonly entry: CatalogEntry;
  readonly input: unknown;
  readonly caller: string;
  readonly origin: Origin;
  readonly client: CallingClient;
  readonly limit: HostLimit & { readonly host: string };
  readonly progressToken: string | number | undefined;
  readonly isNew: boolean;
  readonly idempotencyKey: string | undefined;
  /** What it asks goes out ahead: it becomes a task with the answers. */
  readonly asksAhead?: boolean;
  /** What was asked and answered ahead of the run. */
  readonly answered: readonly TaskQuestion[];
  /**
   * Such questions: are put to the client while the call waits; send the call back with them; or make a task of the
   * call.
   */
  readonly whenAsked: (questions: readonly Question[]) => WhenAsked;
  /** Why a question finds nobody, where calls are not deferred. */
  readonly whyNoAnswer: string;
  readonly watcher: CallWatcher;
  /** When the request arrived, on the monotonic clock; the deferral is timed from then. Undefined: now. */
  readonly arrivedAt?: number;
  /** Resolves when the answer to this request has been written, or cannot be any more; asked before it is answered. */
  readonly delivered?: () => Promise<void>;
  /** The client wants it no longer, or, when `isLost` says so, is gone: then its call runs on. */
  readonly gone: AbortSignal;
  readonly isLost: () => boolean;
  /** The connection it came by broke, while its client may still live. */
  readonly dropped: AbortSignal | undefined;
}

export type CallEnding =
  | EndedCall
  | {
      readonly kind: "deferred";
      readonly as: "task" | "job" | "handle";
      readonly task: Task;
      /** The call was attached to the run of another. */
      readonly isJoined: boolean;
      readonly note: string | undefined;
    }
  | { readonly kind: "asked"; readonly task: Task }
  /** The host is about to give up, and the task store does not respond: neither result nor handle. */
  | { readonly kind: "unstored"; readonly hasStarted: boolean }
  /**
   * The process leaves, and this client takes neither a task nor a handle: where its call went, or that it could not be
   * kept.
   */
  | { readonly kind: "left"; readonly taskId: string | undefined; readonly isSafe: boolean };

/** The task that a call asks for. */
export function toCreation(request: CallRequest, reason: string): CreateRequest {
  const { entry, input, caller, origin, answered, progressToken, isNew, idempotencyKey } = request;
  return {
    entry,
    input,
    caller,
    origin,
    answered,
    progressToken,
    isNew,
    reason,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}

/** What a caller is told whose call runs although an equal one was interrupted. */
export function interruptedNote(task: Task, now: number): string {
  const { taskId, createdAt } = task;
  const seconds = secondsSince(createdAt, now);
  return hasNeverStarted(task)
    ? `This is a new run: an equal call of ${seconds} s ago, the task ${taskId}, was never started, because no worker had the values of its variables.`
    : `This is a new run: an equal call, started ${seconds} s ago as the task ${taskId}, was interrupted, and its outcome is unknown.`;
}

/** What a caller is told who was attached to a run. */
export function joinedNote(task: Task, isRepeated: boolean, now: number): string {
  const seconds = secondsSince(task.createdAt, now);
  if (isRepeated && isInterrupted(task))
    return `This idempotency key started the run ${seconds} s ago, which was interrupted, and the command is not declared safe to run twice. Look at what it did; a new key runs it again.`;
  return isRepeated
    ? `This idempotency key started the run ${seconds} s ago; a fresh key starts another.`
    : `Joined the run started ${seconds} s ago; _meta["meanwhile/new"]: true starts another.`;
}

function secondsSince(createdAt: number, now: number): number {
  return Math.max(0, Math.round((now - createdAt) / 1000));
}

/** Why a task is cancelled that its client could never find. */
export const undelivered = "The client went away before it got the task's id.";
