/** How long hosts wait, learned from calls that they give up. */

export type Transport = "stdio" | "http";

/** A limit that was learned. One object for as long as it stays the same. */
export interface LearnedLimit {
  readonly limitMs: number;
  /** When it was learned, in milliseconds of the wall clock. */
  readonly since: number;
}

/** Keeps what is learned for one project. */
export interface LearnedLimits {
  /** Undefined where nothing was learned, or nothing in the last 30 days. */
  limitOf(host: string, transport: Transport): LearnedLimit | undefined;
  /** A client of this host gave up a call that was silent from its arrival. */
  noteGivenUp(host: string, transport: Transport, ageMs: number): void;
}

/** The ages at which calls were given up, one after the other, and what was learned from them. */
export interface GivenUp {
  readonly agesMs: readonly number[];
  readonly learned?: LearnedLimit;
}

/** So long a limit holds after it was learned. */
export const learnedLimitLivesMs = 30 * 24 * 60 * 60 * 1000;

const enoughCalls = 3;
/** A call that is given up earlier says nothing about a limit. */
const minAgeMs = 5_000;
/** Ages that differ by less than this part, or by less than a second, are the same. */
const samePart = 0.03;
const sameMs = 1_000;

/**
 * Adds the age of a call that was given up. The limit is learned from three calls in a row of the same age; an age that
 * differs begins a new row. The youngest of the three is the limit.
 */
export function addGivenUp({ agesMs, learned }: GivenUp, ageMs: number, now: number): GivenUp {
  const kept = learned === undefined ? {} : { learned };
  if (ageMs < minAgeMs) return { agesMs: [], ...kept };
  const row = [...agesMs, ageMs];
  const [youngest, oldest] = [Math.min(...row), Math.max(...row)];
  if (oldest - youngest > Math.max(sameMs, oldest * samePart)) return { agesMs: [ageMs], ...kept };
  if (row.length < enoughCalls) return { agesMs: row, ...kept };
  return { agesMs: [], learned: { limitMs: Math.round(youngest), since: now } };
}
