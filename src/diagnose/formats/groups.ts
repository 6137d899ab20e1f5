import { callOutcomes } from "../asking/tool-calls.ts";
import type { Severity, SuiteName } from "../check.ts";
import type { CheckResult, Finding, Report } from "../report/report.ts";
import { isJudged, severityRank } from "../report/score.ts";

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
type OutcomeCounts = Readonly<Record<CheckResult["outcome"], number>>;

/** How the checks of each suite ended; a suite without a check is listed too, with nothing. */
export function countBySuite({
  suites,
  checks,
}: Pick<Report, "suites" | "checks">): { readonly suite: SuiteName; readonly counts: OutcomeCounts }[] {
  const names = new Set([...suites, ...checks.map(({ suite }) => suite)]);
  return [...names].map((suite) => {
    const of = (outcome: CheckResult["outcome"]) =>
      checks.filter((check) => check.suite === suite && check.outcome === outcome).length;
    return {
      suite,
      counts: { passed: of("passed"), failed: of("failed"), skipped: of("skipped"), unfinished: of("unfinished") },
    };
  });
}

/** How many findings there are of each severity, without those there are none of. */
export function countBySeverity(
  findings: readonly Pick<Finding, "severity">[],
): { readonly severity: Severity; readonly count: number }[] {
  const counts = new Map<Severity, number>();
  for (const { severity } of findings) counts.set(severity, (counts.get(severity) ?? 0) + 1);
  return [...counts]
    .map(([severity, count]) => ({ severity, count }))
    .sort((a, b) => severityRank(a.severity) - severityRank(b.severity));
}

/** `22 findings: 1 blocker, 17 majors`: the score counts checks, this counts what was found. */
export function tellFindings(findings: readonly Pick<Finding, "severity">[]): string {
  if (findings.length === 0) return "no findings";
  const counts = countBySeverity(findings).map(({ severity, count }) => countWords(count, severity));
  return `${countWords(findings.length, "finding")}: ${counts.join(", ")}`;
}

/** What a report without findings says: that nothing is wrong only where a tool was called and every check ended. */
export function tellNothing({
  checks,
  incomplete,
  calls,
  target,
}: Pick<Report, "checks" | "incomplete" | "calls" | "target">): {
  readonly text: string;
  readonly isFine: boolean;
} {
  const judged = checks.filter(isJudged).length;
  if (judged === 0) return { text: "No check came to an answer, so nothing is known.", isFine: false };
  if (calls?.every(({ outcome }) => outcome === "not called") === true) {
    const why = target.tools === 0 ? "the server lists none" : "name one with --tool <name>";
    return { text: `Nothing was found, and no tool was called: ${why}.`, isFine: false };
  }
  if (incomplete === undefined && checks.every(({ outcome }) => outcome !== "unfinished"))
    return { text: "Nothing is wrong.", isFine: true };
  return {
    text: `Nothing was found in the ${judged === 1 ? "1 check that was" : `${judged} checks that were`} finished.`,
    isFine: false,
  };
}

/** `3 of 14 tools called: 1 succeeded, 2 failed`; undefined where nothing is known of calls. */
export function tellCalls({ target, calls }: Pick<Report, "target" | "calls">): string | undefined {
  if (calls === undefined || target.tools === 0) return undefined;
  const made = calls.filter(({ outcome }) => outcome !== "not called");
  const counts = callOutcomes.flatMap((outcome) => {
    const count = made.filter((call) => call.outcome === outcome).length;
    return count === 0
      ? []
      : [`${count} ${outcome === "task" ? (count === 1 ? "became a task" : "became tasks") : outcome}`];
  });
  const who = `${made.length === 0 ? "none" : made.length} of ${countWords(target.tools, "tool")} called`;
  return counts.length === 0 ? who : `${who}: ${counts.join(", ")}`;
}

/** `12 checks were skipped`: how many, for the line above the reasons; undefined where every one was asked. */
export function tellSkipped(checks: readonly CheckResult[]): string | undefined {
  const count = checks.filter(({ outcome }) => outcome === "skipped").length;
  return count === 0 ? undefined : `${countWords(count, "check")} ${count === 1 ? "was" : "were"} skipped`;
}

const callingSuites: readonly SuiteName[] = ["hosts", "tasks", "progress"];

/** Said where the questions about slow calls were left open because no tool may be called. */
export function tellUncalled({ checks, score }: Pick<Report, "checks" | "score">): string | undefined {
  // Where there is no grade, the reason says as much.
  if (score.grade === null) return undefined;
  const isUncalled = ({ suite, outcome, note }: CheckResult) =>
    callingSuites.includes(suite) &&
    outcome === "skipped" &&
    /^No tool (?:was called:|says that it only reads)/.test(note ?? "");
  return checks.some(isUncalled) ? "No tool was called: name your slow one with --tool <name>" : undefined;
}

/** `1 blocker`, `2 majors`; `info` has no plural. */
export function countWords(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 || noun === "info" ? "" : "s"}`;
}
