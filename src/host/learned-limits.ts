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
  /** Clients of this host gave up these calls together: within a second. */
  noteGivenUp(host: string, transport: Transport, calls: readonly GivenUpCall[]): void;
}

/** A tool call that its client cancelled or left. */
export interface GivenUpCall {
  /** The time since its request arrived. */
  readonly ageMs: number;
  /** True if the client had got neither an answer nor progress. */
  readonly isSilent: boolean;
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
 * Adds calls that were given up together: they count as one. The limit is learned from three silent calls in a row of
 * the same age; calls of another age end the row, silent or not. The youngest of the three is the limit.
 */
export function addGivenUp(known: GivenUp, calls: readonly GivenUpCall[], now: number): GivenUp {
  const { agesMs, learned } = known;
  const kept = learned === undefined ? {} : { learned };
  const together = calls.map(({ ageMs }) => ageMs);
  const silent = calls.flatMap(({ ageMs, isSilent }) => (isSilent ? [ageMs] : []));
  if (!areSame(together)) return { agesMs: [], ...kept };
  if (silent.length === 0) return areSame([...agesMs, ...together]) ? known : { agesMs: [], ...kept };
  const ageMs = Math.min(...silent);
  if (ageMs < minAgeMs) return { agesMs: [], ...kept };
  const row = [...agesMs, ageMs];
  if (!areSame(row)) return { agesMs: [ageMs], ...kept };
  if (row.length < enoughCalls) return { agesMs: row, ...kept };
  return { agesMs: [], learned: { limitMs: Math.round(Math.min(...row)), since: now } };
}

function areSame(agesMs: readonly number[]): boolean {
  const [youngest, oldest] = [Math.min(...agesMs), Math.max(...agesMs)];
  return agesMs.length === 0 || oldest - youngest <= Math.max(sameMs, oldest * samePart);
}
