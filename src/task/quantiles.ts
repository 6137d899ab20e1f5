import type { DurationCount } from "./store.ts";

/**
 * Durations are kept as counts in buckets whose bounds grow by 1.8 %: a quantile is right within 0.9 %, and the counts
 * of several processes are merged by adding them, in SQL too.
 */
const growth = 1.018;
const logGrowth = Math.log(growth);

/**
 * Milliseconds of a run, or of one unit of its work, which may be a byte; what lies beyond shares the first and the
 * last bucket.
 */
const smallest = 1e-9;
const largest = 1e15;

type Counted = readonly Pick<DurationCount, "bucket" | "count">[];

/** The bucket of a duration in milliseconds. */
export function bucketOf(ms: number): number {
  return Math.ceil(Math.log(Math.min(Math.max(ms, smallest), largest)) / logGrowth);
}

/** The middle of a bucket. */
function middleOf(bucket: number): number {
  return (2 * growth ** bucket) / (growth + 1);
}

/** The value below which this part of the counts lies; undefined without any. */
export function quantile(counts: Counted, part: number): number | undefined {
  return quantiles(counts, [part])[0];
}

/** The same for several parts, smallest first: the counts are sorted and gone through once. */
export function quantiles(counts: Counted, parts: readonly number[]): readonly number[] {
  const sorted = counts.toSorted((a, b) => a.bucket - b.bucket);
  const total = totalOf(sorted);
  const found: number[] = [];
  let seen = 0;
  for (const { bucket, count } of total === 0 ? [] : sorted) {
    seen += count;
    while (found.length < parts.length && seen >= (parts[found.length] ?? 0) * total) found.push(middleOf(bucket));
  }
  return found;
}

export function totalOf(counts: readonly Pick<DurationCount, "count">[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0);
}
