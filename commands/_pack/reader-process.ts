import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import type { Duplex, Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { FrameReader, Kind, toFrame } from "./frames.ts";
import { BeyondLimit, bytesOf, type Limits, Unreadable } from "./limits.ts";

/** A document to be read, and how. */
export interface Document {
  /** Who knows how to read it. */
  readonly domain: "transform" | "ingest" | "vault";
  readonly how: unknown;
  readonly size: number;
  /** Its bytes, in pieces, each good until the next is asked for; throws when they cannot be had. */
  readonly pieces: () => Iterable<Buffer> | AsyncIterable<Buffer>;
}

/** What came of it. */
export interface Answer<Head, Item> {
  readonly head: Head;
  readonly text: string;
  readonly items: readonly Item[];
}

/** Thrown when the process held more memory than it may: perhaps more than this document alone would take. */
export class TooMuchMemory extends Error {}

interface Job {
  readonly limits: Limits;
  readonly settle: { resolve(answer: Answer<never, never>): void; reject(error: unknown): void };
  readonly text: string[];
  readonly items: unknown[];
  bytes: number;
}

/** What a process needs of its environment; never tokens, keys or settings. */
const variables = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "NODE_COMPILE_CACHE"];
/** V8's share of a process's memory; the rest is for the program itself, buffers and what is unpacked. */
const heapShare = 0.6;
/** A process that holds more than this share when it has nothing to do is replaced. */
const idleShare = 0.75;
const maxFrameBytes = bytesOf(4);
const pieceBytes = bytesOf(0.25);
const maxLastWords = 4_000;

/**
 * One process that reads documents, one at a time. It is killed when a document takes too long or is not wanted any
 * more, and is then of no use.
 */
export class ReaderProcess {
  readonly memoryMb: number;
  readonly #child: ChildProcess;
  readonly #channel: Duplex & { ref(): void; unref(): void };
  readonly #frames = new FrameReader(maxFrameBytes);
  readonly #gone = new AbortController();
  readonly #exited = Promise.withResolvers<void>();
  #job: Job | undefined;
  #lastWords = "";
  #isWorn = false;

  constructor(memoryMb: number) {
    this.memoryMb = memoryMb;
    // The same file is `.ts` in a checkout and `.js` in the package.
    const own = fileURLToPath(import.meta.url);
    const flags = [
      `--max-old-space-size=${Math.round(memoryMb * heapShare)}`,
      "--max-semi-space-size=8",
      "--expose-gc",
      "--v8-pool-size=1",
      "--no-warnings",
    ];
    const entry = path.join(path.dirname(own), `reader-child${path.extname(own)}`);
    // In a group of its own, which a terminal's Ctrl-C does not reach. Nothing it prints goes anywhere.
    this.#child = spawn(process.execPath, [...flags, entry, String(memoryMb)], {
      stdio: ["ignore", "ignore", "pipe", "pipe"],
      detached: true,
      env: Object.fromEntries(
        variables.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
      ),
    });
    this.#channel = this.#child.stdio[3] as Duplex & { ref(): void; unref(): void };
    this.#channel.on("data", (piece: Buffer) => this.#hear(piece));
    this.#channel.on("error", () => undefined); // It is gone, as `exit` will tell.
    const words = this.#child.stderr as Readable & { unref(): void };
    words.on("data", (piece: Buffer) => {
      this.#lastWords = (this.#lastWords + piece.toString("latin1")).slice(-maxLastWords);
    });
    words.unref();
    this.#child.on("error", (error) =>
      this.#end(new Error(`the process that reads documents could not be started: ${error.message}`)),
    );
    this.#child.on("close", (code, signal) => this.#end(this.#whyGone(code, signal)));
    this.#child.unref();
    this.#channel.unref();
  }

  /** False when it has ended, or has grown too large to take another document. */
  get isUsable(): boolean {
    return !this.#gone.signal.aborted && !this.#isWorn;
  }

  /** Reads one document. Whatever goes wrong with it, the process either is ready for the next or is not usable. */
  async read<Head, Item>(document: Document, limits: Limits, signal: AbortSignal): Promise<Answer<Head, Item>> {
    const answered = Promise.withResolvers<Answer<Head, Item>>();
    this.#job = { limits, settle: answered as Job["settle"], text: [], items: [], bytes: 0 };
    const onAbort = () => this.#kill(signal.reason);
    const outOfTime = new BeyondLimit(
      `reading it takes longer than ${limits.documentSeconds} seconds`,
      "documentSeconds",
    );
    const timer = setTimeout(() => this.#kill(outOfTime), limits.documentSeconds * 1000);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#channel.ref();
    try {
      await Promise.all([this.#send(document, limits), answered.promise]);
      return await answered.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      this.#channel.unref();
      this.#job = undefined;
    }
  }

  close(): Promise<void> {
    this.#kill(new Error("The process that reads documents was closed."));
    return this.#exited.promise;
  }

  async #send({ domain, how, size, pieces }: Document, limits: Limits): Promise<void> {
    await this.#write(toFrame(Kind.Begin, JSON.stringify({ domain, how, size, limits })));
    try {
      for await (const piece of pieces()) {
        for (let from = 0; from < piece.length; from += pieceBytes)
          await this.#write(toFrame(Kind.Bytes, piece.subarray(from, from + pieceBytes)));
      }
    } catch (error) {
      await this.#write(toFrame(Kind.Drop));
      throw error;
    }
    await this.#write(toFrame(Kind.End));
  }

  async #write(parts: readonly Buffer[]): Promise<void> {
    if (this.#gone.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const last = parts.length - 1;
    this.#channel.cork();
    // Called with an error when it is gone.
    for (const [at, part] of parts.entries()) this.#channel.write(part, at === last ? () => resolve() : undefined);
    this.#channel.uncork();
    await promise;
  }

  #hear(piece: Buffer): void {
    try {
      for (const { kind, payload } of this.#frames.take(piece)) this.#take(kind, payload);
    } catch (error) {
      this.#kill(error);
    }
  }

  #take(kind: number, payload: Buffer): void {
    const job = this.#job;
    if (job === undefined) return;
    job.bytes += payload.length;
    if (job.bytes > bytesOf(job.limits.textMb) + maxFrameBytes)
      throw new BeyondLimit(`its text has more than ${job.limits.textMb} MB`, "textMb");
    if (kind === Kind.Text) job.text.push(payload.toString());
    else if (kind === Kind.Items) for (const item of JSON.parse(payload.toString())) job.items.push(item);
    else if (kind === Kind.Answer) this.#answer(job, JSON.parse(payload.toString()));
  }

  #answer(
    { settle, text, items }: Job,
    said: { head?: unknown; error?: string; isOurs?: boolean; residentMb?: number },
  ): void {
    this.#isWorn = (said.residentMb ?? 0) > this.memoryMb * idleShare;
    if (said.error !== undefined)
      settle.reject(said.isOurs === true ? new Unreadable(said.error) : new Error(said.error));
    else settle.resolve({ head: said.head as never, text: text.join(""), items: items as never[] });
  }

  #kill(because: unknown): void {
    this.#end(because);
    if (this.#child.pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    try {
      process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // It ended by itself in this very moment; or there are no groups here.
    }
    this.#child.kill("SIGKILL");
  }

  #end(because: unknown): void {
    this.#gone.abort();
    this.#job?.settle.reject(because);
    if (this.#child.pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null)
      this.#exited.resolve();
  }

  #whyGone(code: number | null, signal: NodeJS.Signals | null): Error {
    // SIGUSR2 is what its own watch says; the words are what V8 says.
    if (signal === "SIGUSR2" || /out of memory|allocation failed|bad_alloc/i.test(this.#lastWords))
      return new TooMuchMemory(`${this.memoryMb} MB`);
    return new Unreadable(`the process that read it ended by itself (${signal ?? `exit code ${code}`})`);
  }
}
