import { AsyncLocalStorage } from "node:async_hooks";
import { type Clock, formatDuration, nextTurn, toTimestamp } from "../clock.ts";
import { Cancelled, CommandError, Declined, messageOf, ShuttingDown, TimedOut } from "../errors.ts";
import { keepBuiltins, restoreBuiltins } from "./builtins.ts";
import { anonymous, type Caller } from "./caller.ts";
import type { Command } from "./command.ts";
import { type ContentBlock, contentProblem, isContent } from "./content.ts";
import {
  type Answer,
  type CommandContext,
  type CommandLogLevel,
  type Door,
  type LogLine,
  type Origin,
  type Question,
  type Steps,
  unknownOrigin,
} from "./context.ts";
import { describeArguments, describeIssue, unknownArguments } from "./issues.ts";
import { placeOf, type SourcePlace } from "./place.ts";
import { type JsonSchema, toFlatSchema, type Validated, validate } from "./schema.ts";

export interface RunMessage {
  readonly type: "error" | "warning" | "info" | "status" | "success";
  readonly text: string;
  readonly timestamp: string;
  readonly details?: unknown;
}

/** A completed run in one line: what `summarize` said, or that it is done. */
export function summaryLine(
  outcome: Pick<RunRecord, "messages" | "durationMs"> & { readonly saidNo?: true },
  name: string,
): string {
  const said = outcome.messages.at(-1);
  return said !== undefined && (said.type === "success" || outcome.saidNo === true)
    ? said.text
    : finished(name, outcome.durationMs);
}

function finished(name: string, durationMs: number): string {
  return `${name} finished in ${formatDuration(durationMs)}`;
}

/** How a run ended, in our own shape, which every door turns into its own. */
export type Outcome = RunRecord &
  (
    | ({ readonly ending: "completed" } & Given)
    | {
        readonly ending: "failed";
        readonly cause: FailureCause;
        readonly message: string;
        readonly error?: unknown;
        readonly at?: SourcePlace;
        readonly rpc?: RpcError;
      }
    | { readonly ending: "cancelled"; readonly message: string }
  );

/** What a run that came to its end has given. */
interface Given {
  readonly data: unknown;
  readonly json: string;
  readonly content?: readonly ContentBlock[];
  /** The data is a no, which a person should not take for a yes. */
  readonly saidNo?: true;
}

export interface RunRecord {
  readonly messages: readonly RunMessage[];
  readonly log: readonly LogLine[];
  readonly durationMs: number;
}

/** A JSON-RPC error, for a command that ends in one. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/**
 * `input`: the arguments were wrong. `command`: it said no. `output`: it broke its own promise. `crash`: its own
 * process died. `protocol`: it threw the SDK's ProtocolError.
 */
export type FailureCause = "input" | "command" | "output" | "timeout" | "shutdown" | "crash" | "protocol";

export interface RunOptions {
  /** The name people know it by, for sentences. */
  readonly name: string;
  readonly clock: Clock;
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly door: Door;
  /** Default: somebody without a name. */
  readonly caller?: Caller;
  /** Default: a client of which nothing is known. */
  readonly origin?: Origin;
  /** Whichever is aborted first ends the run, and its reason says how. */
  readonly signals?: readonly AbortSignal[];
  /** Where the run puts, while it lives, the function that ends it: cheaper than a signal. */
  readonly stoppers?: { add(stop: (reason: Error) => void): unknown; delete(stop: (reason: Error) => void): unknown };
  readonly attempt?: number;
  /** What earlier attempts have finished. */
  readonly steps?: Steps;
  /** Put stack traces into the result's messages. */
  readonly isDebug?: boolean;
}

/** How long a run may go on after it was told to stop before its caller is answered without it. */
const stopGraceMs = 2_000;
export const maxResultBytes = 10 * 1024 * 1024;
const maxLogLines = 1_000;
/** How often a question is asked again when its answer does not fit. */
const maxAnswers = 3;

interface Run {
  readonly name: string;
  /** Ends this run with an error that escaped from it: an unhandled rejection, an exception in a timer. */
  fail(error: unknown): void;
}

const runs = new AsyncLocalStorage<Run>();
const running = new Set<Run>();
const endedNames = new Set<string>();

/** Those that run, or have begun since the last look. */
const begunNames = new Set<string>();
let onBegun: ((names: readonly string[]) => void) | undefined;

/** The commands that have run in this process since this was last asked. */
export function commandsSinceLastLook(): string[] {
  const runningNames = new Set([...running].map((run) => run.name));
  const names = new Set([...endedNames, ...runningNames]);
  endedNames.clear();
  begunNames.clear();
  for (const name of runningNames) begunNames.add(name);
  onBegun?.([...begunNames]);
  return [...names];
}

/**
 * Hears what runs at every look, and before a command begins that did not run: from then on it may keep everybody
 * waiting. Must not throw.
 */
export function listenForCommands(listener: (names: readonly string[]) => void): () => void {
  onBegun = listener;
  return () => {
    onBegun = undefined;
  };
}

function noteBegun(name: string): void {
  if (onBegun === undefined || begunNames.has(name)) return;
  begunNames.add(name);
  onBegun([...begunNames]);
}

/** Built-ins that everything in this process shares were changed, and by whom, as far as that is known. */
export interface Harm {
  /** The commands that ran meanwhile. */
  readonly names: readonly string[];
  readonly changes: readonly string[];
}

let onHarm: ((harm: Harm) => void) | undefined;

/** From now on the built-ins are put back when a command has changed them; it fails, and `report` is told. */
export function guardBuiltins(report: (harm: Harm) => void): void {
  keepBuiltins();
  onHarm = report;
}

/** Looks for changes that nobody has noticed yet, more thoroughly than is done around each run. */
export function inspectBuiltins(): void {
  // What is seen at a glance was seen at the end of every run: whoever did it is still at it.
  checkBuiltins(allRunning);
  const ended = () => [...endedNames].map((name): Run => ({ name, fail: () => undefined }));
  checkBuiltins(() => [...running, ...ended()], true);
}

const allRunning = (): readonly Run[] => [...running];

/** Who may have done it is asked only when the built-ins are in order again. One suspect is the culprit, and fails. */
function checkBuiltins(suspects: () => readonly Run[], isThorough = false): void {
  if (onHarm === undefined) return;
  const changes = restoreBuiltins(isThorough);
  if (changes.length === 0) return;
  const found = suspects();
  const names = [...new Set(found.map(({ name }) => name))];
  const sentence = `changed what every command shares: ${changes.join(", ")}. That was undone; leave the built-ins alone, or set isolation: "process".`;
  if (names.length === 1) for (const run of found) run.fail(new CommandError(`${run.name} ${sentence}`));
  onHarm({ names, changes });
}

/** The run that the current code belongs to, if any. */
export function currentRun(): Run | undefined {
  return runs.getStore();
}

/** What is wrong with a command's arguments, in one sentence; undefined when nothing is. */
export async function refuseInput(command: Command, input: unknown, name: string): Promise<string | undefined> {
  const checked = command.input === undefined ? { ok: true as const } : await validate(command.input, input ?? {});
  return checked.ok
    ? undefined
    : describeArguments(name, checked.issues, input, unknownArguments(command.inputSchema, input));
}

/**
 * Runs one command once. Every door ends here. Whoever answers at once, schemas and command, costs no turn; never
 * rejects.
 */
export function runCommand(command: Command, input: unknown, options: RunOptions): Outcome | Promise<Outcome> {
  const record = new Recorder(options);
  const failed = (error: unknown) => record.failed("command", messageOf(error), error);
  try {
    const warnings = unknownArguments(command.inputSchema, input);
    const begin = (checked: Validated<unknown>) => {
      if (!checked.ok) return record.failed("input", describeArguments(options.name, checked.issues, input, warnings));
      for (const warning of warnings) record.message("warning", `${warning} It was ignored.`);
      return new CommandRun(command, checked.value, options, record).begin();
    };
    const checked = command.input === undefined ? nothing : validate(command.input, input ?? {});
    return checked instanceof Promise ? checked.then(begin).catch(failed) : begin(checked);
  } catch (error) {
    return failed(error);
  }
}

const nothing = { ok: true as const, value: {} };

/** Only these three say how a run ends; whatever else a signal carries means that the caller is gone. */
function isOurs(reason: unknown): reason is Error {
  return reason instanceof Cancelled || reason instanceof TimedOut || reason instanceof ShuttingDown;
}

/** One run from its first line to its ending; what it writes after that is dropped. */
class CommandRun implements Run {
  readonly name: string;
  readonly #command: Command;
  readonly #input: unknown;
  readonly #options: RunOptions;
  readonly #record: Recorder;
  readonly #stop = new AbortController();
  #stepCounts: Map<string, number> | undefined;
  #waiting: Promise<unknown> | undefined;
  #hasReturned = false;
  #cancelGrace: (() => void) | undefined;
  #cancelTimeout: (() => void) | undefined;
  /** How it ended before its command did. */
  #early: Outcome | undefined;
  /** There while it goes on. */
  #onEnd: ((outcome: Outcome) => void) | undefined;

  constructor(command: Command, input: unknown, options: RunOptions, record: Recorder) {
    this.name = options.name;
    this.#command = command;
    this.#input = input;
    this.#options = options;
    this.#record = record;
  }

  begin(): Outcome | Promise<Outcome> {
    const { clock, signals, stoppers } = this.#options;
    const aborted = signals?.find((signal) => signal.aborted);
    if (aborted !== undefined) return this.#stopped(isOurs(aborted.reason) ? aborted.reason : new Cancelled());
    for (const signal of signals ?? []) signal.addEventListener("abort", this.#onAbort, { once: true });
    stoppers?.add(this.#stopWith);
    const seconds = this.#command.timeout;
    if (seconds !== undefined)
      this.#cancelTimeout = clock.after(seconds * 1000, () => this.#stopWith(new TimedOut(seconds)));
    running.add(this);
    noteBegun(this.name);
    let outcome: Outcome | Promise<Outcome>;
    try {
      outcome = runs.run(this, execute, this);
    } catch (error) {
      outcome = this.#failed(error);
    }
    return outcome instanceof Promise ? this.#wait(outcome) : this.#end(this.#early ?? outcome);
  }

  #wait(outcome: Promise<Outcome>): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#onEnd = (ending) => {
        this.#onEnd = undefined;
        resolve(this.#end(ending));
      };
      if (this.#early !== undefined) this.#onEnd(this.#early);
      outcome.then(
        (ending) => this.#onEnd?.(ending),
        (error: unknown) => this.#onEnd?.(this.#failed(error)),
      );
    });
  }

  #end(outcome: Outcome): Outcome {
    const { signals, stoppers, door } = this.#options;
    checkBuiltins(allRunning);
    running.delete(this);
    endedNames.add(this.name);
    this.#record.close();
    this.#cancelTimeout?.();
    this.#cancelGrace?.();
    stoppers?.delete(this.#stopWith);
    for (const signal of signals ?? []) signal.removeEventListener("abort", this.#onAbort);
    door.finish?.();
    return outcome;
  }

  fail(error: unknown): void {
    this.#endEarly(this.#failed(error));
  }

  #endEarly(outcome: Outcome): void {
    this.#early ??= outcome;
    this.#onEnd?.(outcome);
  }

  readonly #onAbort = (): void => this.#stopWith(this.#options.signals?.find((signal) => signal.aborted)?.reason);

  readonly #stopWith = (reason: unknown): void => {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(isOurs(reason) ? reason : new Cancelled());
    this.#cancelGrace = this.#options.clock.after(stopGraceMs, () => {
      // The work is done, and its result only waits to be written down.
      const isDone = this.#hasReturned && reason instanceof ShuttingDown;
      if (!isDone) this.#endEarly(this.#stopped(this.#stop.signal.reason, "It has not stopped by itself yet."));
    });
  };

  execute(): Outcome | Promise<Outcome> {
    const context = this.#context();
    if (!asksFirst(this.#command)) return this.#run(this.#input, context);
    const ask = (question: Question) => this.#ask(question, context.signal);
    return askFirst(this.#command, this.#input, { ask, origin: context.origin }).then((input) =>
      this.#run(input, context),
    );
  }

  #run(input: unknown, context: CommandContext): Outcome | Promise<Outcome> {
    context.signal.throwIfAborted();
    // What others have changed by now is not this one's doing.
    if (running.size > 1) checkBuiltins(() => [...running].filter((other) => other !== this));
    const returned: unknown = this.#command.run(input as never, context);
    checkBuiltins(() => [this]);
    return isThenable(returned) ? this.#await(returned) : this.#returned(returned);
  }

  async #await(returned: PromiseLike<unknown>): Promise<Outcome> {
    return this.#returned(await returned);
  }

  #returned(returned: unknown): Outcome | Promise<Outcome> {
    this.#hasReturned = true;
    // A result that arrives after the stop is no result: the caller was told it would not come. Who only has to leave
    // has told nobody.
    const { aborted, reason } = this.#stop.signal as { aborted: boolean; reason: unknown };
    if (aborted && !(reason instanceof ShuttingDown)) return this.#stopped(reason);
    return this.#finish(returned);
  }

  #finish(returned: unknown): Outcome | Promise<Outcome> {
    const { output } = this.#command;
    if (isContent(returned)) {
      if (output !== undefined)
        return this.#record.failed(
          "output",
          `${this.#options.name} declares an output schema but returned content(…); return the data, or remove \`output\`.`,
        );
      const problem = contentProblem(returned.blocks);
      if (problem !== undefined)
        return this.#record.failed("output", `${this.#options.name} returned content(…) with ${problem}.`);
      return this.#inRoom(returned, () => {
        toJson(returned.blocks, this.#options.name);
        return this.#record.completed({ data: {}, json: "{}", content: returned.blocks }, undefined);
      });
    }
    if (output === undefined) return this.#complete(returned ?? {});
    const checked = validate(output, returned);
    return checked instanceof Promise ? checked.then((now) => this.#checked(now)) : this.#checked(checked);
  }

  #checked(checked: Validated<unknown>): Outcome | Promise<Outcome> {
    if (checked.ok) return this.#complete(checked.value);
    const why = checked.issues.map(describeIssue).join("; ");
    return this.#record.failed(
      "output",
      `${this.#options.name} returned something that does not fit its own output schema: ${why}`,
    );
  }

  #complete(data: unknown): Outcome | Promise<Outcome> {
    return this.#inRoom(data, () => {
      const { summarize, saysNo } = this.#command;
      const json = toJson(data, this.#options.name);
      const isNo = saysNo !== undefined && tolerate(() => saysNo(data as never)) === true;
      const summary = summarize === undefined ? undefined : tolerate(() => toLine(summarize(data as never)));
      return this.#record.completed(isNo ? { data, json, saidNo: true } : { data, json }, summary);
    });
  }

  #inRoom(result: unknown, complete: () => Outcome): Outcome | Promise<Outcome> {
    return this.#hasToWait(result) ? this.#waitForRoom(result, complete) : complete();
  }

  async #waitForRoom(result: unknown, complete: () => Outcome): Promise<Outcome> {
    do await this.#waiting;
    while (this.#hasToWait(result));
    return complete();
  }

  /**
   * True while a result must not be written out: another one was, in this turn, or its client is not ready for it.
   * Asked anew after each wait, because others have waited for the same. Where there is a deadline only the turn is
   * waited for: the work is done in time.
   */
  #hasToWait(result: unknown): boolean {
    const { door } = this.#options;
    this.#waiting = isHeavyTurn ? nextTurn() : this.#command.timeout === undefined ? door.room?.(result) : undefined;
    if (this.#waiting !== undefined) this.#record.hasReturned();
    return this.#waiting !== undefined;
  }

  #failed(error: unknown): Outcome {
    const { reason, aborted } = this.#stop.signal as { reason: unknown; aborted: boolean };
    if (aborted) return this.#stopped(reason);
    const rpc = toRpcError(error);
    return rpc === undefined
      ? this.#record.failed("command", messageOf(error), error)
      : this.#record.failed("protocol", rpc.message, error, rpc);
  }

  #stopped(reason: unknown, note = ""): Outcome {
    const text = [messageOf(reason), note].filter(Boolean).join(" ");
    if (reason instanceof TimedOut) return this.#record.failed("timeout", text);
    if (reason instanceof ShuttingDown) return this.#record.failed("shutdown", text);
    return this.#record.cancelled(text);
  }

  #context(): CommandContext {
    const { home, config, door, caller = anonymous, origin = unknownOrigin } = this.#options;
    const record = this.#record;
    const line = (level: CommandLogLevel) => (text: string, details?: unknown) => record.line(level, text, details);
    return {
      signal: this.#stop.signal,
      home,
      config,
      caller,
      origin,
      attempt: this.#options.attempt ?? 1,
      log: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
      announce: (text) => record.announce(text),
      progress: (report) => record.isOpen && door.progress?.(typeof report === "string" ? { message: report } : report),
      ask: asker((question) => this.#ask(question, this.#stop.signal)),
      step: (name, work) => this.#step(name, work),
    };
  }

  async #step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
    const { steps } = this.#options;
    this.#stepCounts ??= new Map();
    const count = (this.#stepCounts.get(name) ?? 0) + 1;
    this.#stepCounts.set(name, count);
    // The same name again, as in a loop, is another step.
    const key = count === 1 ? name : `${name}#${count}`;
    const kept = steps?.get(key);
    if (kept !== undefined) return JSON.parse(kept) as T;
    const json = toJson((await work()) ?? null, `step ${key}`);
    await steps?.keep(key, json);
    // Remembered or fresh, a step gives the same value.
    return JSON.parse(json) as T;
  }

  async #ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const { door, name } = this.#options;
    signal.throwIfAborted();
    if (door.ask === undefined)
      throw new CommandError(
        `${name} asks «${question.message}», and ${door.whyNoAnswer ?? "nobody can be asked here"}.`,
      );
    return await door.ask(question, signal);
  }
}

const execute = (run: CommandRun): Outcome | Promise<Outcome> => run.execute();

function isThenable(value: unknown): value is PromiseLike<unknown> {
  const mayBe = (typeof value === "object" && value !== null) || typeof value === "function";
  return mayBe && typeof (value as { then?: unknown }).then === "function";
}

/** Puts one question to whoever can answer it. */
export type Ask = (question: Question) => Promise<Answer>;

/** True when a command has questions ahead of its run. */
export function asksFirst(command: Command): boolean {
  return command.confirm !== false || command.before !== undefined;
}

/** Settles what a command asks ahead of its run; the input it is then run with. Throws `Declined` on a no. */
export async function askFirst(
  command: Command,
  input: unknown,
  { ask, origin }: { ask: Ask; origin: Origin },
): Promise<unknown> {
  const { confirm, before } = command;
  const message = typeof confirm === "function" ? confirm(input as never, origin) : confirm;
  if (message !== false) {
    const answer = await ask({ message, schema: confirmation, isConfirmation: true });
    if (answer.action !== "accept" || answer.content.confirm !== true) throw new Declined(message);
  }
  return (await before?.(input as never, asker(ask))) ?? input;
}

/** `task.ask` on top of whoever carries the questions: an answer that does not fit is asked for again. */
function asker(ask: Ask): CommandContext["ask"] {
  return async (message, schema) => {
    const described = toFlatSchema(schema);
    let asked = described;
    for (let words = message, tries = 1; ; tries++) {
      const answer = await ask({ message: words, schema: asked, isConfirmation: false });
      if (answer.action !== "accept") throw new Declined(message);
      const checked = await validate(schema, answer.content);
      if (checked.ok) return checked.value;
      const why = checked.issues.map(describeIssue).join("; ");
      if (tries === maxAnswers) throw new CommandError(`The answer to «${message}» does not fit: ${why}`);
      words = `${message} (The last answer did not fit: ${why}.)`;
      asked = suggest(
        described,
        answer.content,
        checked.issues.map(({ field }) => field),
      );
    }
  };
}

/** A summary that says nothing is none. */
function toLine(summary: unknown): string | undefined {
  return typeof summary === "string" && summary.trim() !== "" ? summary : undefined;
}

/** The fields that were answered well are suggested as they were, so that only the others have to be answered anew. */
function suggest(schema: JsonSchema, given: Readonly<Record<string, unknown>>, wrong: readonly string[]): JsonSchema {
  const isKept = (name: string) =>
    Object.hasOwn(given, name) &&
    !wrong.some((field) => field === "" || field === name || field.startsWith(`${name}.`));
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  return {
    ...schema,
    properties: Object.fromEntries(
      properties.map(([name, field]) => [name, isKept(name) ? { ...field, default: given[name] } : field]),
    ),
  };
}

/** What is said about a result is a courtesy: one that fails must not fail work that is done. */
function tolerate<T>(say: () => T | undefined): T | undefined {
  try {
    return say();
  } catch {
    return undefined;
  }
}

const confirmation: JsonSchema = {
  type: "object",
  properties: { confirm: { type: "boolean", title: "Yes, go ahead", default: false } },
  required: ["confirm"],
};

/** Collects what a run says, and builds its outcome exactly once. */
class Recorder {
  readonly #options: RunOptions;
  readonly #startedAt: number;
  readonly #messages: RunMessage[] = [];
  readonly #log: LogLine[] = [];
  #ended: Outcome | undefined;
  #returnedAt: number | undefined;
  isOpen = true;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
  }

  close(): void {
    this.isOpen = false;
  }

  message(type: RunMessage["type"], text: string, details?: unknown): void {
    if (this.#messages.length < maxLogLines) this.#push(type, text, details);
  }

  #push(type: RunMessage["type"], text: string, details?: unknown): void {
    const timestamp = toTimestamp(this.#options.clock.now());
    this.#messages.push(
      details === undefined ? { type, text, timestamp } : { type, text, timestamp, details: toPlain(details) },
    );
  }

  announce(text: string): void {
    if (!this.isOpen) return;
    this.message("status", text);
    this.#options.door.announce?.(text);
  }

  line(level: CommandLogLevel, text: string, details?: unknown): void {
    if (!this.isOpen) return;
    const timestamp = toTimestamp(this.#options.clock.now());
    const line: LogLine =
      details === undefined ? { level, text, timestamp } : { level, text, timestamp, details: toPlain(details) };
    if (this.#log.length < maxLogLines) this.#log.push(line);
    if (level === "warn") this.message("warning", text, details);
    if (level === "error") this.message("error", text, details);
    this.#options.door.log?.(line);
  }

  completed(result: Given, summary: string | undefined): Outcome {
    if (this.#ended !== undefined) return this.#ended;
    const durationMs = this.#durationMs();
    if (result.saidNo === true) this.#push("warning", summary ?? `${this.#options.name} said no.`);
    // Content speaks for itself, and has no messages beside it.
    else if (result.content === undefined) this.#push("success", summary ?? finished(this.#options.name, durationMs));
    const ended: Outcome = { ending: "completed", ...result, messages: this.#messages, log: this.#log, durationMs };
    this.#ended = ended;
    return ended;
  }

  failed(cause: FailureCause, message: string, error?: unknown, rpc?: RpcError): Outcome {
    const stack = this.#options.isDebug === true && error instanceof Error ? { stack: error.stack } : undefined;
    const details = (error instanceof CommandError ? error.details : undefined) ?? stack;
    // A person is told where; over MCP nobody is, because paths are nobody else's business.
    const at = error instanceof CommandError ? undefined : placeOf(error);
    return this.#end(message, details, () => ({
      ending: "failed",
      cause,
      message,
      ...(at === undefined ? {} : { at }),
      ...(error === undefined ? {} : { error }),
      ...(rpc === undefined ? {} : { rpc }),
      ...this.#facts(this.#durationMs()),
    }));
  }

  cancelled(message: string): Outcome {
    return this.#end(message, undefined, () => ({ ending: "cancelled", message, ...this.#facts(this.#durationMs()) }));
  }

  /** The first ending counts, and its sentence is always the last message. */
  #end(text: string, details: unknown, outcome: () => Outcome): Outcome {
    if (this.#ended !== undefined) return this.#ended;
    this.#push("error", text, details);
    this.#ended = outcome();
    return this.#ended;
  }

  /** The work is done, whatever comes before it is told. */
  hasReturned(): void {
    this.#returnedAt ??= this.#options.clock.monotonic();
  }

  #durationMs(): number {
    return Math.round(((this.#returnedAt ?? this.#options.clock.monotonic()) - this.#startedAt) * 1000) / 1000;
  }

  #facts(durationMs: number): RunRecord {
    return { messages: this.#messages, log: this.#log, durationMs };
  }
}

/** What the SDK calls a ProtocolError (McpError in v1) is meant for the protocol, whichever copy of the SDK made it. */
function toRpcError(error: unknown): RpcError | undefined {
  if (!(error instanceof Error) || (error.name !== "ProtocolError" && error.name !== "McpError")) return undefined;
  const { code, data } = error as Error & { code?: unknown; data?: unknown };
  if (!Number.isInteger(code)) return undefined;
  return { code: code as number, message: error.message, ...(data !== undefined && { data: toPlain(data) }) };
}

/** Details go wherever the result goes; what is not JSON is described rather than failing the run. */
function toPlain(details: unknown): unknown {
  try {
    const json = JSON.stringify(details);
    return json === undefined ? String(details) : JSON.parse(json);
  } catch {
    return details instanceof Error ? details.message : Object.prototype.toString.call(details);
  }
}

/**
 * Results that are longer are written out one in a turn of the event loop: many at once would stop everybody else, and
 * stand in memory together.
 */
const heavyChars = 1024 * 1024;
let isHeavyTurn = false;

function countHeavy(): void {
  if (isHeavyTurn) return;
  isHeavyTurn = true;
  setImmediate(() => {
    isHeavyTurn = false;
  });
}

function toJson(data: unknown, name: string): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(data);
  } catch (cause) {
    const why = cause instanceof RangeError ? "it is nested too deeply" : (cause as Error).message.split("\n")[0];
    throw new CommandError(
      `${name} returned something that is not JSON: ${why}; return plain objects, lists, texts and numbers.`,
      { cause },
    );
  }
  if (json === undefined)
    throw new CommandError(
      `${name} returned a ${typeof data}, which is not JSON; return plain objects, lists, texts and numbers.`,
    );
  if (json.length > heavyChars) countHeavy();
  // No text has more bytes than three a letter, so most need not be counted.
  if (json.length > maxResultBytes / 3 && Buffer.byteLength(json) > maxResultBytes)
    throw new CommandError(
      `${name} returned more than ${maxResultBytes / 1024 / 1024} MiB; write it to a file and return the path.`,
    );
  return json;
}
