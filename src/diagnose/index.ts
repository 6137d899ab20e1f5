export type { CalledTool } from "./asking/tool-calls.ts";
export type { Evidence, Severity, SuiteName } from "./check.ts";
export { diagnoseServer } from "./diagnose-command.ts";
export type { ToolToCall as ToolWish } from "./diagnosis-target.ts";
export { type DiagnoseOptions, diagnose } from "./public.ts";
export {
  type Comparison,
  compareReports as compare,
  type FindingChange as Change,
  type NewFinding,
  type Side,
  type Unjudged,
  type Unseen,
} from "./report/compare-reports.ts";
export type { CheckResult, Finding, Report, ReportTarget, Score, SkippedChecks } from "./report/report.ts";
export type { DiagnosisStep as Step } from "./run-diagnosis.ts";
