import type { Severity, SuiteName } from "../check.ts";
import type { CheckResult, Finding, Report } from "../report.ts";
import { severityRank } from "../score.ts";

/** Findings that a person reads as one: the same check, weight and cure, with several subjects. */
export interface FindingGroup {
  readonly severity: Severity;
  readonly check: string;
  readonly why: string;
  readonly remedy: string;
  readonly source: string;
  readonly findings: readonly Finding[];
}

/** Worst first, then in the order of the findings. */
export function groupFindings(findings: readonly Finding[]): FindingGroup[] {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const key = JSON.stringify([finding.severity, finding.check, finding.why, finding.remedy]);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [finding]);
    else known.push(finding);
  }
  return [...groups.values()].map(toGroup).sort((a, b) => severityRank(a.severity) - severityRank(b.severity));
}

function toGroup(findings: readonly Finding[]): FindingGroup {
  const { severity, check, why, remedy, source } = findings[0] as Finding;
  return { severity, check, why, remedy, source, findings };
}

export const outcomes = ["passed", "failed", "skipped", "unfinished"] as const;
export type OutcomeCounts = Readonly<Record<CheckResult["outcome"], number>>;

/** How the checks of each suite ended; a suite without a check is listed too, with nothing. */
export function countBySuite({ suites, checks }: Pick<Report, "suites" | "checks">): { readonly suite: SuiteName; readonly counts: OutcomeCounts }[] {
  const names = new Set([...suites, ...checks.map(({ suite }) => suite)]);
  return [...names].map((suite) => {
    const of = (outcome: CheckResult["outcome"]) => checks.filter((check) => check.suite === suite && check.outcome === outcome).length;
    return { suite, counts: { passed: of("passed"), failed: of("failed"), skipped: of("skipped"), unfinished: of("unfinished") } };
  });
}

/** How many findings there are of each severity, without those there are none of. */
export function countBySeverity(findings: readonly Pick<Finding, "severity">[]): { readonly severity: Severity; readonly count: number }[] {
  const counts = new Map<Severity, number>();
  for (const { severity } of findings) counts.set(severity, (counts.get(severity) ?? 0) + 1);
  return [...counts].map(([severity, count]) => ({ severity, count })).sort((a, b) => severityRank(a.severity) - severityRank(b.severity));
}

/** `1 blocker`, `2 majors`; `info` has no plural. */
export function countWords(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 || noun === "info" ? "" : "s"}`;
}
