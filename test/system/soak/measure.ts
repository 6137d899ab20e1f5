import { readdirSync, readFileSync } from "node:fs";

/** One look at a process. */
export interface Sample {
  readonly atSeconds: number;
  /** After all garbage was collected. */
  readonly heapMB: number;
  readonly rssMB: number;
  readonly fds: number;
  readonly threads: number;
}

export type Measure = "heapMB" | "rssMB" | "fds" | "threads";

/** What the kernel says; undefined when the process is gone. */
export function look(
  pid: number,
): { readonly rssMB: number; readonly fds: number; readonly threads: number } | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const rssKB = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
    return {
      rssMB: (rssKB * 1024) / 1e6,
      fds: readdirSync(`/proc/${pid}/fd`).length,
      threads: readdirSync(`/proc/${pid}/task`).length,
    };
  } catch {
    return undefined;
  }
}

const bucketSeconds = 20;

/** The lowest of each while: what is only under way, a large result say, is not growth. */
function lows(samples: readonly Sample[], measure: Measure): { readonly hours: number; readonly value: number }[] {
  const buckets = Map.groupBy(samples, ({ atSeconds }) => Math.floor(atSeconds / bucketSeconds));
  return [...buckets].map(([bucket, own]) => ({
    hours: (bucket * bucketSeconds) / 3600,
    value: Math.min(...own.map((sample) => sample[measure])),
  }));
}

/**
 * How fast something grows, by the hour: the median of the slopes between any two lows, which a few odd ones do not
 * move.
 */
export function slopeOf(samples: readonly Sample[], measure: Measure): number {
  const points = lows(samples, measure);
  const slopes = points.flatMap((a, at) => points.slice(at + 1).map((b) => (b.value - a.value) / (b.hours - a.hours)));
  slopes.sort((a, b) => a - b);
  const middle = slopes.length / 2;
  return slopes.length === 0 ? 0 : ((slopes[Math.floor(middle)] ?? 0) + (slopes[Math.ceil(middle) - 1] ?? 0)) / 2;
}

/** The first and the last low, as people read them. */
export function endsOf(samples: readonly Sample[], measure: Measure): readonly [first: number, last: number] {
  const points = lows(samples, measure);
  return [points[0]?.value ?? 0, points.at(-1)?.value ?? 0];
}
