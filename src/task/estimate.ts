/** A run under way. */
export interface RunningTime {
  readonly elapsedMs: number;
  /** 0–100, as the run last reported it. */
  readonly percentage: number | undefined;
  /** How long such a run takes as a rule: from history, or its author's word. */
  readonly estimateSeconds: number | undefined;
  /** What had elapsed when the percentage was reported. Default: it was just now. */
  readonly reportedMs?: number | undefined;
}

/** A run's own speed says something after this long. */
const speedMs = 500;
/** From this part on, a run's own speed is all that counts: the estimate may be of another kind of run. */
const trustedPart = 0.25;

/**
 * Seconds a run still needs; undefined when nobody can say. Before the run reports progress this is the estimate less
 * what has elapsed, until that is used up. Then the run's own speed takes over: the more it has done, and the closer
 * the estimate is to being proved wrong. The two are mixed as ratios, since both err by a factor. A run that falls
 * silent is expected to stay so for as long again.
 */
export function secondsLeft(run: RunningTime): number | undefined {
  const elapsed = Math.max(0, run.elapsedMs) / 1000;
  const reported = Math.min(elapsed, Math.max(0, run.reportedMs ?? run.elapsedMs) / 1000);
  const done = (run.percentage ?? 0) / 100;
  const estimate = isPositive(run.estimateSeconds) ? run.estimateSeconds : undefined;
  if (done >= 1) return 0;
  const hasSpeed = done > 0 && reported * 1000 >= speedMs;
  if (!hasSpeed) return estimate !== undefined && estimate > elapsed ? estimate - elapsed : undefined;
  const bySpeed = reported / done;
  const total = estimate === undefined ? bySpeed : mix(bySpeed, estimate, weightOf(done, elapsed / estimate));
  const left = Math.max(total - elapsed, elapsed - reported);
  return Number.isFinite(left) ? left : undefined;
}

/** How much a run's own speed counts against the estimate, 0–1. */
function weightOf(done: number, used: number): number {
  return Math.min(1, Math.max(done / trustedPart, used));
}

/** The weighted geometric mean. */
function mix(speed: number, estimate: number, weight: number): number {
  return weight === 1 ? speed : speed ** weight * estimate ** (1 - weight);
}

function isPositive(value: number | undefined): value is number {
  return value !== undefined && value > 0 && Number.isFinite(value);
}
