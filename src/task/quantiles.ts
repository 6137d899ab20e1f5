import type { DurationCount } from "./store.ts";

/**
 * Durations are kept as counts in buckets whose bounds grow by 1.8 %: a quantile is right within 0.9 %, and the counts of
 * several processes are merged by adding them, in SQL too.
 */
const growth = 1.018;
const logGrowth = Math.log(growth);

/** Milliseconds of a run, or of one unit of its work, which may be a byte; what lies beyond shares the first and the last bucket. */
const smallest = 1e-9;
const largest = 1e15;

/** The bucket of a duration in milliseconds. */
export function bucketOf(ms: number): number {
  return Math.ceil(Math.log(Math.min(Math.max(ms, smallest), largest)) / logGrowth);
}

/** The middle of a bucket. */
function middleOf(bucket: number): number {
  return (2 * growth ** bucket) / (growth + 1);
}

/** The value below which this part of the counts lies; undefined without any. */
export function quantile(counts: readonly Pick<DurationCount, "bucket" | "count">[], part: number): number | undefined {
  const sorted = [...counts].sort((a, b) => a.bucket - b.bucket);
  const total = totalOf(sorted);
  if (total === 0) return undefined;
  let seen = 0;
  for (const { bucket, count } of sorted) {
    seen += count;
    if (seen >= part * total) return middleOf(bucket);
  }
  return middleOf(sorted.at(-1)?.bucket ?? 0);
}

export function totalOf(counts: readonly Pick<DurationCount, "count">[]): number {
  return counts.reduce((sum, { count }) => sum + count, 0);
}
