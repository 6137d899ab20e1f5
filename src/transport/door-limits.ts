import { type Caller, callerKey, isKnown, whose } from "../command/caller.ts";
import { RequestError } from "../errors.ts";

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
  /** Of bodies whose requests have not been answered. */
  readonly bodyBytes: number;
  /** Messages that are begun in one turn of the event loop. */
  readonly messagesATurn: number;
  /** Large results that are on their way, as JSON; the rest waits on the disk. */
  readonly backlogBytes: number;
}

const minuteMs = 60_000;
const mib = 1024 * 1024;
const known: DoorLimits = {
  connections: 1_000,
  requests: 1_000,
  streams: 500,
  sessions: 500,
  silenceMs: 60 * minuteMs,
  taskIds: 10_000,
  bodyBytes: 512 * mib,
  messagesATurn: 64,
  backlogBytes: 64 * mib,
};
/** Callers who cannot be told apart share these. */
const strangers: DoorLimits = {
  connections: 250,
  requests: 200,
  streams: 100,
  sessions: 200,
  silenceMs: 10 * minuteMs,
  taskIds: 1_000,
  bodyBytes: 64 * mib,
  messagesATurn: 8,
  backlogBytes: 32 * mib,
};

export function limitsOf(caller: Caller): DoorLimits {
  return isKnown(caller) ? known : strangers;
}

/**
 * A client that leaves this much unread, and takes less than a part of it in this time, does not read, and is closed:
 * what waits for it is memory that others need. Ten seconds are more than a program is busy that means to read on; a
 * link that carries a part in ten seconds is slower than any that MCP is spoken on.
 */
export const unread = {
  bytes: 1024 * 1024,
  ms: 10_000,
  /**
   * A stream over HTTP that has more waiting is closed at once when more comes: whoever writes to it does not wait, and
   * one event has at most one result.
   */
  mostBytes: 16 * 1024 * 1024,
};

/**
 * A large message is written in parts of this size: as much as a client has to take in `unread.ms`, and a moment's work
 * to write.
 */
export const partBytes = 1024 * 1024;

/**
 * What is kept for clients before 2026-07-28 that lose their connection and come back: enough for one that was away for
 * a moment, and for all sessions no more than a few large results. What is not kept any longer leaves a word, of about
 * this size, so that nobody waits for it in vain.
 */
export const replayBytes = { session: 4 * 1024 * 1024, all: 64 * 1024 * 1024, stub: 500 };

export function tooManyRequests(caller: Caller, running: number): RequestError {
  return new RequestError(
    "busy",
    `There are ${running} requests of ${whose(callerKey(caller))} without an answer already, the most there may be; wait for one to end.`,
  );
}
