import { closeSync, openSync, readSync } from "node:fs";
import { compareReports, failLimits, failsAt } from "../../diagnose/report/compare-reports.ts";
import { comparisonToJson, comparisonToMarkdown, comparisonToTerminal } from "../../diagnose/formats/comparison.ts";
import { maxReportBytes, readReport } from "../../diagnose/formats/json-report.ts";
import type { Report } from "../../diagnose/report/report.ts";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import { homeAt } from "../../paths.ts";
import { printHelp } from "../screens/layout.ts";
import type { VerbCall } from "../main.ts";
import { parseVerb } from "../verb.ts";
import { listKept } from "../diagnose/kept-reports.ts";

const description = `Show what changed between two reports of \`meanwhile diagnose --format json\`, older one first.
Without any, the last diagnosis is compared with the one before it of the same target.

Findings are compared by their ids. One that vanished because its check came to
no answer is not gone: it was not looked at any more, and is listed as such.

--fail-on makes the exit code 1 when the second report has
  new          a finding that the first has not
  worse        ... or one that weighs more than before
  unjudged     ... or a check that came to an answer only in the first
  any-finding  a finding at all, new or old`;

const formats = ["terminal", "json", "markdown"] as const;
type Format = (typeof formats)[number];

const partBytes = 256 * 1024;

export async function run(call: VerbCall): Promise<ExitCode> {
  const parsed = parseVerb("compare", description, call.words, (program) => {
    program.argument("[before]").argument("[after]").usage("[<before.json> <after.json>] [options]");
    program.option("--fail-on <change>", `exit 1 at this change: ${failLimits.join(", ")}`);
    program.option("--format <format>", `how to print it: ${formats.join(", ")} (default terminal)`);
  });
  if ("help" in parsed) {
    printHelp(parsed.help, call.terminal);
    return Exit.Ok;
  }
  const limit = oneOf("--fail-on", parsed.options.failOn, failLimits);
  const format = oneOf("--format", parsed.options.format, formats) ?? "terminal";
  const [before, after] = parsed.operands;
  if (before !== undefined && after === undefined)
    throw new UsageError("Give two reports, the older one first: `meanwhile compare before.json after.json`.");
  const comparison =
    before === undefined || after === undefined ? compareKept() : compareReports(load(before), load(after));
  call.terminal.print(draw(comparison, format, call));
  return limit !== undefined && failsAt(comparison, limit) ? Exit.CommandFailed : Exit.Ok;
}

/** The last report that is kept, and the one before it that is of the same target. */
function compareKept(): ReturnType<typeof compareReports> {
  const files = listKept(homeAt(process.env)).toReversed();
  const [last] = files;
  const after = last === undefined ? undefined : load(last);
  for (const file of after === undefined ? [] : files.slice(1)) {
    const before = load(file);
    if (after !== undefined && before.target.name === after.target.name) return compareReports(before, after);
  }
  throw new UsageError(
    after === undefined
      ? "No diagnosis was kept yet; `meanwhile diagnose` keeps one, or give two reports: `meanwhile compare before.json after.json`."
      : `There is one report of ${after.target.name} only; diagnose it once more, or give two reports: \`meanwhile compare before.json after.json\`.`,
  );
}

function draw(comparison: ReturnType<typeof compareReports>, format: Format, { terminal }: VerbCall): string {
  if (format === "json") return comparisonToJson(comparison);
  if (format === "markdown") return comparisonToMarkdown(comparison);
  // What goes into a file or a pipe has neither colours nor the width of a window.
  return comparisonToTerminal(
    comparison,
    terminal.isDataShown ? { colors: terminal.colors, width: terminal.columns } : {},
  );
}

function oneOf<T extends string>(flag: string, given: unknown, words: readonly T[]): T | undefined {
  if (given === undefined) return undefined;
  const word = words.find((item) => item === given);
  if (word === undefined) throw new UsageError(`${flag} is one of ${words.join(", ")}, not ${JSON.stringify(given)}.`);
  return word;
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
        `${file} is longer than ${maxReportBytes / 1024 ** 2} MB, and no report is; give the file that \`meanwhile diagnose … --format json\` wrote.`,
      );
    parts.push(part.subarray(0, length));
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === "ENOENT") return "there is no such file";
  if (code === "EISDIR") return "it is a folder; give the JSON report in it";
  return code === "EACCES" ? "you may not read it" : message;
}
