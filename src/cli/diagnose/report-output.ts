import type { Severity } from "../../diagnose/check.ts";

export const reportFormats = ["terminal", "json", "markdown", "html", "sarif"] as const;
export type ReportFormat = (typeof reportFormats)[number];

/** How many are kept in the home without being asked for. */
export const keptReports = 50;

/** What becomes of a report. */
export interface ReportOutput {
  readonly formats: readonly ReportFormat[];
  readonly out: string | undefined;
  readonly failOn: Severity | "never";
  readonly isQuiet: boolean;
}
