import { type CalledTool, isSuccess } from "../asking/tool-calls.ts";
import { type Severity, severities } from "../check.ts";
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

/**
 * What the findings leave of 100 points. A check costs once, at its worst finding: forty tools with one fault are one
 * fault.
 */
export function scoreOf(findings: readonly Weighed[], checks: readonly Judged[]): Score {
  const lost = toLost(findings);
  // A score that nothing was judged for would praise a server nobody could reach.
  if (lost.length === 0 && !checks.some(isJudged)) return ungraded(explainNothing(checks));
  const points = Math.max(
    0,
    lost.reduce((left, item) => left - item.points, 100),
  );
  const grade = gradeOf(points, lost);
  return { points, grade: grade === "A" && isHalfDone(checks) ? "B" : grade, lost, explanation: explain(lost, checks) };
}

/** Nothing is said about a server as a whole. */
export function ungraded(explanation: string): Score {
  return { points: null, grade: null, lost: [], explanation };
}

/** Why a server gets no grade: none of its tools was seen to work. Undefined where one was. */
export function whyUngraded(tools: number, calls: readonly CalledTool[]): string | undefined {
  if (calls.some(isSuccess)) return undefined;
  if (tools === 0) return "The server lists no tools, so nothing could be called and there is no grade.";
  const made = calls.filter(({ outcome }) => outcome !== "not called");
  if (made.length === 0)
    return "No tool was called, so there is no grade: none says that it only reads (readOnlyHint) and takes arguments that can be guessed; name one that may be called with --tool <name> and --args.";
  const [failed] = made.filter(({ outcome }) => outcome === "failed");
  const told = failed ?? made[0];
  const how = `${told?.tool} ${failed === undefined ? "had not ended" : "failed"}${told?.note === undefined ? "" : ` (${told.note.slice(0, maxNote)})`}`;
  return `${made.length === 1 ? "The one tool that was called did not succeed" : `None of the ${made.length} tools that were called succeeded`}, so there is no grade: ${how}; make one work, or give arguments that do with --tool <name> and --args.`;
}

const maxNote = 160;

/** A check that needs a call of a tool, and for which no tool was called or none took long enough. */
const needsCall = /--tool\b/;

/**
 * Returns why a server gets no grade although a call succeeded: most checks of a suite that cost points need a call
 * that was not made. Checks that do not apply to the server, and those of `--full`, do not count. Undefined where every
 * suite has enough answers.
 */
export function whyUnrun(
  checks: readonly Pick<CheckResult, "id" | "suite" | "severity" | "outcome" | "note">[],
): string | undefined {
  const weighed = checks.filter(({ severity }) => costs[severity] > 0);
  for (const suite of new Set(weighed.map((check) => check.suite))) {
    const own = weighed.filter((check) => check.suite === suite);
    const unrun = own.filter(({ outcome, note = "" }) => outcome === "skipped" && needsCall.test(note));
    if (unrun.length <= own.filter(isJudged).length) continue;
    const which = unrun.length === own.length ? `None of the ${own.length}` : `${unrun.length} of the ${own.length}`;
    return `${which} ${suite} checks ${unrun.length === own.length ? "ran" : "did not run"}, so there is no grade: they need a slow tool; name one with --tool <name> and --args, or leave them out with --suites.`;
  }
  return undefined;
}

/** The one check that says why nobody could speak to a server. */
const answersId = "protocol/answers";

type Scored = Pick<Report, "score"> & { readonly checks: readonly Judged[]; readonly findings: readonly Weighed[] };
type Graded = Score & { readonly points: number; readonly grade: NonNullable<Score["grade"]> };

/** False where nothing was judged but that the server does not answer: points for that would be points for nothing. */
export function hasScore<T extends Scored>(report: T): report is T & { readonly score: Graded } {
  const { score, checks, findings } = report;
  // Reports of before had 0 points, and nothing lost, where there was no grade.
  if (score.grade === null || score.points === null || (score.points === 0 && score.lost.length === 0)) return false;
  return checks.some(({ outcome }) => outcome === "passed") || findings.some(({ check }) => check !== answersId);
}

/** Why there is none, in one sentence. */
export function whyNoScore({ score }: Pick<Report, "score">): string {
  return score.lost.length === 0 ? score.explanation : "The server could not be spoken to, so there is no grade.";
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

function gradeOf(points: number, lost: Score["lost"]): Graded["grade"] {
  if (points >= 75 && has(lost, "blocker")) return "C";
  if (points >= 90) return has(lost, "major") ? "B" : "A";
  if (points >= 75) return "B";
  if (points >= 60) return "C";
  return points >= 40 ? "D" : "F";
}

function has(lost: Score["lost"], severity: Severity): boolean {
  return lost.some((item) => item.severity === severity);
}

/**
 * `100 − 30 (1 check with a blocker) − 20 (2 checks with a major) = 50; a blocker allows no better than C.` Checks are
 * counted, not findings.
 */
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
    return checks.length === 0
      ? []
      : [`− ${checks.length * costs[severity]} (${count(checks.length, "check")} with a ${severity})`];
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
