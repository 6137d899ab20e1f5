import type { CheckResult, SkippedChecks } from "./report.ts";

/** What was not asked, by the reason: the reason that most checks have first. */
export function groupSkipped(checks: readonly Pick<CheckResult, "id" | "outcome" | "note">[]): SkippedChecks[] {
  const byReason = new Map<string, string[]>();
  for (const { id, outcome, note = "It was skipped." } of checks) {
    if (outcome !== "skipped") continue;
    byReason.set(note, [...(byReason.get(note) ?? []), id]);
  }
  return [...byReason].map(([why, ids]) => ({ why, count: ids.length, checks: ids })).sort((a, b) => b.count - a.count);
}
