import { systemClock, within } from "../../clock.ts";
import { system } from "../../system/system.ts";
import { type Child, endChild, killChild, startChild } from "../../wire/child.ts";
import { LineSplitter } from "../../wire/lines.ts";
import type { StdioServerTarget } from "../diagnosis-target.ts";
import { parseJson } from "./bounded-json.ts";

/**
 * A server that is started for a check and speaks over its pipes; what it prints is bounded, and it never outlives the
 * check.
 */

export interface PrintedLine {
  /** Monotonic milliseconds. */
  readonly at: number;
  /** Cut to 64 KiB. */
  readonly text: string;
  /** Undefined where it is no JSON. */
  readonly json: unknown;
}

export interface PipeEvents {
  /** So that whoever watches us can end it when we cannot any more. */
  onStart(pid: number): void;
  onEnd(pid: number): void;
}

interface WaitOptions {
  readonly timeoutMs: number;
  readonly since?: number;
  readonly signal?: AbortSignal;
}

const maxLineBytes = 4 * 1024 * 1024;
const maxTotalBytes = 8 * 1024 * 1024;
const maxLines = 10_000;
/** Of parsed JSON, all lines together. */
const maxValues = 300_000;
const maxKept = 64 * 1024;
const patienceMs = 2_000;
const politeMs = 300;
const hastyMs = 50;
/**
 * How many had to be killed: a server that stays every time is not waited for every time, there are dozens of checks.
 */
let stayed = 0;

export class Pipe {
  readonly #child: Child;
  readonly #listeners = new Set<(line: PrintedLine) => void>();
  readonly #lines: PrintedLine[] = [];
  readonly #splitter = new LineSplitter(maxLineBytes);
  #stderr = "";
  #stderrBytes = 0;
  #bytes = 0;
  #values = 0;
  #flood: string | undefined;
  readonly startedAt = systemClock.monotonic();
  /** How it ended: an exit code or a signal. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  #isEnded = false;
  #isLeaving = false;

  /** Starts the server; rejects with one sentence when it cannot be started. */
  static async start({ argv, cwd }: StdioServerTarget, events: PipeEvents): Promise<Pipe> {
    const [command = "", ...args] = argv;
    return new Pipe(await startChild({ command, args, cwd }), events);
  }

  private constructor(child: Child, events: PipeEvents) {
    this.#child = child;
    const pid = child.pid ?? 0;
    events.onStart(pid);
    child.stdout.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr.on("data", (chunk: Buffer) => this.#readError(chunk));
    this.ended = new Promise((resolve) => {
      child.on("exit", (code, signal) => {
        this.#isEnded = true;
        // What it has started and left behind goes with it; who leaves as asked is looked at first.
        if (!this.#isLeaving) killChild(child);
        events.onEnd(pid);
        resolve({ code, signal });
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Everything it printed on its standard output, by line. */
  get lines(): readonly PrintedLine[] {
    return this.#lines;
  }

  /** The end of what it printed on its standard error. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Set when it printed more than anybody reads. */
  get flood(): string | undefined {
    return this.#flood;
  }

  onLine(listener: (line: PrintedLine) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Sends text as it is; the newline is up to the caller. */
  write(text: string): void {
    if (this.#child.stdin.writable) this.#child.stdin.write(text);
  }

  send(message: unknown): void {
    this.write(`${JSON.stringify(message)}\n`);
  }

  /** Resolves with the first line that fits, from line number `since` on; undefined when none came in time. */
  async waitFor(
    fits: (line: PrintedLine) => boolean,
    { timeoutMs, since = 0, signal }: WaitOptions,
  ): Promise<PrintedLine | undefined> {
    const before = this.#lines.slice(since).find(fits);
    if (before !== undefined) return before;
    const found = Promise.withResolvers<PrintedLine | undefined>();
    const stopListening = this.onLine((line) => {
      if (fits(line)) found.resolve(line);
    });
    const onAbort = () => found.resolve(undefined);
    signal?.addEventListener("abort", onAbort, { once: true });
    // What it printed last may still be on its way when it ends.
    void this.ended.then(() => systemClock.after(50, () => found.resolve(undefined)));
    try {
      return await within(systemClock, timeoutMs, found.promise);
    } finally {
      stopListening();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /**
   * Memory of the server and of what it has started (`npx` starts the real one), in bytes; undefined where the system
   * does not tell.
   */
  async residentBytes(): Promise<number | undefined> {
    const sizes = await Promise.all([this.pid, ...this.leftovers()].map(system.memoryOf));
    return sizes[0] === undefined ? undefined : sizes.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
  }

  /** Processes of its group that still run: what it has started and not ended. Empty where the system does not tell. */
  leftovers(): number[] {
    const started = system.processes().filter(({ pid, group }) => group === this.pid && pid !== this.pid);
    return started.map(({ pid }) => pid);
  }

  /** At once, as a crash would. */
  kill(): void {
    if (!this.#isEnded) killChild(this.#child);
  }

  /**
   * Closes its input and gives it two seconds; true when it left by itself. What it has started is there until `close`.
   */
  async leave(): Promise<boolean> {
    this.#isLeaving = true;
    this.#child.stdin.end();
    return (await within(systemClock, patienceMs, this.ended)) !== undefined;
  }

  /**
   * Makes it leave, with all that it has started: many servers stay when their input closes, and are asked by a signal
   * before they are killed.
   */
  async close(): Promise<boolean> {
    const isStubborn = stayed >= 2;
    const took = await endChild(this.#child, {
      gone: this.ended,
      politeMs: isStubborn ? hastyMs : politeMs,
      signalMs: isStubborn ? hastyMs : patienceMs,
    });
    if (took === "kill") stayed++;
    for (const stream of [this.#child.stdout, this.#child.stderr]) stream.destroy();
    if (this.leftovers().length > 0) killChild(this.#child);
    return took === "closing";
  }

  #read(chunk: Buffer): void {
    if (this.#flood !== undefined) return;
    this.#bytes += chunk.length;
    for (const line of this.#splitter.push(chunk)) this.#take(line);
    if (this.#splitter.isTooLong) this.#flooded("a line of more than 4 MiB without an end");
    else if (this.#bytes > maxTotalBytes) this.#flooded("more than 8 MiB");
    else if (this.#values > maxValues) this.#flooded(`more than ${maxValues} values`);
  }

  #readError(chunk: Buffer): void {
    if (this.#flood !== undefined) return;
    this.#stderrBytes += chunk.length;
    // What it said last is what it died of.
    this.#stderr = (this.#stderr + chunk.toString("utf8")).slice(-maxKept);
    if (this.#stderrBytes > maxTotalBytes) this.#flooded("more than 8 MiB to its standard error");
  }

  #take(line: Buffer | "tooLong"): void {
    if (this.#flood !== undefined) return;
    if (line === "tooLong") this.#flooded("a line of more than 4 MiB");
    else if (this.#lines.length >= maxLines) this.#flooded(`more than ${maxLines} lines`);
    else this.#keep(line.toString("utf8"));
  }

  #keep(text: string): void {
    const printed: PrintedLine = {
      at: systemClock.monotonic(),
      text: text.slice(0, maxKept),
      json: parseJson(text, (values) => (this.#values += values)),
    };
    this.#lines.push(printed);
    for (const listener of this.#listeners) listener(printed);
  }

  #flooded(what: string): void {
    this.#flood ??= `It printed ${what}.`;
    this.kill();
  }
}
