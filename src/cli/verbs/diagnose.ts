import { accessSync, constants, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Command as Program } from "commander";
import { systemClock } from "../../clock.ts";
import { closest } from "../../command/suggest.ts";
import { type Severity, type SuiteName, severities, suiteNames } from "../../diagnose/check.ts";
import type { Report } from "../../diagnose/report/report.ts";
import { hasScore, reaches } from "../../diagnose/report/score.ts";
import { checkUrl, type DiagnosisTarget, type ToolToCall } from "../../diagnose/diagnosis-target.ts";
import { Cancelled, Exit, type ExitCode, messageOf, UsageError } from "../../errors.ts";
import { homeAt } from "../../paths.ts";
import { executable, flagWords, packageVersion } from "../../project/project.ts";
import { ProgressTrack } from "../../task/progress.ts";
import { readJsonArguments } from "../remote/call-arguments.ts";
import { printHelp } from "../screens/layout.ts";
import type { GlobalFlags, VerbCall } from "../main.ts";
import { quoteWord, readTarget } from "../remote/server-target.ts";
import { clean, StageView, type Terminal } from "../terminal.ts";
import { beforeDashes } from "../command-usage.ts";
import { collect, parseVerb } from "../verb.ts";
import { readHeaders } from "../remote/connect-target.ts";
import { keepReport, keptReports } from "../diagnose/kept-reports.ts";

const description = `Say whether an MCP server will survive in the hosts people use, and what to change.

The target is one of
  https://host/mcp      a URL
  .                     this project's own server
  -- command …          a server to start; the words go to the system as they are
Only tools that say they only read are called, and those you name with --tool.`;

const examples = `
Suites: ${suiteNames.join(", ")}

Examples:
  $ meanwhile diagnose https://example.org/mcp --token-env TOKEN
  $ meanwhile diagnose --full --out reports -- npx -y @modelcontextprotocol/server-everything
  $ meanwhile diagnose . --suites tasks,hosts --tool report_build --args '{"quarter":"Q3"}'

Exit codes: 0 fine; 1 a finding reaches --fail-on, a call that you named failed,
or the grade is F; 2 wrong words; 70 ours; 130 cancelled.
The last ${keptReports} reports are kept in the home's folder reports; \`meanwhile compare\` shows what changed.
`;

/** What the words mean. */
export interface Typed {
  readonly target: DiagnosisTarget;
  readonly suites: readonly SuiteName[] | undefined;
  readonly isFull: boolean;
  readonly tools: readonly ToolToCall[];
  readonly budgetMs: number | undefined;
  readonly memoryMb: number | undefined;
  readonly isDeterministic: boolean;
  readonly formats: readonly Format[];
  readonly out: string | undefined;
  readonly failOn: Severity | "never";
  readonly isQuiet: boolean;
}

export async function run(call: VerbCall): Promise<ExitCode> {
  const own = beforeDashes(call.words);
  const parsed = parseVerb("diagnose", description, own, declare);
  if ("help" in parsed) {
    printHelp(`${parsed.help}${examples}`, call.terminal);
    return Exit.Ok;
  }
  const { options, operands } = parsed;
  const output = readOutput(options);
  const { followDiagnosis, startDiagnosis } = await import("../diagnose/diagnose-task.ts");
  if (typeof options.task === "string") {
    if (operands.length > 0 || own.length < call.words.length)
      throw new UsageError("--task takes up a diagnosis that was started before; leave the target away.");
    return await finish(
      await followDiagnosis(options.task, {
        call,
        isQuiet: output.isQuiet,
        pollIntervalMs: readMs(options, "pollInterval"),
      }),
      output,
      call.terminal,
    );
  }
  const behind = own.length === call.words.length ? undefined : call.words.slice(own.length + 1);
  const wishes = { call, ttlMs: readMs(options, "taskTtl"), pollIntervalMs: readMs(options, "pollInterval") };
  refuseMixed(options);
  const typed: Typed = { ...output, ...readWish(options), target: toTarget(operands, behind, options, call.flags) };
  if (typed.target.kind === "stdio" && !typed.isQuiet)
    call.terminal.say(
      `${call.terminal.colors.yellow("!")} This command is started on your machine, several times: ${clean(typed.target.argv.map(quoteWord).join(" "))}\n`,
    );
  if (options.async === true || options.detach === true)
    return await finish(
      await startDiagnosis(typed, { ...wishes, isDetached: options.detach === true }),
      typed,
      call.terminal,
    );
  return await finish(await runHere(typed, call.terminal), typed, call.terminal);
}

/** Words that do not go together. */
function refuseMixed(options: Readonly<Record<string, unknown>>): void {
  const isTask = options.async === true || options.detach === true;
  if (options.async === true && options.detach === true)
    throw new UsageError("--async follows the task and --detach leaves it; give one of them.");
  if (!isTask && options.taskTtl !== undefined)
    throw new UsageError("--task-ttl is for diagnoses that run as a task; add --async.");
  if (!isTask && options.pollInterval !== undefined)
    throw new UsageError("--poll-interval is for diagnoses that run as a task; add --async.");
}

function declare(program: Program): void {
  program.argument("[target]", "a URL, or . for this project's own server");
  program.option("--suites <list>", `only these, separated by commas: ${suiteNames.join(", ")}`);
  program.option("--full", "also what takes long: restarts, memory growth, many calls");
  program.option(
    "--tool <name>",
    "a tool that may be called though it does not say that it only reads; may be given several times",
    collect,
  );
  program.option("--args <json>", "the arguments for the tool named with --tool");
  program.option("--header <header>", "'Name: value', sent with every request; may be given several times", collect);
  program.option("--token-env <name>", "the environment variable that holds the bearer token");
  program.option(
    "--other-header <header>",
    "'Name: value' of another caller, to see whether callers are kept apart",
    collect,
  );
  program.option("--allow-private", "private addresses too; this machine itself may always be typed");
  program.option("--budget <time>", "all in all, e.g. 60s or 5m (default 2m, with --full 10m)");
  program.option("--memory <mb>", "for the process that speaks to the server (default 512)");
  program.option("--deterministic", "the same report every time: without times, ids and figures");
  program.option("--async", "run as a task, follow it, and tell its story");
  program.option("--detach", "run as a task, print its id and leave");
  program.option("--task <id>", "take up a diagnosis that was started as a task");
  program.option("--task-ttl <ms>", "as a task: how long its report shall be kept");
  program.option("--poll-interval <ms>", "as a task: how often to look");
  program.option("--out <folder>", "write the reports there");
  program.option(
    "--format <list>",
    `what to print, or with --out to write: ${formatNames.join(", ")} (default terminal; with --out all)`,
  );
  program.option(
    "--fail-on <severity>",
    `exit 1 from this severity on: ${severities.join(", ")}, never, which leaves only an F to fail (default major)`,
  );
  program.option("--quiet", "print nothing but the report");
}

const formatNames = ["terminal", "json", "markdown", "html", "sarif"] as const;
type Format = (typeof formatNames)[number];
const extensions = { json: "json", markdown: "md", html: "html", sarif: "sarif" } as const;

interface Output {
  readonly formats: readonly Format[];
  readonly out: string | undefined;
  readonly failOn: Severity | "never";
  readonly isQuiet: boolean;
}

function readOutput(options: Readonly<Record<string, unknown>>): Output {
  const out = options.out as string | undefined;
  if (out === "") throw new UsageError("--out needs a folder.");
  const written = formatNames.filter((name) => name !== "terminal");
  const formats = readList(options.format, formatNames, "--format") ?? (out === undefined ? ["terminal"] : written);
  if (out === undefined && formats.length > 1)
    throw new UsageError("Several formats cannot be printed one after the other; --out <folder> writes them to files.");
  const [failOn = "major", ...more] = readList(options.failOn, [...severities, "never"] as const, "--fail-on") ?? [];
  if (more.length > 0) throw new UsageError("--fail-on takes one severity.");
  if (out !== undefined) makeFolder(out);
  return { formats, out, failOn, isQuiet: options.quiet === true };
}

function readWish(options: Readonly<Record<string, unknown>>): Omit<Typed, keyof Output | "target"> {
  return {
    suites: readList(options.suites, suiteNames, "--suites"),
    isFull: options.full === true,
    tools: readTools(options),
    budgetMs: readBudget(options.budget),
    memoryMb: readMemory(options.memory),
    isDeterministic: options.deterministic === true,
  };
}

function readList<T extends string>(text: unknown, known: readonly T[], flag: string): readonly T[] | undefined {
  if (typeof text !== "string") return undefined;
  const words = text.split(",").map((word) => word.trim());
  for (const word of words) {
    if (known.includes(word as T)) continue;
    const guess = closest(word, known);
    throw new UsageError(
      `${flag}: there is no "${clean(word)}"; ${guess === undefined ? `there are ${known.join(", ")}` : `did you mean ${guess}`}${guess === undefined ? "." : "?"}`,
    );
  }
  // In the order in which they run, each once, however they were typed.
  return known.filter((word) => words.includes(word));
}

function readTools({ tool, args }: Readonly<Record<string, unknown>>): ToolToCall[] {
  const names = (tool as string[] | undefined) ?? [];
  if (typeof args !== "string") return names.map((name) => ({ name }));
  const [name] = names;
  if (name === undefined || names.length > 1)
    throw new UsageError("--args are for one tool: name exactly one with --tool.");
  return [{ name, arguments: readJsonArguments(args) }];
}

function readBudget(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text.trim()) ?? [];
  const ms = Number(amount) * { ms: 1, s: 1000, m: 60_000 }[(unit ?? "s") as "ms" | "s" | "m"];
  if (!(ms >= 1000 && ms <= 3_600_000))
    throw new UsageError(`--budget must be a time from 1s to 60m, e.g. 90s or 5m, not "${clean(text)}".`);
  return ms;
}

function readMemory(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const megabytes = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(megabytes >= 64 && megabytes <= 8192))
    throw new UsageError(`--memory must be a whole number of megabytes from 64 to 8192, not "${clean(text)}".`);
  return megabytes;
}

function readMs(options: Readonly<Record<string, unknown>>, name: "taskTtl" | "pollInterval"): number | undefined {
  const text = options[name];
  if (typeof text !== "string") return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  const flag = name === "taskTtl" ? "--task-ttl" : "--poll-interval";
  if (!Number.isSafeInteger(ms) || ms <= 0)
    throw new UsageError(`${flag} must be a positive whole number of milliseconds, not "${clean(text)}".`);
  return ms;
}

function toTarget(
  operands: readonly string[],
  behind: readonly string[] | undefined,
  options: Readonly<Record<string, unknown>>,
  flags: GlobalFlags,
): DiagnosisTarget {
  const headers = readHeaders((options.header as string[] | undefined) ?? [], "--header");
  const otherHeaders = readHeaders((options.otherHeader as string[] | undefined) ?? [], "--other-header");
  const tokenVariable = options.tokenEnv as string | undefined;
  const target = readOperand(operands, behind, flags);
  if (target.kind === "stdio") {
    const given = [options.header, options.otherHeader, tokenVariable].some((value) => value !== undefined);
    if (given)
      throw new UsageError(
        "--header, --other-header and --token-env are for servers that are reached by a URL; this one is not.",
      );
    return target;
  }
  const isTyped = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(target.url).hostname);
  return {
    ...target,
    headers: { ...headers, ...(tokenVariable !== undefined && { Authorization: `Bearer ${tokenOf(tokenVariable)}` }) },
    ...(options.otherHeader !== undefined && { otherHeaders }),
    policy: { allowsPrivate: options.allowPrivate === true, allowsLoopback: isTyped },
  };
}

function readOperand(
  operands: readonly string[],
  behind: readonly string[] | undefined,
  flags: GlobalFlags,
): DiagnosisTarget {
  const [word, ...rest] = operands;
  if (rest.length > 0) throw new UsageError(`There is one target, not ${operands.length}; a command stands behind --.`);
  if (behind !== undefined) {
    if (word !== undefined) throw new UsageError("The target is named twice: a URL or a command behind --, not both.");
    if ((behind[0] ?? "") === "")
      throw new UsageError("The server's command is empty; behind -- stands the program to start, then its arguments.");
    return { kind: "stdio", argv: behind, cwd: process.cwd() };
  }
  if (word === undefined)
    throw new UsageError(
      "Say which server to diagnose: meanwhile diagnose <url>, . for this project's own, or -- <command> [argument …].",
    );
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(word)?.[1]?.toLowerCase();
  if (scheme !== undefined && !/^https?$/.test(scheme))
    throw new UsageError(
      `The target cannot begin with ${scheme}:; a server is reached by http:// or https://, or started behind --.`,
    );
  const read = readTarget(word);
  if (read.kind === "url")
    return {
      kind: "http",
      url: checkUrl(read.url).href,
      headers: {},
      policy: { allowsPrivate: false, allowsLoopback: false },
    };
  if (read.kind === "own") {
    return { kind: "stdio", argv: [process.execPath, executable, ...flagWords(flags), "serve"], cwd: process.cwd() };
  }
  if (read.kind === "socket")
    throw new UsageError("A socket cannot be diagnosed; give a URL, or the server's command behind --.");
  // In one word it looks like a mistyped URL as often as like a command, and a command is run.
  throw new UsageError(
    `"${clean(word)}" is no URL; a server to start stands behind --: meanwhile diagnose -- ${clean(word)}`,
  );
}

function tokenOf(variable: string): string {
  const token = process.env[variable]?.trim() ?? "";
  if (token === "") throw new UsageError(`--token-env: the variable ${clean(variable)} is not set, or empty.`);
  if (/[^\x21-\x7e]/.test(token))
    throw new UsageError(`--token-env: the variable ${clean(variable)} holds characters that no bearer token has.`);
  return token;
}

/** In this terminal, with a bar. */
async function runHere(typed: Typed, terminal: Terminal): Promise<Report> {
  const { runDiagnosis } = await import("../../diagnose/run-diagnosis.ts");
  const stop = new AbortController();
  const stopListening = terminal.onInterrupt(() => {
    if (stop.signal.aborted) terminal.leave(Exit.Cancelled);
    else stop.abort(new Cancelled("Cancelled."));
  });
  const view = typed.isQuiet ? undefined : new StageView(terminal, { clock: systemClock });
  const track = new ProgressTrack({ clock: systemClock, deliver: (update) => view?.progress(update) });
  try {
    return await runDiagnosis({
      ...typed,
      signal: stop.signal,
      version: packageVersion(),
      privateFolder: homeAt(process.env).folder,
      onStep: ({ done, total, suite, question }) => {
        const message = suite === undefined ? question : `${suite}: ${question}`;
        // Of the first few nobody could say how long the others take.
        track.report(done * 10 < total || total === 0 ? { message } : { done, total, message });
      },
    });
  } finally {
    track.finish();
    view?.end();
    stopListening();
  }
}

/** Prints or writes the report; undefined where the work goes on without us. */
async function finish(
  report: Report | undefined,
  { formats, out, failOn, isQuiet }: Output,
  terminal: Terminal,
): Promise<ExitCode> {
  if (report === undefined) return Exit.Ok;
  if (out === undefined) terminal.print(await render(report, formats[0] ?? "terminal", terminal));
  else {
    if (!isQuiet) terminal.print(await render(report, "terminal", terminal));
    const files = await writeReports(report, formats, { out, terminal });
    if (!isQuiet) terminal.say(`${terminal.colors.green("✓")} Reports written to: ${clean(files.join(", "))}\n`);
  }
  keep(report, { terminal, isQuiet });
  return isFailure(report, failOn) ? Exit.CommandFailed : Exit.Ok;
}

/** Whether a pipeline has to stop. The worst grade stops it whatever was asked for. */
function isFailure(report: Report, failOn: Output["failOn"]): boolean {
  if (hasScore(report) && report.score.grade === "F") return true;
  if (failOn === "never") return false;
  // A server that wants credentials was not judged, and that is not fine.
  const isLocked = report.checks.some(({ id, outcome }) => id === "protocol/answers" && outcome === "skipped");
  return isLocked || report.headline !== undefined || report.findings.some(({ severity }) => reaches(severity, failOn));
}

/**
 * Into the home, so that it can be compared with the next one; a home that cannot be written to costs nobody the
 * report.
 */
function keep(report: Report, { terminal, isQuiet }: { terminal: Terminal; isQuiet: boolean }): void {
  try {
    const file = keepReport(homeAt(process.env), report, systemClock.now());
    if (!isQuiet) terminal.say(`${terminal.colors.green("✓")} Report kept: ${clean(file)}\n`);
  } catch (error) {
    if (!isQuiet)
      terminal.say(`${terminal.colors.yellow("!")} The report is not kept in the home: ${clean(messageOf(error))}\n`);
  }
}

/** Before anything else: a report that cannot be written is not worth waiting for. */
function makeFolder(out: string): void {
  try {
    mkdirSync(out, { recursive: true });
    accessSync(out, constants.W_OK);
  } catch (cause) {
    throw new UsageError(`--out ${clean(out)} cannot be written: ${messageOf(cause)}`, { cause });
  }
}

async function writeReports(
  report: Report,
  formats: readonly Format[],
  { out, terminal }: { out: string; terminal: Terminal },
): Promise<string[]> {
  const files: string[] = [];
  try {
    for (const format of formats) {
      if (format === "terminal") continue;
      const file = path.join(out, `diagnose.${extensions[format]}`);
      writeFileSync(file, await render(report, format, terminal));
      files.push(file);
    }
  } catch (cause) {
    throw new UsageError(`--out ${clean(out)} cannot be written: ${messageOf(cause)}`, { cause });
  }
  return files;
}

async function render(report: Report, format: Format, terminal: Terminal): Promise<string> {
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
