import type { Clock } from "../clock.ts";
import { Cancelled, messageOf, ShuttingDown, TimedOut } from "../errors.ts";
import { askFirst, asksFirst } from "./ask.ts";
import type { Caller } from "./caller.ts";
import { messageWithCause } from "./causes.ts";
import type { Command } from "./command.ts";
import type { Answer, CommandContext, Door, Origin, Question, Steps } from "./context.ts";
import { Deadline } from "./deadline.ts";
import { watchFetch } from "./fetch-places.ts";
import { type ForeignTool, ServerGone } from "./foreign.ts";
import { toForeignOutcome } from "./foreign-result.ts";
import { allRunning, checkBuiltins } from "./guard-builtins.ts";
import { describeArguments, unknownArguments } from "./issues.ts";
import { noteFirstLines, noteRunEnd } from "./loop-watch.ts";
import type { GivenUpHost, Outcome, RpcError } from "./outcome.ts";
import { Recorder } from "./recorder.ts";
import { toOutcome } from "./result.ts";
import { toPlain } from "./result-json.ts";
import { askAt, createContext, createRelay } from "./run-context.ts";
import { addBlock, endedNames, type LiveRun, noteBegun, running, runs } from "./running.ts";
import { type Validated, validate } from "./schema.ts";

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
  /** Since when a client waits for the answer, and how long its host lets it. */
  readonly waiting?: WaitingClient | undefined;
  /** What earlier attempts have finished. */
  readonly steps?: Steps;
  /** Put stack traces into the result's messages. */
  readonly isDebug?: boolean;
}

export interface WaitingClient {
  readonly host: string;
  readonly limitMs: number;
  /** Progress starts the time anew. */
  readonly isExtended: boolean;
  /** On the monotonic clock. */
  readonly since: number;
}

/** How long a run may go on after it was told to stop before its caller is answered without it. */
const stopGraceMs = 2_000;

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
    // What somebody else's tool makes of its arguments is for that tool to say.
    if (command.foreign !== undefined) return new CommandRun(command, input ?? {}, options, record).begin();
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
class CommandRun implements LiveRun {
  readonly name: string;
  readonly #command: Command;
  readonly #input: unknown;
  readonly #options: RunOptions;
  readonly #record: Recorder;
  readonly #stop = new AbortController();
  #hasReturned = false;
  /** The longest time in which it blocked the event loop; 0 for short ones. */
  #blockedMs = 0;
  /** The host that had given up when a block ended. */
  #lateFor: GivenUpHost | undefined;
  #cancelGrace: (() => void) | undefined;
  #deadline: Deadline | undefined;
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
    if (seconds !== undefined) {
      this.#deadline = new Deadline(clock, seconds * 1000, () => this.#stopWith(new TimedOut(seconds)));
      this.#record.onReturned = () => this.#deadline?.cancel();
    }
    running.add(this);
    noteBegun(this.name);
    const begunAt = clock.monotonic();
    let outcome: Outcome | Promise<Outcome>;
    try {
      outcome = runs.run(this, execute, this);
    } catch (error) {
      outcome = this.#failed(error);
    }
    noteFirstLines(this, begunAt);
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
    noteRunEnd(this);
    checkBuiltins(allRunning);
    running.delete(this);
    endedNames.add(this.name);
    this.#record.close();
    this.#deadline?.cancel();
    this.#cancelGrace?.();
    stoppers?.delete(this.#stopWith);
    for (const signal of signals ?? []) signal.removeEventListener("abort", this.#onAbort);
    door.finish?.();
    if (this.#blockedMs === 0) return outcome;
    return { ...outcome, blockedMs: this.#blockedMs, ...(this.#lateFor !== undefined && { lateFor: this.#lateFor }) };
  }

  /** What was blocked before this run began is not counted. The code of an upstream is not in this process. */
  mayHaveBlocked(ms: number): number {
    if (this.#command.foreign !== undefined) return 0;
    return Math.min(ms, this.#options.clock.monotonic() - this.#record.startedAt);
  }

  noteBlock(blockedMs: number): void {
    const ms = Math.round(blockedMs);
    this.#blockedMs = Math.max(this.#blockedMs, ms);
    const lateFor = this.#findGivenUpHost(ms);
    this.#lateFor ??= lateFor;
    addBlock({ name: this.name, ms, lateFor });
  }

  /** The host of the client that waits, if it has given up by now. */
  #findGivenUpHost(blockedMs: number): GivenUpHost | undefined {
    const { waiting, door, clock } = this.#options;
    if (waiting === undefined || door.isTask === true) return undefined;
    const silentMs = waiting.isExtended ? blockedMs : clock.monotonic() - waiting.since;
    const { host, limitMs } = waiting;
    return silentMs > limitMs ? { host, limitMs } : undefined;
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
    const { foreign } = this.#command;
    if (foreign !== undefined) return this.#relay(foreign);
    const context = createContext(this.#options, this.#record, this.#terms());
    if (!asksFirst(this.#command)) return this.#run(this.#input, context);
    const ask = (question: Question) => this.#ask(question, context.signal);
    return askFirst(this.#command, this.#input, { ask, origin: context.origin }).then((input) =>
      this.#run(input, context),
    );
  }

  #terms() {
    return { signal: this.#stop.signal, ask: (question: Question, signal: AbortSignal) => this.#ask(question, signal) };
  }

  #ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const ask = () => this.#record.waitForAnswer(() => askAt(this.#options, question, signal));
    return this.#deadline === undefined ? ask() : this.#deadline.waitFor(ask);
  }

  #run(input: unknown, context: CommandContext): Outcome | Promise<Outcome> {
    context.signal.throwIfAborted();
    watchFetch();
    // What others have changed by now is not this one's doing.
    if (running.size > 1) checkBuiltins(() => [...running].filter((other) => other !== this));
    const returned: unknown = this.#command.run(input as never, context);
    checkBuiltins(() => [this]);
    return isThenable(returned) ? this.#await(returned) : this.#returned(returned);
  }

  async #relay(tool: ForeignTool): Promise<Outcome> {
    let isCutShort = false;
    const onCutShort = () => {
      isCutShort = true;
    };
    const result = await tool.call(this.#input, createRelay(this.#options, this.#terms(), onCutShort));
    return (
      this.#stopAfterReturn(isCutShort) ?? toForeignOutcome(result, { options: this.#options, record: this.#record })
    );
  }

  async #await(returned: PromiseLike<unknown>): Promise<Outcome> {
    return this.#returned(await returned);
  }

  #returned(returned: unknown): Outcome | Promise<Outcome> {
    const stopped = this.#stopAfterReturn();
    if (stopped !== undefined) return stopped;
    return toOutcome(returned, { command: this.#command, options: this.#options, record: this.#record });
  }

  /**
   * A result that arrives after the stop is no result: the caller was told it would not come. Who only has to leave has
   * told nobody, unless what it made of its last question is all it has.
   */
  #stopAfterReturn(isCutShort = false): Outcome | undefined {
    this.#hasReturned = true;
    const { aborted, reason } = this.#stop.signal as { aborted: boolean; reason: unknown };
    return aborted && (isCutShort || !(reason instanceof ShuttingDown)) ? this.#stopped(reason) : undefined;
  }

  #failed(error: unknown): Outcome {
    const { reason, aborted } = this.#stop.signal as { reason: unknown; aborted: boolean };
    if (aborted) return this.#stopped(reason);
    if (error instanceof ServerGone) return this.#record.failed("crash", error.message, error);
    const rpc = toRpcError(error);
    return rpc === undefined
      ? this.#record.failed("command", messageWithCause(error), error)
      : this.#record.failed("protocol", rpc.message, error, { rpc });
  }

  #stopped(reason: unknown, note = ""): Outcome {
    const text = [messageOf(reason), note].filter(Boolean).join(" ");
    if (reason instanceof TimedOut) return this.#record.failed("timeout", text);
    if (reason instanceof ShuttingDown) return this.#record.failed("shutdown", text);
    return this.#record.cancelled(text);
  }
}

const execute = (run: CommandRun): Outcome | Promise<Outcome> => run.execute();

function isThenable(value: unknown): value is PromiseLike<unknown> {
  const mayBe = (typeof value === "object" && value !== null) || typeof value === "function";
  return mayBe && typeof (value as { then?: unknown }).then === "function";
}

/** What the SDK calls a ProtocolError (McpError in v1) is meant for the protocol, whichever copy of the SDK made it. */
function toRpcError(error: unknown): RpcError | undefined {
  if (!(error instanceof Error) || (error.name !== "ProtocolError" && error.name !== "McpError")) return undefined;
  const { code, data } = error as Error & { code?: unknown; data?: unknown };
  if (!Number.isInteger(code)) return undefined;
  return { code: code as number, message: error.message, ...(data !== undefined && { data: toPlain(data) }) };
}
