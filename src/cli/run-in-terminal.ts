import { readFileSync } from "node:fs";
import path from "node:path";
import { systemClock } from "../clock.ts";
import { localUser } from "../command/caller.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { Answer, Door, LogLine, Origin, Question, Steps } from "../command/context.ts";
import type { JsonObject } from "../command/foreign.ts";
import { isSameQuestion } from "../command/foreign-question.ts";
import { textIn } from "../command/foreign-result.ts";
import { attemptsNote, type Outcome, type RunMessage, summaryLine } from "../command/outcome.ts";
import { describePlace, type SourcePlace } from "../command/place.ts";
import { runWithRetries } from "../command/retries.ts";
import { runCommand } from "../command/run.ts";
import { Cancelled, Exit, type ExitCode, messageOf, UsageError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import { type AuthorsEstimate, authorsEstimate } from "../task/authors-estimate.ts";
import { ProgressTrack } from "../task/progress.ts";
import { rulesOf } from "../task/retry.ts";
import type { TypedCommand } from "./command-usage.ts";
import { printError } from "./screens/json-error.ts";
import { widthFor } from "./screens/layout.ts";
import { formatData, type OutputFormat } from "./screens/output.ts";
import { type OutFile, readOut, withoutFiles, writeResultFiles } from "./screens/result-files.ts";
import { askInTerminal, clean, cleanLines, StageView, type Terminal } from "./terminal.ts";

export interface RunSurroundings {
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly isDebug: boolean;
  /** Stores the duration of a run for `stats` and later estimates. Never rejects. */
  remember?(entry: CatalogEntry, durationMs: number, said: AuthorsEstimate | undefined): Promise<void>;
}

/** Runs a command for a person at a terminal, in its four stages. */
export async function runInTerminal(
  entry: CatalogEntry,
  typed: TypedCommand,
  terminal: Terminal,
  facts: RunSurroundings,
): Promise<ExitCode> {
  const out = readOut(typed.out, terminal, typed.quiet);
  const input = await readInput(entry, typed, terminal);
  const origin: Origin = { door: "terminal", folder: terminal.folder };
  const stop = new AbortController();
  const cancel = () => stop.abort(new Cancelled("Cancelled."));
  const stopListening = terminal.onInterrupt(() => {
    if (stop.signal.aborted) terminal.leave(Exit.Cancelled);
    else cancel();
  });
  const onOdd = (odd: string) => terminal.say(`${terminal.colors.yellow("!")} ${clean(odd)}\n`);
  const said = authorsEstimate(entry.command, input, { ...facts, origin }, onOdd);
  const view = typed.quiet ? undefined : new StageView(terminal);
  const track = new ProgressTrack({ clock: systemClock, deliver: (update) => view?.progress(update) });
  let isAsked = false;
  const onAsk = () => {
    isAsked = true;
  };
  try {
    const stage = { view, track, cancel, onAsk };
    const outcome = await runAttempts(entry, input, { typed, terminal, facts, stage, origin, stop: stop.signal });
    track.finish();
    view?.end();
    const code = await report(outcome, terminal, { typed, entry, out });
    // After the result is printed, so that the result does not wait for the database. A run that asked a person is not
    // counted.
    if (outcome.ending === "completed" && !isAsked) await facts.remember?.(entry, outcome.durationMs, said);
    return code;
  } finally {
    view?.end();
    stopListening();
  }
}

interface Attempts {
  readonly typed: TypedCommand;
  readonly terminal: Terminal;
  readonly facts: RunSurroundings;
  readonly stage: Stage;
  readonly origin: Origin;
  readonly stop: AbortSignal;
}

/** Runs a command, and again after a failure as its `retry` says. Steps and answers outlive an attempt. */
async function runAttempts(entry: CatalogEntry, input: unknown, attempts: Attempts): Promise<Outcome> {
  const { typed, terminal, facts, stage, origin, stop } = attempts;
  const name = entry.path.join(" ");
  const { home, config, isDebug } = facts;
  const questions = new AskedQuestions();
  const finished = new Map<string, string>();
  const steps: Steps = {
    get: (step) => finished.get(step),
    keep: async (step, json) => void finished.set(step, json),
    all: () => [...finished],
  };
  return await runWithRetries({
    name,
    rules: rulesOf(entry.command),
    clock: systemClock,
    stopped: () => stop,
    run: (attempt) =>
      runCommand(entry.command, input, {
        name,
        clock: systemClock,
        home,
        config,
        isDebug,
        caller: localUser,
        origin,
        signals: [stop],
        door: questions.replayedBy(toDoor(stage, terminal, typed, isDebug)),
        attempt,
        steps,
      }),
    onRetry: (text) => stage.view?.line(`${terminal.colors.yellow("!")} ${clean(text)}`),
  });
}

/** The answers of this run: a later attempt gets the answers of earlier ones, and the person is not asked again. */
class AskedQuestions {
  readonly #answered: { readonly question: Question; readonly answer: Answer }[] = [];

  /** The entry point of the next attempt, which answers repeated questions from the earlier attempts. */
  replayedBy(door: Door): Door {
    const { ask } = door;
    if (ask === undefined) return door;
    const earlier = [...this.#answered];
    return {
      ...door,
      ask: async (question, signal) => {
        const at = earlier.findIndex((one) => isSameQuestion(one.question, question));
        const known = at === -1 ? undefined : earlier.splice(at, 1)[0];
        if (known !== undefined) return known.answer;
        const answer = await ask(question, signal);
        this.#answered.push({ question, answer });
        return answer;
      },
    };
  }
}

interface Stage {
  readonly view: StageView | undefined;
  readonly track: ProgressTrack;
  readonly cancel: () => void;
  readonly onAsk: () => void;
}

function toDoor(stage: Stage, terminal: Terminal, typed: TypedCommand, isDebug: boolean): Door {
  const { view, track, cancel, onAsk } = stage;
  const { colors } = terminal;
  const sayLine = ({ level, text }: Pick<LogLine, "level" | "text">) => {
    const isShown = isDebug || level === "warn" || level === "error";
    if (isShown) view?.line(`${level === "error" ? colors.red("!") : colors.yellow("!")} ${clean(text)}`);
  };
  const door: Door = {
    announce: (text) => view?.announce(text),
    progress: (report) => track.report(report),
    log: sayLine,
    notify: (method, params) => {
      if (method === "notifications/message") sayLine(toLogLine(params));
    },
  };
  if (!terminal.canAsk && !typed.yes)
    return { ...door, whyNoAnswer: "there is no terminal to answer in (--yes goes ahead where it asks for leave)" };
  return {
    ...door,
    async ask(question) {
      if (question.isConfirmation && typed.yes) return { action: "accept", content: { confirm: true } };
      if (!terminal.canAsk) return { action: "cancel" };
      onAsk();
      const answer = await (view === undefined
        ? askInTerminal(question, terminal)
        : view.pause(() => askInTerminal(question, terminal)));
      if (answer.action === "cancel") cancel();
      return answer;
    },
  };
}

/** Converts a log notification of an upstream's tool to a log line. */
function toLogLine({ level, data }: JsonObject): Pick<LogLine, "level" | "text"> {
  const text = typeof data === "string" ? data : JSON.stringify(data ?? null);
  if (level === "warning") return { level: "warn", text };
  return { level: ["error", "critical", "alert", "emergency"].includes(level as string) ? "error" : "info", text };
}

interface Reported {
  readonly typed: TypedCommand;
  readonly entry: CatalogEntry;
  readonly out: OutFile | undefined;
}

async function report(outcome: Outcome, terminal: Terminal, { typed, entry, out }: Reported): Promise<ExitCode> {
  const format = typed.json ? "json" : typed.yaml ? "yaml" : "plain";
  if (outcome.ending === "completed")
    return await printCompleted(outcome, { terminal, name: entry.path.join(" "), isQuiet: typed.quiet, format, out });
  const code = exitCodeFor(outcome);
  await printFailure(outcome, { terminal, format, code });
  for (const message of outcome.messages) {
    const { stack } = (message.details ?? {}) as { stack?: string };
    if (stack !== undefined) terminal.say(`${cleanLines(stack)}\n`);
  }
  if (code === Exit.Usage) terminal.say(`  See: ${thisProgram.name} ${entry.path.join(" ")} --help\n`);
  return code;
}

type Unfinished = Exclude<Outcome, { ending: "completed" }>;

function exitCodeFor(outcome: Unfinished): ExitCode {
  if (outcome.ending === "cancelled") return Exit.Cancelled;
  if (outcome.cause === "timeout") return Exit.TimedOut;
  return outcome.cause === "input" ? Exit.Usage : Exit.CommandFailed;
}

interface Failure {
  readonly message: string;
  readonly messages: readonly RunMessage[];
  readonly at?: SourcePlace;
  readonly foreign?: JsonObject;
  readonly attempts?: number;
}

/**
 * Prints why a run failed and the line of the author's code that threw. The text of an upstream's tool is printed in
 * full. In JSON and YAML the error goes to stdout too, with the result of an upstream's tool.
 */
export async function printFailure(
  { message, messages, at, foreign, attempts = 1 }: Failure,
  { terminal, format, code }: Pick<ResultView, "terminal" | "format"> & { readonly code: ExitCode },
): Promise<void> {
  const text = foreign === undefined ? clean(message) : cleanLines(textIn(foreign) || message);
  terminal.say(`${terminal.colors.red("✗")} ${text}${attemptsNote({ attempts })}\n`);
  if (at !== undefined) terminal.say(`  ${terminal.colors.dim(`at ${clean(describePlace(at))}`)}\n`);
  const error = {
    message: foreign === undefined ? message : textIn(foreign) || message,
    exitCode: code,
    ...(at !== undefined && { at: describePlace(at) }),
    details: messages.findLast(({ type }) => type === "error")?.details,
  };
  await printError(error, { terminal, format, result: foreign });
}

/** Prints a completed run. Where the command says no (`saysNo`), its data is printed too, and the exit code is 1. */
export async function printCompleted(outcome: Completed, options: ResultView): Promise<ExitCode> {
  const { terminal, name, isQuiet, format, out } = options;
  const { colors } = terminal;
  const saidNo = outcome.saidNo === true;
  if (!isQuiet || saidNo)
    terminal.say(`${saidNo ? colors.red("✗") : colors.green("✓")} ${clean(summaryLine(outcome, name))}\n`);
  printData(
    await formatData(format === "plain" ? shownOf(outcome, out) : outcome, format, widthFor(terminal)),
    terminal,
  );
  if (saidNo) return Exit.CommandFailed;
  const content = outcome.foreign === undefined ? outcome.content : outcome.foreign.content;
  return out === undefined ? Exit.Ok : writeResultFiles(content, out, terminal);
}

/** The result as it is printed for a person: without the images and files that `--out` writes. */
function shownOf({ data, content, foreign }: Completed, out: OutFile | undefined): Parameters<typeof formatData>[0] {
  const blocks = foreign?.content;
  return {
    data,
    ...(content !== undefined && { content: withoutFiles(content, out) }),
    ...(foreign !== undefined && {
      foreign: Array.isArray(blocks) ? { ...foreign, content: withoutFiles(blocks, out) } : foreign,
    }),
  };
}

type Completed = Omit<Extract<Outcome, { ending: "completed" }>, "json">;

export interface ResultView {
  readonly terminal: Terminal;
  /** The name of the command or task. */
  readonly name: string;
  readonly isQuiet: boolean;
  readonly format: OutputFormat;
  /** The file for images and files of the result. */
  readonly out?: OutFile | undefined;
}

/** Prints data: on a terminal without control characters, in a pipe unchanged. */
export function printData(text: string, terminal: Terminal): void {
  terminal.print(terminal.isDataShown ? cleanLines(text) : text);
}

/** The arguments of a command: those from `--input`, and over them those from the command line. */
export async function readInput(
  { command, path }: CatalogEntry,
  typed: TypedCommand,
  terminal: Terminal,
): Promise<Record<string, unknown>> {
  const input = { ...(await readInputFile(typed.inputFile, terminal)), ...typed.input };
  const { required } = command.inputSchema;
  // A command of ours reports missing arguments itself. An upstream's tool would answer with a result, without exit code 2.
  const isMissing = (name: unknown) => typeof name === "string" && !Object.hasOwn(input, name);
  const missing = command.foreign !== undefined && Array.isArray(required) ? required.filter(isMissing) : [];
  if (missing.length === 0) return input;
  const name = path.join(" ");
  throw new UsageError(
    `${name} needs ${missing.map((one) => clean(String(one))).join(", ")}.\n  See: ${thisProgram.name} ${name} --help`,
  );
}

export async function readInputFile(file: string | undefined, terminal: Terminal): Promise<Record<string, unknown>> {
  if (file === undefined) return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(
      file === "-" ? await terminal.readInput() : readFileSync(path.resolve(terminal.folder, file), "utf8"),
    );
  } catch (cause) {
    throw new UsageError(`--input ${file} cannot be used: ${messageOf(cause)}`, { cause });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new UsageError(`--input ${file} must hold one JSON object with the arguments.`);
  return parsed as Record<string, unknown>;
}
