/** Seconds a run still needs: from its own speed once that says something, before that from the author's estimate. */
export function secondsLeft(run: { elapsedMs: number; percentage: number | undefined; estimateSeconds: number | undefined }): number | undefined {
  const { elapsedMs, percentage, estimateSeconds } = run;
  const hasSpeed = percentage !== undefined && percentage > 0 && elapsedMs >= 500;
  if (hasSpeed) return (elapsedMs / 1000) * ((100 - percentage) / percentage);
  if (estimateSeconds === undefined || !Number.isFinite(estimateSeconds)) return undefined;
  return Math.max(0, estimateSeconds - elapsedMs / 1000);
}
