import { writeFileSync } from "node:fs";
import path from "node:path";
import { systemClock } from "../../clock.ts";
import { isNamedFailure } from "../../diagnose/asking/tool-calls.ts";
import type { Report } from "../../diagnose/report/report.ts";
import { hasScore, reaches } from "../../diagnose/report/score.ts";
import { Exit, type ExitCode, messageOf, UsageError } from "../../errors.ts";
import { type Home, homeAt } from "../../paths.ts";
import { clean, type Terminal } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { keepReport } from "./kept-reports.ts";
import type { ReportFormat, ReportOutput } from "./report-output.ts";

const extensions = { json: "json", markdown: "md", html: "html", sarif: "sarif" } as const;

/** Prints or writes the report; undefined where the work goes on without us. */
export async function writeReport(
  report: Report | undefined,
  { formats, out, failOn, isQuiet }: ReportOutput,
  { terminal, context }: Pick<TypedVerb, "terminal" | "context">,
): Promise<ExitCode> {
  if (report === undefined) return Exit.Ok;
  if (out === undefined) terminal.print(await render(report, formats[0] ?? "terminal", terminal));
  else {
    if (!isQuiet) terminal.print(await render(report, "terminal", terminal));
    const files = await writeReports(report, formats, { out, terminal, cwd: context.cwd });
    if (!isQuiet) terminal.say(`${terminal.colors.green("✓")} Reports written to: ${clean(files.join(", "))}\n`);
  }
  await keep(report, homeAt(context.env), { terminal, isQuiet });
  return isFailure(report, failOn) ? Exit.CommandFailed : Exit.Ok;
}

/** True where the exit code is 1. An F counts whatever `--fail-on` is. */
function isFailure(report: Report, failOn: ReportOutput["failOn"]): boolean {
  if (hasScore(report) && report.score.grade === "F") return true;
  if (failOn === "never") return false;
  // A server that wants credentials was not judged, and that is not fine.
  const isLocked = report.checks.some(({ id, outcome }) => id === "protocol/answers" && outcome === "skipped");
  return (
    isLocked ||
    (report.calls ?? []).some(isNamedFailure) ||
    report.findings.some(({ severity }) => reaches(severity, failOn))
  );
}

/**
 * Into the home, so that it can be compared with the next one; a home that cannot be written to costs nobody the
 * report.
 */
async function keep(
  report: Report,
  home: Home,
  { terminal, isQuiet }: { terminal: Terminal; isQuiet: boolean },
): Promise<void> {
  try {
    const file = await keepReport(home, report, systemClock.now());
    if (!isQuiet) terminal.say(`${terminal.colors.green("✓")} Report kept: ${clean(file)}\n`);
  } catch (error) {
    if (!isQuiet)
      terminal.say(`${terminal.colors.yellow("!")} The report is not kept in the home: ${clean(messageOf(error))}\n`);
  }
}

async function writeReports(
  report: Report,
  formats: readonly ReportFormat[],
  { out, terminal, cwd }: { out: string; terminal: Terminal; cwd: string },
): Promise<string[]> {
  const files: string[] = [];
  try {
    for (const format of formats) {
      if (format === "terminal") continue;
      const file = path.join(out, `diagnose.${extensions[format]}`);
      writeFileSync(path.resolve(cwd, file), await render(report, format, terminal));
      files.push(file);
    }
  } catch (cause) {
    throw new UsageError(`--out ${clean(out)} cannot be written: ${messageOf(cause)}`, { cause });
  }
  return files;
}

async function render(report: Report, format: ReportFormat, terminal: Terminal): Promise<string> {
  switch (format) {
    case "terminal":
      // What goes into a file or a pipe has neither colours nor the width of a window.
      return (await import("../../diagnose/formats/terminal-report.ts")).toTerminal(
        report,
        terminal.isDataShown ? { colors: terminal.colors, width: terminal.columns } : {},
      );
    case "json":
      return (await import("../../diagnose/formats/json-report.ts")).toJson(report);
    case "markdown":
      return (await import("../../diagnose/formats/markdown-report.ts")).toMarkdown(report);
    case "html":
      return (await import("../../diagnose/formats/html-report.ts")).toHtml(report);
    case "sarif":
      return (await import("../../diagnose/formats/sarif-report.ts")).toSarif(report);
  }
}
