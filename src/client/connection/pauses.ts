import { randomInt } from "node:crypto";

/** How long to wait before the next look or the next try; pure, with chance given from outside. */

/** A number from 0 up to, and without, 1. */
type Chance = () => number;

const chance: Chance = () => randomInt(2 ** 32) / 2 ** 32;

const growth = 1.5;
const maxFactor = 5;
const jitter = 0.2;

export const defaultPollMs = 1_000;
/** However little a server asks for, and however much. */
const minPollMs = 20;
const maxPollMs = 60 * 60 * 1000;
/** While the server tells of changes by itself, looking is only a safety net. */
const safetyNetMs = 15_000;

interface PollFacts {
  /** What the server asks for, or the caller while it says nothing. */
  readonly intervalMs: number;
  /** Looks since something has changed. */
  readonly unchanged: number;
  /** The server tells of changes by itself. */
  readonly isTold?: boolean;
}

/** Milliseconds until the next look: longer the less happens, up to five intervals, never shorter than one. */
export function nextPollMs({ intervalMs, unchanged, isTold = false }: PollFacts, random: Chance = chance): number {
  const interval = Math.min(Math.max(Number.isFinite(intervalMs) ? intervalMs : defaultPollMs, minPollMs), maxPollMs);
  const factor = Math.min(growth ** Math.max(0, unchanged), maxFactor);
  const wanted = isTold ? Math.max(interval * maxFactor, safetyNetMs) : interval * factor;
  return Math.round(Math.max(interval, spread(wanted, random)));
}

const firstRetryMs = 100;
const maxRetryMs = 5_000;

/** Milliseconds until try number `tries` + 1: twice as long each time, and as long as the server asks for. */
export function nextRetryMs(tries: number, retryAfterMs: number | undefined, random: Chance = chance): number {
  const wanted = Math.min(firstRetryMs * 2 ** Math.min(Math.max(0, tries), 30), maxRetryMs);
  return Math.round(Math.max(spread(wanted, random), retryAfterMs ?? 0));
}

/** A broken stream is not opened again sooner, however little its server asks for. */
const minResumeMs = 500;
const maxResumeMs = 10_000;

/**
 * Milliseconds until a broken stream is opened again: what the server asks for, and longer the more often that brought
 * nothing.
 */
export function nextResumeMs(inVain: number, retryMs: number): number {
  return Math.max(Math.min(minResumeMs * 2 ** Math.min(inVain, 30), maxResumeMs), retryMs);
}

function spread(ms: number, random: Chance): number {
  return ms * (1 - jitter + 2 * jitter * random());
}
