export type { Evidence, Severity, SuiteName } from "./check.ts";
export { diagnoseServer } from "./command.ts";
export type { CheckResult, Finding, Report, ReportTarget, Score } from "./report.ts";
