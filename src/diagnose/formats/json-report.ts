import { UsageError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import type { Report } from "../report/report.ts";
import { oneLine, shorten } from "./inert.ts";
import { toPlainJson } from "./plain-json.ts";
import { reportSchema } from "./report-schema.ts";

const reportVersion = 1;
/** Far more than the largest report; a file beyond it is something else. */
export const maxReportBytes = 32 * 1024 * 1024;

/** The report as it is kept: the same data, with what a terminal would obey written as escapes. */
export function toJson(report: Report): string {
  return toPlainJson(report);
}

/** Reads a report that was kept. Throws a UsageError that names the file and says what is wrong with it. */
export function readReport(text: string, name: string): Report {
  const value = parse(text, name);
  const { version, madeBy } = (typeof value === "object" && value !== null ? value : {}) as {
    version?: unknown;
    madeBy?: { name?: unknown; version?: unknown };
  };
  if (madeBy?.name !== "meanwhile")
    throw new UsageError(
      `${name} is no report of a diagnosis; \`${thisProgram.name} diagnose … --format json\` writes one.`,
    );
  if (typeof version === "number" && version > reportVersion)
    throw new UsageError(
      `${name} is a report of version ${version}, made by Meanwhile ${shorten(oneLine(String(madeBy.version)), 40)}; this one reads version ${reportVersion}: update Meanwhile.`,
    );
  const checked = reportSchema.safeParse(value);
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  throw new UsageError(
    `${name} is a damaged report: ${shorten(oneLine(pathOf(issue?.path ?? [])), 120)} is not as it was written (${shorten(oneLine(issue?.message ?? ""), 160)}).`,
  );
}

function parse(text: string, name: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    throw new UsageError(
      text.trim() === ""
        ? `${name} is empty; a report is JSON.`
        : `${name} is not JSON; a report is what \`${thisProgram.name} diagnose … --format json\` writes.`,
    );
  }
}

/** `findings[3].severity` */
function pathOf(path: readonly PropertyKey[]): string {
  const joined = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return joined.replace(/^\./, "") || "the whole";
}
