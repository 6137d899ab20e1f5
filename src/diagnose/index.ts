export type { CalledTool } from "./calls.ts";
export type { Evidence, Severity, SuiteName } from "./check.ts";
export { diagnoseServer } from "./command.ts";
export {
  type Change,
  type Comparison,
  compareReports as compare,
  type NewFinding,
  type Side,
  type Unjudged,
  type Unseen,
} from "./compare.ts";
export type { Step } from "./diagnose.ts";
export { type DiagnoseOptions, diagnose } from "./public.ts";
export type { CheckResult, Finding, Report, ReportTarget, Score, SkippedChecks } from "./report.ts";
export type { ToolWish } from "./target.ts";
