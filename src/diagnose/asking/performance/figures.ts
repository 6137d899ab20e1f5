/** Times of several requests, in milliseconds. */
export interface Figures {
  readonly count: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly maxMs: number;
}

/** The median, what nineteen of twenty keep to, and the longest. */
export function toFigures(times: readonly number[]): Figures {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => round(sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] ?? 0);
  return { count: sorted.length, p50Ms: at(0.5), p95Ms: at(0.95), maxMs: at(1) };
}

export function describeFigures({ count, p50Ms, p95Ms, maxMs }: Figures): string {
  return `${count} requests: half within ${p50Ms} ms, 95 % within ${p95Ms} ms, the longest ${maxMs} ms`;
}

function round(ms: number): number {
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
}
