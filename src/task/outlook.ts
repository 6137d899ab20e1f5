import type { ListedEntry } from "../command/catalog.ts";
import type { AuthorsEstimate } from "./authors-estimate.ts";
import { type DeferralRules, isLong } from "./deferral.ts";
import { bucketOf, quantile, quantiles, totalOf } from "./quantiles.ts";
import type { DurationCount } from "./store.ts";

/** From this many runs on, history knows better than the author. */
const enoughRuns = 5;

/** How long a command takes. */
export interface KnownDurations {
  readonly runs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** What is to be expected of one call: each number only where there is enough to go by. */
export interface Outlook {
  readonly estimateMs: number | undefined;
  /** Runs have shown that such estimates hold: without that nobody is told how long it will still take. */
  readonly isProven: boolean;
  readonly p95Ms: number | undefined;
  /** Its author says that it never ends by itself. */
  readonly isEndless: boolean;
}

/** What is worked out of a command's counts. */
export interface Summary extends KnownDurations {
  /** Milliseconds a unit of work, once there are enough runs to say. */
  readonly rateMs: number | undefined;
  /** By what the author's estimates were off, once there are enough runs to say. */
  readonly scale: number | undefined;
  /** What is to be expected where the author says nothing: the same for every call. */
  readonly outlook: Outlook;
}

export function toKnown({ runs, p50Ms, p95Ms, p99Ms }: Summary): KnownDurations | undefined {
  return runs < enoughRuns ? undefined : { runs, p50Ms, p95Ms, p99Ms };
}

export function toOutlook(summary: Omit<Summary, "outlook">, said: AuthorsEstimate | undefined): Outlook {
  const { runs, p95Ms } = summary;
  return {
    p95Ms: runs >= enoughRuns ? p95Ms : undefined,
    isEndless: said?.isEndless === true,
    ...estimateFrom(summary, said),
  };
}

/**
 * What the author says of this very input, corrected by what history knows of such words; without a word of the
 * author's, history alone.
 */
function estimateFrom(
  { runs, p50Ms, rateMs, scale }: Omit<Summary, "outlook">,
  said: AuthorsEstimate | undefined,
): Pick<Outlook, "estimateMs" | "isProven"> {
  if (said?.isEndless === true) return { estimateMs: undefined, isProven: false };
  if (said?.work !== undefined)
    return { estimateMs: rateMs === undefined ? undefined : rateMs * said.work, isProven: rateMs !== undefined };
  if (said?.ms !== undefined) return { estimateMs: said.ms * (scale ?? 1), isProven: scale !== undefined };
  const isKnown = runs >= enoughRuns;
  return { estimateMs: isKnown ? p50Ms : undefined, isProven: isKnown };
}

export function toDurations(counts: readonly DurationCount[]): KnownDurations {
  const times = counts.filter((count) => count.kind === "time");
  const [p50Ms = 0, p95Ms = 0, p99Ms = 0] = quantiles(times, [0.5, 0.95, 0.99]);
  return { runs: totalOf(times), p50Ms, p95Ms, p99Ms };
}

/** How often the event loop was blocked, and for how long at most; nothing where it never was. */
export function toBlocks(counts: readonly DurationCount[]): { blockedRuns?: number; longestBlockMs?: number } {
  const blocks = counts.filter((count) => count.kind === "block");
  const longestBlockMs = quantile(blocks, 1);
  return longestBlockMs === undefined ? {} : { blockedRuns: totalOf(blocks), longestBlockMs };
}

/**
 * How much a run counts for the scale of its author's estimates: the square of its length, measured or estimated. Most
 * of a short run is its start, which says nothing about a long one. Runs of a minute or more count the same.
 */
export function scaleWeight(ms: number, estimatedMs: number): number {
  return Math.max(1, Math.round((Math.min(Math.max(ms, estimatedMs), 60_000) / 10) ** 2));
}

/** The author's word as it is, with the weight of a run of one second: shorter runs hardly change it. */
const unscaled = { bucket: bucketOf(1), count: scaleWeight(1_000, 1_000) };

export function toSummary(counts: readonly DurationCount[]): Summary {
  const rates = counts.filter((count) => count.kind === "rate");
  const scales = counts.filter((count) => count.kind === "scale");
  const durations = toDurations(counts);
  const summary = {
    ...durations,
    rateMs: totalOf(rates) < enoughRuns ? undefined : quantile(rates, 0.5),
    scale: durations.runs < enoughRuns || scales.length === 0 ? undefined : quantile([...scales, unscaled], 0.5),
  };
  return { ...summary, outlook: toOutlook(summary, undefined) };
}

/**
 * What is announced of a command under the settings in force. `async`: it counts as long, whatever its history says.
 * `taskModeRecommended`: it is long, or its history says so.
 */
export function announceTaskMode(
  {
    toolName,
    aliases = [],
    command,
  }: Pick<ListedEntry, "toolName" | "aliases"> & { readonly command: Pick<ListedEntry["command"], "long"> },
  known: KnownDurations | undefined,
  rules: DeferralRules,
): { readonly async: boolean; readonly taskModeRecommended: boolean } {
  const facts = { toolName, aliases: aliases.map(({ name }) => name), declaredLong: command.long };
  const historyP95Ms = known !== undefined && known.runs >= enoughRuns ? known.p95Ms : undefined;
  return {
    async: isLong({ ...facts, historyP95Ms: undefined }, rules) !== undefined,
    taskModeRecommended: isLong({ ...facts, historyP95Ms }, rules) !== undefined,
  };
}
