import { RequestError } from "../errors.ts";
import { type Caller, isKnown } from "../mcp/caller.ts";

/** What one caller may hold of the HTTP door at a time. */
export interface DoorLimits {
  readonly connections: number;
  /** Requests that have not been answered, streams among them. */
  readonly requests: number;
  /** Streams that stay open for what the server says by itself. */
  readonly streams: number;
  /** Of revisions before 2026-07-28. */
  readonly sessions: number;
  /** How long a session lasts without a word, a call that runs or an open stream. */
  readonly silenceMs: number;
  /** Tasks that are listened to. */
  readonly taskIds: number;
  /** Messages that are begun in one turn of the event loop. */
  readonly messagesATurn: number;
}

const minuteMs = 60_000;
const known: DoorLimits = { connections: 1_000, requests: 1_000, streams: 500, sessions: 500, silenceMs: 60 * minuteMs, taskIds: 10_000, messagesATurn: 64 };
/** Callers who cannot be told apart share these. */
const strangers: DoorLimits = { connections: 250, requests: 200, streams: 100, sessions: 200, silenceMs: 10 * minuteMs, taskIds: 1_000, messagesATurn: 8 };

export function limitsOf(caller: Caller): DoorLimits {
  return isKnown(caller) ? known : strangers;
}

/** Whose something is, in a sentence to them. */
export function nameOf(caller: Caller): string {
  return isKnown(caller) ? "yours" : "callers without a credential";
}

export function tooManyRequests(caller: Caller, running: number): RequestError {
  return new RequestError("busy", `There are ${running} requests of ${nameOf(caller)} without an answer already, the most there may be; wait for one to end.`);
}
