import type { Severity } from "../check.ts";
import type { CheckResult, Finding, Report, Score } from "./report.ts";
import { hasScore, isJudged, severityRank } from "./score.ts";

/**
 * What changed between two reports, by the ids of findings: a title may hold a figure that differs each time. A finding
 * is gone only when its check looked again and did not see it; where nobody looked, nothing is known.
 */
export interface Comparison {
  readonly before: Side;
  readonly after: Side;
  /** Points of the second minus points of the first; left out where one of them has no grade. */
  readonly points?: number;
  readonly new: readonly NewFinding[];
  readonly gone: readonly Finding[];
  readonly worse: readonly FindingChange[];
  readonly better: readonly FindingChange[];
  /** How many findings are in both, with the same severity. */
  readonly same: number;
  /** Findings of the first report whose check came to no answer in the second. */
  readonly unseen: readonly Unseen[];
  /** Checks that came to an answer in the first report and to none in the second. */
  readonly unjudged: readonly Unjudged[];
  /** Why the two may not be comparable. */
  readonly warnings: readonly string[];
}

export interface Side {
  readonly target: string;
  readonly server?: { readonly name: string; readonly version: string };
  readonly madeBy: string;
  readonly startedAt: string;
  /** Left out where there is no grade. */
  readonly score?: { readonly points: number; readonly grade: NonNullable<Score["grade"]> };
  readonly findings: number;
}

export interface NewFinding extends Finding {
  /** True: its check came to no answer in the first report, so it may be old. */
  readonly isFirstLook: boolean;
}

export interface FindingChange {
  readonly finding: Finding;
  readonly before: Severity;
}

export interface Unseen {
  readonly finding: Finding;
  readonly why: string;
}

export interface Unjudged {
  readonly check: string;
  readonly before: "passed" | "failed";
  readonly after: "skipped" | "unfinished" | "missing";
  readonly why: string;
}

export function compareReports(before: Report, after: Report): Comparison {
  const [older, newer] = [byKey(before.findings), byKey(after.findings)];
  const [checksBefore, checksAfter] = [byId(before.checks), byId(after.checks)];
  const isLookedAt = (checks: ReadonlyMap<string, CheckResult>, id: string) => {
    const check = checks.get(id);
    return check !== undefined && isJudged(check);
  };
  const vanished = [...older].filter(([key]) => !newer.has(key)).map(([, finding]) => finding);
  const changes = [...newer].flatMap(([key, finding]) => {
    const old = older.get(key);
    return old === undefined
      ? []
      : [{ finding, before: old.severity, by: severityRank(old.severity) - severityRank(finding.severity) }];
  });
  const toChange = ({ finding, before: severity }: { finding: Finding; before: Severity }): FindingChange => ({
    finding,
    before: severity,
  });
  return {
    before: toSide(before),
    after: toSide(after),
    ...pointsBetween(before, after),
    new: worstFirst(
      [...newer]
        .filter(([key]) => !older.has(key))
        .map(([, finding]) => ({ ...finding, isFirstLook: !isLookedAt(checksBefore, finding.check) })),
    ),
    gone: worstFirst(vanished.filter(({ check }) => isLookedAt(checksAfter, check))),
    worse: changes.filter(({ by }) => by > 0).map(toChange),
    better: changes.filter(({ by }) => by < 0).map(toChange),
    same: changes.filter(({ by }) => by === 0).length,
    unseen: worstFirst(vanished.filter(({ check }) => !isLookedAt(checksAfter, check))).map((finding) => ({
      finding,
      why: whyNot(checksAfter.get(finding.check)),
    })),
    unjudged: before.checks.filter(isJudged).flatMap((check) => toUnjudged(check, checksAfter.get(check.id))),
    warnings: toWarnings(before, after),
  };
}

function pointsBetween(before: Report, after: Report): { points?: number } {
  return hasScore(before) && hasScore(after) ? { points: after.score.points - before.score.points } : {};
}

export const failLimits = ["new", "worse", "unjudged", "any-finding"] as const;
/** From which change on a comparison counts as failed; each of the first three includes the ones before it. */
type FailLimit = (typeof failLimits)[number];

export function failsAt(comparison: Comparison, limit: FailLimit): boolean {
  if (limit === "any-finding") return comparison.after.findings > 0;
  if (comparison.new.length > 0) return true;
  if (limit === "new") return false;
  return comparison.worse.length > 0 || (limit === "unjudged" && comparison.unjudged.length > 0);
}

/** By id; should one occur twice, the first of them in both reports belong together, then the second. */
function byKey(findings: readonly Finding[]): Map<string, Finding> {
  const seen = new Map<string, number>();
  return new Map(
    findings.map((finding) => {
      const number = (seen.get(finding.id) ?? 0) + 1;
      seen.set(finding.id, number);
      return [`${number} ${finding.id}`, finding];
    }),
  );
}

function byId(checks: readonly CheckResult[]): Map<string, CheckResult> {
  return new Map(checks.map((check) => [check.id, check]));
}

function worstFirst<T extends Finding>(findings: readonly T[]): T[] {
  return [...findings].sort((a, b) => severityRank(a.severity) - severityRank(b.severity));
}

function toUnjudged(before: CheckResult, after: CheckResult | undefined): Unjudged[] {
  if (after !== undefined && isJudged(after)) return [];
  const outcome = after === undefined ? "missing" : after.outcome;
  return [
    {
      check: before.id,
      before: before.outcome as Unjudged["before"],
      after: outcome as Unjudged["after"],
      why: whyNot(after),
    },
  ];
}

function whyNot(check: CheckResult | undefined): string {
  if (check === undefined) return "The second report does not have this check.";
  return check.note ?? (check.outcome === "skipped" ? "It was skipped." : "It could not be finished.");
}

function toSide(report: Report): Side {
  const { target, madeBy, startedAt, findings } = report;
  return {
    target: target.name,
    ...(target.server !== undefined && { server: target.server }),
    madeBy: madeBy.version,
    startedAt,
    ...(hasScore(report) && { score: { points: report.score.points, grade: report.score.grade } }),
    findings: findings.length,
  };
}

function toWarnings(before: Report, after: Report): string[] {
  const missing = before.suites.filter((suite) => !after.suites.includes(suite));
  const added = after.suites.filter((suite) => !before.suites.includes(suite));
  return [
    ...(before.target.name === after.target.name
      ? []
      : [`The reports are of different targets: ${before.target.name} and ${after.target.name}.`]),
    ...(missing.length > 0 ? [`The second report leaves out ${missing.join(", ")}.`] : []),
    ...(added.length > 0 ? [`The first report leaves out ${added.join(", ")}; what is new there may be old.`] : []),
    ...(before.isFull === after.isFull
      ? []
      : [`Only the ${before.isFull ? "first" : "second"} report was made with --full.`]),
    ...(before.madeBy.version === after.madeBy.version
      ? []
      : [
          `They were made by different versions of Meanwhile, ${before.madeBy.version} and ${after.madeBy.version}; a new finding may be a new check.`,
        ]),
    ...(before.incomplete === undefined ? [] : [`The first report is incomplete: ${before.incomplete}`]),
    ...(after.incomplete === undefined ? [] : [`The second report is incomplete: ${after.incomplete}`]),
    ...(Date.parse(before.startedAt) > Date.parse(after.startedAt)
      ? ["The first report is the newer one; the older one comes first."]
      : []),
  ];
}
