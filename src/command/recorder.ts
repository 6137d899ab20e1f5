import { toTimestamp } from "../clock.ts";
import { CommandError } from "../errors.ts";
import { AskedTime } from "./asked-time.ts";
import { describeCauses } from "./causes.ts";
import type { CommandLogLevel, LogLine } from "./context.ts";
import { placeOfFetch } from "./fetch-places.ts";
import type { JsonObject } from "./foreign.ts";
import {
  type CompletedResult,
  type FailureCause,
  finished,
  type Outcome,
  type RpcError,
  type RunMessage,
  type RunRecord,
} from "./outcome.ts";
import { placeOf } from "./place.ts";
import { toPlain } from "./result-json.ts";
import type { RunOptions } from "./run.ts";

/** How a failure is told over MCP, where not in our own way. */
interface ToldFailure {
  readonly rpc?: RpcError;
  readonly foreign?: JsonObject;
}

const maxLogLines = 1_000;

/** Collects what a run says, and builds its outcome exactly once. */
export class Recorder {
  readonly #options: RunOptions;
  /** On the monotonic clock. */
  readonly startedAt: number;
  readonly #messages: RunMessage[] = [];
  readonly #log: LogLine[] = [];
  #ended: Outcome | undefined;
  #returnedAt: number | undefined;
  readonly #askedTime: AskedTime;
  isOpen = true;
  /** Called when a result has to wait before it is serialized: the work is done, so the time limit has to stop. */
  onReturned: (() => void) | undefined;

  constructor(options: RunOptions) {
    this.#options = options;
    this.startedAt = options.clock.monotonic();
    this.#askedTime = new AskedTime(options.clock);
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

  completed(result: CompletedResult, summary: string | undefined): Outcome {
    if (this.#ended !== undefined) return this.#ended;
    const durationMs = this.#durationMs();
    if (result.saidNo === true) this.#push("warning", summary ?? `${this.#options.name} said no.`);
    // Content, and what somebody else's tool says, speaks for itself, and has no messages beside it.
    else if (result.content === undefined && result.foreign === undefined)
      this.#push("success", summary ?? finished(this.#options.name, durationMs));
    const ended: Outcome = { ending: "completed", ...result, messages: this.#messages, log: this.#log, durationMs };
    this.#ended = ended;
    return ended;
  }

  failed(cause: FailureCause, message: string, error?: unknown, told: ToldFailure = {}): Outcome {
    const stack = this.#options.isDebug === true && error instanceof Error ? { stack: error.stack } : undefined;
    const given = error instanceof CommandError ? error.details : undefined;
    // A path is nobody's business but the local user's.
    const withPlace = this.#options.caller?.kind === "local";
    const details = given ?? stack ?? (error === undefined ? undefined : describeCauses(error, { withPlace }));
    // A person is told where; over MCP nobody is, because paths are nobody else's business.
    const at = error instanceof CommandError ? undefined : (placeOf(error) ?? placeOfFetch(error));
    return this.#end(message, details, () => ({
      ending: "failed",
      cause,
      message,
      ...(at === undefined ? {} : { at }),
      ...(error === undefined ? {} : { error }),
      ...told,
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

  /** The work is done and its result waits to be serialized. The wait counts neither as duration nor as timeout. */
  hasReturned(): void {
    this.onReturned?.();
    this.#returnedAt ??= this.#options.clock.monotonic();
  }

  /** Waits for a person. That time does not count as the run's. */
  waitForAnswer<T>(answer: () => Promise<T>): Promise<T> {
    return this.#askedTime.wait(answer);
  }

  #durationMs(): number {
    const now = this.#returnedAt ?? this.#options.clock.monotonic();
    return Math.max(0, Math.round((now - this.startedAt - this.#askedTime.until(now)) * 1000) / 1000);
  }

  #facts(durationMs: number): RunRecord {
    return { messages: this.#messages, log: this.#log, durationMs };
  }
}
