import { toTimestamp } from "../../clock.ts";
import { fieldsOf, textOf } from "../../wire/json.ts";
import { legacyRevision, modernRevision, tasksExtension } from "../../wire/revisions.ts";
import type { Facts } from "../asking/facts.ts";
import { type CalledTool, tellNamedFailures } from "../asking/tool-calls.ts";
import { type Check, type SuiteName, severities, type Verdict } from "../check.ts";
import { type DiagnosisTarget, nameOf } from "../diagnosis-target.ts";
import { printable } from "../text.ts";
import { toStable } from "./deterministic.ts";
import type { CheckResult, Finding, Report, ReportTarget } from "./report.ts";
import { scoreOf, ungraded, whyUngraded, whyUnrun } from "./score.ts";
import { groupSkipped } from "./skipped.ts";
import { explainUntested, tellUntested } from "./untested.ts";

/** A check and what became of it. */
export interface Asked {
  readonly check: Check;
  readonly verdict: Verdict | { readonly outcome: "unfinished"; readonly why: string };
  readonly durationMs: number;
}

export interface Diagnosis {
  readonly target: DiagnosisTarget;
  readonly facts: Facts;
  readonly asked: readonly Asked[];
  readonly calls: readonly CalledTool[];
  readonly suites: readonly SuiteName[];
  readonly isFull: boolean;
  readonly isDeterministic: boolean;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly version: string;
  readonly incomplete: string | undefined;
}

/** Makes the report of what was asked. */
export function assemble(diagnosis: Diagnosis): Report {
  const { asked, isDeterministic, incomplete, facts } = diagnosis;
  const calls = diagnosis.calls.map(({ tool, isEnd: _isEnd, ...call }) => ({ tool: printable(tool, 200), ...call }));
  const checks = asked.map(toResult);
  const findings = asked
    .flatMap(toFindings)
    .sort((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
  const why =
    facts.problem === undefined
      ? (whyUngraded(facts.tools.length, calls) ?? explainUntested(findings) ?? whyUnrun(checks))
      : "The server could not be spoken to, so there is no grade.";
  const headline = [tellNamedFailures(calls), tellUntested(findings)].filter((part) => part !== undefined).join(" ");
  const report: Report = {
    ...(headline !== "" && { headline }),
    schema: "meanwhile/diagnose",
    version: 1,
    madeBy: { name: "meanwhile", version: diagnosis.version },
    target: describe(diagnosis.target, facts),
    startedAt: toTimestamp(diagnosis.startedAt),
    durationMs: Math.round(diagnosis.durationMs),
    suites: diagnosis.suites,
    isFull: diagnosis.isFull,
    score: why === undefined ? scoreOf(findings, checks) : ungraded(why),
    calls,
    skipped: groupSkipped(checks),
    ...(incomplete !== undefined && { incomplete }),
    findings,
    checks,
  };
  return isDeterministic ? toStable(report) : report;
}

function toResult({ check, verdict, durationMs }: Asked): CheckResult {
  const { id, question, severity } = check;
  const note = verdict.outcome === "passed" ? verdict.note : "why" in verdict ? verdict.why : undefined;
  return {
    id,
    suite: suiteOf(check),
    question,
    severity,
    outcome: verdict.outcome,
    ...(note !== undefined && { note: printable(note) }),
    durationMs: Math.round(durationMs),
    ...(verdict.outcome === "passed" && verdict.evidence !== undefined && { evidence: verdict.evidence }),
    ...("data" in verdict && verdict.data !== undefined && { data: verdict.data }),
  };
}

function toFindings({ check, verdict }: Asked): Finding[] {
  if (verdict.outcome !== "failed") return [];
  const { id, severity, why, remedy, source } = check;
  return verdict.findings.map((fault) => ({
    id: fault.subject === undefined ? id : `${id}:${printable(fault.subject, 200)}`,
    check: id,
    suite: suiteOf(check),
    severity: fault.severity ?? severity,
    ...(fault.subject !== undefined && { subject: printable(fault.subject, 200) }),
    title: printable(fault.title),
    why,
    remedy: fault.remedy === undefined ? remedy : printable(fault.remedy, 2_000),
    source,
    evidence: fault.evidence,
    ...(fault.isUntested === true && { isUntested: true }),
  }));
}

export function suiteOf({ id }: Check): SuiteName {
  return id.slice(0, id.indexOf("/")) as SuiteName;
}

function describe(target: DiagnosisTarget, facts: Facts): ReportTarget {
  const era = facts.modern ?? facts.legacy;
  const name = printable(textOf(era?.serverInfo.name) ?? "", 100);
  const version = printable(textOf(era?.serverInfo.version) ?? "", 50);
  const { modern, legacy } = facts;
  const hasModernTasks = fieldsOf(modern?.capabilities.extensions)[tasksExtension] !== undefined;
  const hasLegacyTasks = legacy?.revision === legacyRevision && legacy.capabilities.tasks !== undefined;
  return {
    transport: target.kind,
    name: printable(nameOf(target), 1_000),
    ...(name !== "" && { server: { name, version } }),
    revisions: [modern, legacy].flatMap((one) => (one === undefined ? [] : [printable(one.revision, 40)])),
    tasks: [...(hasModernTasks ? [modernRevision] : []), ...(hasLegacyTasks ? [legacyRevision] : [])],
    tools: facts.tools.length,
  };
}
