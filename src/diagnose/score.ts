import { type Severity, severities } from "./check.ts";
import type { CheckResult, Finding, Report, Score } from "./report.ts";

const costs: Readonly<Record<Severity, number>> = { blocker: 30, major: 10, minor: 3, info: 0 };

/** 0 is the worst. */
export function severityRank(severity: Severity): number {
  return severities.indexOf(severity);
}

/** True when it is as bad as the limit, or worse. */
export function reaches(severity: Severity, limit: Severity): boolean {
  return severityRank(severity) <= severityRank(limit);
}

type Judged = Pick<CheckResult, "id" | "outcome">;
type Weighed = Pick<Finding, "check" | "severity">;

/** What the findings leave of 100 points. A check costs once, at its worst finding: forty tools with one fault are one fault. */
export function scoreOf(findings: readonly Weighed[], checks: readonly Judged[]): Score {
  const lost = toLost(findings);
  // A score that nothing was judged for would praise a server nobody could reach.
  if (lost.length === 0 && !checks.some(isJudged)) return { points: 0, grade: "F", lost, explanation: explainNothing(checks) };
  const points = Math.max(
    0,
    lost.reduce((left, item) => left - item.points, 100),
  );
  const grade = gradeOf(points, lost);
  return { points, grade: grade === "A" && isHalfDone(checks) ? "B" : grade, lost, explanation: explain(lost, checks) };
}

/** The one check that says why nobody could speak to a server. */
const answersId = "protocol/answers";

/** False where nothing was judged but that the server does not answer: points for that would be points for nothing. */
export function hasScore({
  score,
  checks,
  findings,
}: Pick<Report, "score"> & { readonly checks: readonly Judged[]; readonly findings: readonly Weighed[] }): boolean {
  if (score.points === 0 && score.lost.length === 0) return false;
  return checks.some(({ outcome }) => outcome === "passed") || findings.some(({ check }) => check !== answersId);
}

/** Why there is none, in one sentence. */
export function whyNoScore({ score }: Pick<Report, "score">): string {
  return score.lost.length === 0 ? score.explanation : "The server could not be spoken to, so there is no score.";
}

/** True when the check came to an answer. */
export function isJudged({ outcome }: Pick<CheckResult, "outcome">): boolean {
  return outcome === "passed" || outcome === "failed";
}

/** Too much was left open for the best grade. */
function isHalfDone(checks: readonly Judged[]): boolean {
  const open = checks.filter(({ outcome }) => outcome === "unfinished").length;
  return open * 5 > checks.length;
}

function toLost(findings: readonly Weighed[]): Score["lost"] {
  const worst = new Map<string, Severity>();
  for (const { check, severity } of findings) {
    const known = worst.get(check);
    if (known === undefined || severityRank(severity) < severityRank(known)) worst.set(check, severity);
  }
  return [...worst]
    .map(([check, severity]) => ({ check, severity, points: costs[severity] }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points);
}

function gradeOf(points: number, lost: Score["lost"]): Score["grade"] {
  if (points >= 75 && has(lost, "blocker")) return "C";
  if (points >= 90) return has(lost, "major") ? "B" : "A";
  if (points >= 75) return "B";
  if (points >= 60) return "C";
  return points >= 40 ? "D" : "F";
}

function has(lost: Score["lost"], severity: Severity): boolean {
  return lost.some((item) => item.severity === severity);
}

/** `100 − 30 (1 check with a blocker) − 20 (2 checks with a major) = 50; a blocker allows no better than C.` Checks are counted, not findings. */
function explain(lost: Score["lost"], checks: readonly Judged[]): string {
  const parts = [sum(lost)];
  if (has(lost, "blocker")) parts.push("a blocker allows no better than C");
  else if (has(lost, "major")) parts.push("a major allows no better than B");
  const open = checks.filter(({ outcome }) => outcome === "unfinished").length;
  if (open > 0)
    parts.push(
      `${count(open, "check")} could not be finished and ${open === 1 ? "counts" : "count"} for nothing${isHalfDone(checks) ? ", which allows no better than B" : ""}`,
    );
  return `${parts.join("; ")}.`;
}

function sum(lost: Score["lost"]): string {
  if (lost.length === 0) return "100: no check found anything that costs points";
  const terms = severities.flatMap((severity) => {
    const checks = lost.filter((item) => item.severity === severity);
    return checks.length === 0 ? [] : [`− ${checks.length * costs[severity]} (${count(checks.length, "check")} with a ${severity})`];
  });
  const left = lost.reduce((points, item) => points - item.points, 100);
  return `100 ${terms.join(" ")} ${left < 0 ? "is less than nothing, so 0" : `= ${left}`}`;
}

function explainNothing(checks: readonly Judged[]): string {
  if (checks.length === 0) return "No check was run, so there is nothing to score.";
  return `None of ${count(checks.length, "check")} came to an answer, so there is nothing to score.`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
