import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/server";
import { RequestError, requestErrors } from "../errors.ts";
import { LineSplitter, maxLineBytes } from "../lines.ts";
import type { Logger } from "../log.ts";
import { parseMessage } from "./frames.ts";

/** What may be dropped rather than kept for a client that does not read. */
const droppable = new Set(["notifications/progress", "notifications/message"]);
const maxUnreadBytes = 1024 * 1024;
/** So many messages of one client, or so much of them, are begun before others have their turn. */
const messagesATurn = 100;
const unitBytes = 64 * 1024;

export interface LineTransportOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Writes to `output` even where its own `write` was taken away from others. */
  readonly write: (text: string) => boolean;
  /** Requests that the other side asks again by itself when this one hangs up: they are no reason to stay. */
  readonly isAskedAgain?: (method: string) => boolean;
  readonly log: Logger;
}

/**
 * One MCP connection over a pair of byte streams, one message a line.
 * A bad line gets one error and the next is read; a client that stops reading stops being read.
 */
export class LineTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #options: LineTransportOptions;
  readonly #splitter = new LineSplitter();
  readonly #inFlight = new Set<string | number>();
  /** Requests that stand until somebody ends them: nobody waits for their answer. */
  readonly #standing = new Set<string | number>();
  /** Who waits until the answer to a request has been written; and who hears of it with the next write. */
  readonly #unwritten = new Map<string | number, () => void>();
  #written: (() => void)[] = [];
  #outbox: string[] = [];
  /** What has come and waits for its turn. */
  readonly #chunks: Buffer[] = [];
  #lines: Iterator<Buffer | "tooLong"> | undefined;
  #leftThisTurn = messagesATurn;
  #isCountingTurn = false;
  #waitsForTurn = false;
  #waitsForDrain = false;
  #isEnded = false;
  #isLeaving = false;
  #isClosed = false;

  constructor(options: LineTransportOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { input, output } = this.#options;
    input.on("data", this.#onData);
    input.on("error", this.#onBroken);
    input.on("end", this.#onEnd);
    input.on("close", this.#onEnd);
    output.on("error", this.#onBroken);
    output.on("drain", this.#onDrain);
    // A stream that was read from before, to see who is there, stands still.
    input.resume();
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Error("The connection is closed."));
    if ("method" in message) {
      const isUnread = this.#options.output.writableLength > maxUnreadBytes;
      if (isUnread && droppable.has(message.method)) return Promise.resolve();
    } else if (message.id !== undefined) this.#answered(message.id);
    this.#queue(message);
    return Promise.resolve();
  }

  /** Resolves when the answer to this request has been written, or cannot be any more. */
  written(id: string | number): Promise<void> {
    return this.#isClosed ? Promise.resolve() : new Promise((resolve) => this.#unwritten.set(id, resolve));
  }

  /** Closes the connection as soon as nobody waits for an answer on it. */
  closeWhenIdle(): void {
    this.#isLeaving = true;
    if (this.#inFlight.size === this.#standing.size) void this.close();
  }

  #answered(id: string | number): void {
    const written = this.#unwritten.get(id);
    if (written !== undefined) this.#written.push(written);
    this.#unwritten.delete(id);
    this.#inFlight.delete(id);
    this.#standing.delete(id);
    // The answer itself has yet to be written.
    if (this.#isLeaving) process.nextTick(() => this.closeWhenIdle());
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#flush();
    this.#isClosed = true;
    for (const written of [...this.#written, ...this.#unwritten.values()]) written();
    const { input, output } = this.#options;
    input.off("data", this.#onData);
    input.off("end", this.#onEnd);
    input.off("close", this.#onEnd);
    output.off("drain", this.#onDrain);
    input.pause();
    // The error listeners stay: a late EPIPE without one would end the process.
    this.onclose?.();
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#chunks.push(chunk);
    if (!this.#waitsForTurn) this.#receiveSome();
  };

  /** Begins what has come, as much as leaves others their turn; until the rest has begun nothing more is read. */
  #receiveSome(): void {
    if (!this.#isCountingTurn) setImmediate(this.#onTurn);
    this.#isCountingTurn = true;
    while (!this.#isClosed) {
      this.#waitsForTurn = this.#leftThisTurn <= 0;
      if (this.#waitsForTurn) return void this.#options.input.pause();
      const line = this.#nextLine();
      if (line === undefined) return;
      this.#leftThisTurn -= 1 + line.length / unitBytes;
      this.#receive(line);
    }
  }

  readonly #onTurn = (): void => {
    this.#isCountingTurn = false;
    this.#leftThisTurn = messagesATurn;
    if (!this.#waitsForTurn) return;
    this.#receiveSome();
    if (this.#isEnded) this.#onEnd();
    else this.#resume();
  };

  #nextLine(): Buffer | "tooLong" | undefined {
    for (;;) {
      const next = this.#lines?.next();
      if (next !== undefined && next.done !== true) return next.value;
      const chunk = this.#chunks.shift();
      this.#lines = chunk === undefined ? undefined : this.#splitter.push(chunk);
      if (chunk === undefined) return undefined;
    }
  }

  #resume(): void {
    if (!this.#isClosed && !this.#waitsForTurn && !this.#waitsForDrain) this.#options.input.resume();
  }

  #receive(line: Buffer | "tooLong"): void {
    try {
      if (line === "tooLong") throw new RequestError("tooLarge", `The message is larger than ${maxLineBytes / 1024 / 1024} MiB.`);
      const message = parseMessage(line);
      this.#track(message);
      this.onmessage?.(message);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      // What the client sent may be private; its kind is enough for the log.
      this.#options.log.warn("refused a message", { kind: error.kind });
      this.#queue({ jsonrpc: "2.0", id: null, error: { code: requestErrors[error.kind].code, message: error.message } });
    }
  }

  /** An id names one call at a time; answering a second one would give its caller the first one's result. */
  #track(message: JSONRPCMessage): void {
    if (!("method" in message)) return;
    if ("id" in message && message.id !== undefined) {
      if (this.#inFlight.has(message.id))
        throw new RequestError("request", `The id ${JSON.stringify(message.id)} belongs to a call that is still running; use a fresh id.`);
      this.#inFlight.add(message.id);
      if (message.method === "subscriptions/listen" || this.#options.isAskedAgain?.(message.method) === true) this.#standing.add(message.id);
    } else if (message.method === "notifications/cancelled") {
      const { requestId } = (message.params ?? {}) as { requestId?: string | number };
      if (requestId !== undefined) this.#answered(requestId);
    }
  }

  /** Messages made in one turn of the event loop leave in few writes: under load a write is most of what a call costs. */
  #queue(message: object): void {
    // After everything that is answered in the same turn, and before anything else.
    if (this.#outbox.length === 0) process.nextTick(this.#flush);
    this.#outbox.push(`${JSON.stringify(message)}\n`);
  }

  readonly #flush = (): void => {
    if (this.#outbox.length === 0 || this.#isClosed) return;
    const text = this.#outbox.length === 1 ? (this.#outbox[0] as string) : this.#outbox.join("");
    this.#outbox = [];
    const hasRoom = this.#options.write(text);
    for (const written of this.#written.splice(0)) written();
    this.#waitsForDrain = !hasRoom;
    if (!hasRoom) this.#options.input.pause();
  };

  readonly #onDrain = (): void => {
    this.#waitsForDrain = false;
    this.#resume();
  };

  readonly #onBroken = (error: Error): void => {
    if (this.#isClosed) return;
    this.onerror?.(error);
    void this.close();
  };

  /** What came before the end is still received. */
  readonly #onEnd = (): void => {
    this.#isEnded = true;
    if (!this.#waitsForTurn) void this.close();
  };
}
