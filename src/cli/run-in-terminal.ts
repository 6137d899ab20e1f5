import { readFileSync } from "node:fs";
import path from "node:path";
import { systemClock } from "../clock.ts";
import { localUser } from "../command/caller.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { Answer, Door, LogLine, Origin, Question, Steps } from "../command/context.ts";
import type { JsonObject } from "../command/foreign.ts";
import { isSameQuestion } from "../command/foreign-question.ts";
import { textIn } from "../command/foreign-result.ts";
import { attemptsNote, type Outcome, summaryLine } from "../command/outcome.ts";
import { describePlace, type SourcePlace } from "../command/place.ts";
import { runWithRetries } from "../command/retries.ts";
import { runCommand } from "../command/run.ts";
import { Cancelled, Exit, type ExitCode, messageOf, UsageError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import { type AuthorsEstimate, authorsEstimate } from "../task/authors-estimate.ts";
import { ProgressTrack } from "../task/progress.ts";
import { rulesOf } from "../task/retry.ts";
import type { TypedCommand } from "./command-usage.ts";
import { widthFor } from "./screens/layout.ts";
import { formatData, type OutputFormat } from "./screens/output.ts";
import { askInTerminal, clean, cleanLines, StageView, type Terminal } from "./terminal.ts";

export interface RunSurroundings {
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly isDebug: boolean;
  /** Counts a run for `stats` and the next estimates. Never rejects. */
  remember?(entry: CatalogEntry, durationMs: number, said: AuthorsEstimate | undefined): Promise<void>;
}

/** Runs a command for a person at a terminal, in its four stages. */
export async function runInTerminal(
  entry: CatalogEntry,
  typed: TypedCommand,
  terminal: Terminal,
  facts: RunSurroundings,
): Promise<ExitCode> {
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
    const code = await report(outcome, terminal, typed, entry);
    // After the result, so that nobody waits for it. The time a person takes to answer is not the command's.
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

/**
 * What a person has answered in this run: a later attempt gets the answers of an earlier one and does not ask again.
 */
class AskedQuestions {
  readonly #answered: { readonly question: Question; readonly answer: Answer }[] = [];

  /** The door of the next attempt. */
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

/** What somebody else's tool says while it works, as a line of ours. */
function toLogLine({ level, data }: JsonObject): Pick<LogLine, "level" | "text"> {
  const text = typeof data === "string" ? data : JSON.stringify(data ?? null);
  if (level === "warning") return { level: "warn", text };
  return { level: ["error", "critical", "alert", "emergency"].includes(level as string) ? "error" : "info", text };
}

async function report(
  outcome: Outcome,
  terminal: Terminal,
  typed: TypedCommand,
  entry: CatalogEntry,
): Promise<ExitCode> {
  const format = typed.json ? "json" : typed.yaml ? "yaml" : "plain";
  if (outcome.ending === "completed")
    return await printCompleted(outcome, { terminal, name: entry.path.join(" "), isQuiet: typed.quiet, format });
  await printFailure(outcome, { terminal, format });
  for (const message of outcome.messages) {
    const { stack } = (message.details ?? {}) as { stack?: string };
    if (stack !== undefined) terminal.say(`${cleanLines(stack)}\n`);
  }
  if (outcome.ending === "cancelled") return Exit.Cancelled;
  if (outcome.cause === "timeout") return Exit.TimedOut;
  if (outcome.cause !== "input") return Exit.CommandFailed;
  terminal.say(`  See: ${thisProgram.name} ${entry.path.join(" ")} --help\n`);
  return Exit.Usage;
}

interface Failure {
  readonly message: string;
  readonly at?: SourcePlace;
  readonly foreign?: JsonObject;
  readonly attempts?: number;
}

/**
 * Why it ended, and, where the author's own code threw it, at which line. What somebody else's tool says is said in
 * full, and its result is data for a program.
 */
export async function printFailure(
  { message, at, foreign, attempts = 1 }: Failure,
  { terminal, format }: Pick<ResultView, "terminal" | "format">,
): Promise<void> {
  const text = foreign === undefined ? clean(message) : cleanLines(textIn(foreign) || message);
  terminal.say(`${terminal.colors.red("✗")} ${text}${attemptsNote({ attempts })}\n`);
  if (at !== undefined) terminal.say(`  ${terminal.colors.dim(`at ${clean(describePlace(at))}`)}\n`);
  if (foreign !== undefined && format !== "plain")
    printData(await formatData({ data: {}, foreign }, format, widthFor(terminal)), terminal);
}

/** What a run that came to its end looks like; data that is a no looks like a failure, and is printed all the same. */
export async function printCompleted(outcome: Completed, options: ResultView): Promise<ExitCode> {
  const { terminal, name, isQuiet, format } = options;
  const { colors } = terminal;
  const saidNo = outcome.saidNo === true;
  if (!isQuiet || saidNo)
    terminal.say(`${saidNo ? colors.red("✗") : colors.green("✓")} ${clean(summaryLine(outcome, name))}\n`);
  printData(await formatData(outcome, format, widthFor(terminal)), terminal);
  return saidNo ? Exit.CommandFailed : Exit.Ok;
}

type Completed = Omit<Extract<Outcome, { ending: "completed" }>, "json">;

export interface ResultView {
  readonly terminal: Terminal;
  /** What was run, by the name people know it by. */
  readonly name: string;
  readonly isQuiet: boolean;
  readonly format: OutputFormat;
}

/** Data for a person's screen is shown, never obeyed; data for a pipe is left as it is. */
export function printData(text: string, terminal: Terminal): void {
  terminal.print(terminal.isDataShown ? cleanLines(text) : text);
}

/** The arguments, typed over those from a file. */
export async function readInput(
  { command, path }: CatalogEntry,
  typed: TypedCommand,
  terminal: Terminal,
): Promise<Record<string, unknown>> {
  const input = { ...(await readInputFile(typed.inputFile, terminal)), ...typed.input };
  const { required } = command.inputSchema;
  // Our own commands say it themselves; what somebody else's tool says is no exit code.
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
