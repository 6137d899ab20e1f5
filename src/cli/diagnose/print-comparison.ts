import { closeSync, openSync, readSync } from "node:fs";
import path from "node:path";
import { comparisonToJson, comparisonToMarkdown, comparisonToTerminal } from "../../diagnose/formats/comparison.ts";
import { maxReportBytes, readReport } from "../../diagnose/formats/json-report.ts";
import { compareReports, type failLimits, failsAt } from "../../diagnose/report/compare-reports.ts";
import type { Report } from "../../diagnose/report/report.ts";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import { type Home, homeAt } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import type { ProcessContext } from "../process-context.ts";
import type { Terminal } from "../terminal.ts";
import { listKept } from "./kept-reports.ts";

export type ComparisonFormat = "terminal" | "json" | "markdown";

const partBytes = 256 * 1024;

interface Comparing {
  readonly format: ComparisonFormat;
  /** The change that makes the exit code 1. */
  readonly limit: (typeof failLimits)[number] | undefined;
  readonly terminal: Terminal;
  readonly context: ProcessContext;
}

/** Compares two reports, older one first, or the last two that are kept; prints what changed. */
export function printComparison(files: readonly string[], { format, limit, terminal, context }: Comparing): ExitCode {
  const [before, after] = files.map((file) => path.resolve(context.cwd, file));
  const comparison =
    before === undefined || after === undefined
      ? compareKept(homeAt(context.env))
      : compareReports(load(before), load(after));
  terminal.print(draw(comparison, format, terminal));
  return limit !== undefined && failsAt(comparison, limit) ? Exit.CommandFailed : Exit.Ok;
}

/** The last report that is kept, and the one before it that is of the same target. */
function compareKept(home: Home): ReturnType<typeof compareReports> {
  const files = listKept(home).toReversed();
  const [last] = files;
  const after = last === undefined ? undefined : load(last);
  for (const file of after === undefined ? [] : files.slice(1)) {
    const before = load(file);
    if (after !== undefined && before.target.name === after.target.name) return compareReports(before, after);
  }
  throw new UsageError(
    after === undefined
      ? `No diagnosis was kept yet; \`${thisProgram.name} diagnose\` keeps one, or give two reports: \`${thisProgram.name} compare before.json after.json\`.`
      : `There is one report of ${after.target.name} only; diagnose it once more, or give two reports: \`${thisProgram.name} compare before.json after.json\`.`,
  );
}

function draw(comparison: ReturnType<typeof compareReports>, format: ComparisonFormat, terminal: Terminal): string {
  if (format === "json") return comparisonToJson(comparison);
  if (format === "markdown") return comparisonToMarkdown(comparison);
  // What goes into a file or a pipe has neither colours nor the width of a window.
  return comparisonToTerminal(
    comparison,
    terminal.isDataShown ? { colors: terminal.colors, width: terminal.columns } : {},
  );
}

function load(file: string): Report {
  return readReport(readText(file), file);
}

/** The text of a file, or of a pipe, that is no longer than a report can be. */
function readText(file: string): string {
  try {
    const descriptor = openSync(file, "r");
    try {
      return readAll(descriptor, file);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${file} cannot be read: ${reasonOf(error as NodeJS.ErrnoException)}.`);
  }
}

function readAll(descriptor: number, file: string): string {
  const parts: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const part = Buffer.alloc(partBytes);
    const length = readSync(descriptor, part);
    if (length === 0) return Buffer.concat(parts).toString("utf8");
    bytes += length;
    if (bytes > maxReportBytes)
      throw new UsageError(
        `${file} is longer than ${maxReportBytes / 1024 ** 2} MB, and no report is; give the file that \`${thisProgram.name} diagnose … --format json\` wrote.`,
      );
    parts.push(part.subarray(0, length));
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return "it is a folder; give the JSON report in it";
  return code === "EACCES" ? "you may not read it" : message;
}
