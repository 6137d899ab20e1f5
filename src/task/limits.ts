import { anonymousKey, whose } from "../command/caller.ts";
import { CommandError, InputError, RequestError } from "../errors.ts";
import type { ShareLimits } from "./shares.ts";
import type { KeptTasks } from "./store.ts";

const hourMs = 60 * 60 * 1000;
const defaultTtlMs = 24 * hourMs;
/** The longest time that a result is kept, whoever asks for it. */
export const maxTtlMs = 7 * 24 * hourMs;
/** What callers who cannot be told apart may leave on the disk, together; whoever is known may leave what they like. */
const ofStrangers = { ttlMs: hourMs, inputBytes: 256 * 1024, kept: { count: 1_000, bytes: 64 * 1024 * 1024 } };

/** Limits that are settings. Tasks that wait for an answer are no live tasks here: their questions have their own limit. */
export interface Limits {
  /** Live tasks of the local user, and of each API key. */
  readonly localTasks: number;
  /** Live tasks of each signed-in user. */
  readonly signedInTasks: number;
  /** Live tasks of all anonymous callers together. */
  readonly anonymousTasks: number;
  /** Tasks of one caller that wait for an answer. */
  readonly openQuestions: number;
  /** Megabytes of results that are on their way to clients, in all forms, of a server. */
  readonly resultMb: number;
}

export const defaultLimits: Limits = {
  localTasks: 10_000,
  signedInTasks: 1_000,
  anonymousTasks: 100,
  openQuestions: 1_000,
  resultMb: 64,
};

/** The setting that limits the live tasks of a caller. */
export function taskLimitOf(caller: string): "localTasks" | "signedInTasks" | "anonymousTasks" {
  if (caller === anonymousKey) return "anonymousTasks";
  return caller.startsWith("user:") || caller.startsWith("app:") ? "signedInTasks" : "localTasks";
}

/** How long a question waits for its answer, unless the settings say otherwise. */
export const defaultQuestionMs = 24 * hourMs;
export const maxPageSize = 100;
const maxDepth = 64;

/** Tasks that a worker runs at a time. */
export function taskPlaces(total = 16): ShareLimits {
  return { total, anonymous: partOf(total, 2), guaranteed: partOf(total, 4) };
}

/** The same for tasks that never end by themselves: they would keep a place for ever, so they have their own. */
export function endlessPlaces(total = 16): ShareLimits {
  return { total, anonymous: partOf(total, 4), guaranteed: partOf(total, 8) };
}

/** Child processes that run attempts. */
export function childPlaces(total: number): ShareLimits {
  return { total, anonymous: partOf(total, 2), guaranteed: 1 };
}

/**
 * Calls that run while somebody waits for them, and what of them was handed out late and still runs. A late hand-out is
 * never refused, so a caller has at most this many live tasks beside those that were made as tasks. Whoever is known
 * may have a thousand at once; strangers share a hundred.
 */
export const callPlaces: ShareLimits = { total: 2_000, each: 1_000, anonymous: 100, guaranteed: 10 };

function partOf(total: number, part: number): number {
  return Math.max(1, Math.floor(total / part));
}

/** A cursor that was never one of ours. */
export class BadCursor extends RequestError {
  constructor() {
    super("params", "`cursor` is not one of ours; leave it out to begin with the first page.");
  }
}

/**
 * Returns how long a caller's result is kept, in milliseconds: `ttlMs` as the client sent it, else `usualMs`, at most
 * what this caller may ask for. Throws for anything but a positive whole number.
 */
export function checkTtl(ttlMs: unknown, caller: string, usualMs = defaultTtlMs): number {
  const most = caller === anonymousKey ? ofStrangers.ttlMs : maxTtlMs;
  if (ttlMs === undefined) return Math.min(usualMs, most);
  if (!isTtl(ttlMs)) throw new RequestError("params", "`ttl` must be a positive whole number of milliseconds.");
  return Math.min(ttlMs, most);
}

export function isTtl(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

/** Tasks that one worker may run at a time. */
export const maxConcurrency = 1_000;

export function isConcurrency(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= maxConcurrency;
}

/**
 * How long a task's question may wait: what the settings say, or the ttl that its client asked for where that is
 * longer. What is as by default was not asked for.
 */
export function questionLimitMs(
  { ttlMs, caller }: { readonly ttlMs: number; readonly caller: string },
  questionMs = defaultQuestionMs,
): number {
  return ttlMs === checkTtl(undefined, caller) ? questionMs : Math.max(questionMs, ttlMs);
}

/** Refuses arguments that are too large to be kept for this caller. */
export function checkInputSize(input: unknown, caller: string): void {
  if (caller !== anonymousKey) return;
  const bytes = Buffer.byteLength(JSON.stringify(input ?? {}));
  if (bytes <= ofStrangers.inputBytes) return;
  throw new InputError(
    `The arguments are ${bytes} bytes of JSON, and without a credential ${ofStrangers.inputBytes} are the most; send less, or a token.`,
  );
}

/** What is kept of a caller's ended tasks; undefined for all of them until their time is over. */
export function keptOf(caller: string): KeptTasks | undefined {
  return caller === anonymousKey ? ofStrangers.kept : undefined;
}

/** Refuses a result that a store could not keep or a client could not read. */
export function checkStorable(json: string, name: string): void {
  const refuse = (what: string) =>
    new CommandError(`${name} returned ${what}, which cannot be stored; return it in another form.`);
  if (/(?<!\\)(?:\\\\)*\\u0000/.test(json)) throw refuse("text with a NUL character");
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f][0-9a-f]{2}/.test(json))
    throw refuse("text with half a character (a lone surrogate)");
  if (depthOf(json) > maxDepth) throw refuse(`something nested more than ${maxDepth} levels deep`);
}

function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (isInString) {
      if (code === 0x5c) at++;
      else if (code === 0x22) isInString = false;
    } else if (code === 0x22) isInString = true;
    else if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x7d || code === 0x5d) depth--;
  }
  return deepest;
}

/** The caller has as many calls running as there may be. */
export class TooManyCalls extends CommandError {
  constructor(held: number, caller: string) {
    super(
      `There are ${held} running calls of ${whose(caller)} already, the most there may be; wait for one to end, or cancel one.`,
    );
  }
}

/** A result that is longer may have to wait for its client, and then it has to be somebody's. */
export const longResultChars = 64 * 1024;
