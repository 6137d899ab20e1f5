import type { Readable, Writable } from "node:stream";
import type { Clock } from "../clock.ts";
import { arrivalTime } from "../command/loop-watch.ts";
import { RequestError, requestErrors } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Way } from "../mcp/incoming.ts";
import { Backlog, type Outbound } from "../mcp/outbound.ts";
import { parseMessage } from "../wire/frames.ts";
import { LineSplitter, maxLineBytes, readWaitedLine } from "../wire/lines.ts";
import type { Message } from "../wire/message.ts";
import { Outbox, type WritePart } from "./outbox.ts";

/** What may be dropped rather than kept for a client that does not read. */
const droppable = new Set(["notifications/progress", "notifications/message"]);
/**
 * So many messages of one client, or so much of them, are begun before others have their turn; fewer where they make a
 * turn longer than this.
 */
const messagesATurn = 100;
const leastATurn = 5;
const turnMs = 15;
/**
 * Requests without an answer on one connection. Calls that run have limits of their own; the rest wait for what others
 * do, and cost little.
 */
const maxInFlight = 10_000;
const unitBytes = 64 * 1024;

export interface LineTransportOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Writes to `output` even where its own `write` was taken away from others. */
  readonly write: WritePart;
  /** Requests that the other side asks again by itself when this one hangs up: they are no reason to stay. */
  readonly isAskedAgain?: (method: string) => boolean;
  /** At the other end is the stdio proxy, which says how long a message waited for this process. */
  readonly isProxied?: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * One MCP connection over a pair of byte streams, one message a line.
 * A bad line gets one error and the next is read; a client that stops reading stops being read, and is closed when that
 * lasts.
 */
export class LineTransport implements Way, Outbound {
  readonly backlog = new Backlog();
  readonly exchange = undefined;
  onMessage?: (message: Message) => void;
  onClose?: () => void;
  onError?: (error: Error) => void;
  readonly #options: LineTransportOptions;
  readonly #splitter = new LineSplitter();
  readonly #inFlight = new Set<string | number>();
  /** Requests that stand until somebody ends them: nobody waits for their answer. */
  readonly #standing = new Set<string | number>();
  readonly #outbox: Outbox;
  /** Chunks that were read and not yet parsed, with the time of their arrival. */
  readonly #chunks: { readonly bytes: Buffer; readonly arrivedAt: number }[] = [];
  #arrivedAt = 0;
  /** How long the next message waited in the stdio proxy. */
  #waitedMs = 0;
  #lines: Iterator<Buffer | "tooLong"> | undefined;
  #aTurn = messagesATurn;
  #leftThisTurn = messagesATurn;
  #turnBeganAt = 0;
  #isCountingTurn = false;
  #waitsForTurn = false;
  #waitsForDrain = false;
  #isEnded = false;
  #isLeaving = false;
  #isClosed = false;

  constructor(options: LineTransportOptions) {
    this.#options = options;
    const { input, output, write, clock } = options;
    this.#outbox = new Outbox({
      output,
      write,
      clock,
      onBehind: () => {
        this.#waitsForDrain = true;
        input.pause();
      },
      onDrain: () => {
        this.#waitsForDrain = false;
        this.#resume();
      },
      onBroken: (error) => {
        this.#onBroken(error);
        // Somebody who does not read would never let what is written go.
        output.destroy();
      },
    });
  }

  start(): void {
    const { input, output } = this.#options;
    input.on("data", this.#onData);
    input.on("error", this.#onBroken);
    input.on("end", this.#onEnd);
    input.on("close", this.#onEnd);
    output.on("error", this.#onBroken);
    output.on("drain", this.#outbox.onDrain);
    // A stream that was read from before, to see who is there, stands still.
    input.resume();
  }

  get outbound(): Outbound {
    return this;
  }

  get untakenPart(): number | undefined {
    return this.#outbox.untakenPart;
  }

  closeSlow(): void {
    this.#onBroken(new Error("The client reads too slowly, and others wait for room for their results."));
    this.#options.output.destroy();
  }

  /** The arrival of the message that `onMessage` is being called with. */
  get arrivedAt(): number {
    return this.#arrivedAt - this.#waitedMs;
  }

  send(message: Message): void {
    if (this.#isClosed) return;
    const { method, id } = message;
    if (method !== undefined && droppable.has(method) && this.#outbox.isUnread) return;
    if (method === undefined && id !== undefined && id !== null) this.#answered(id);
    this.#outbox.push(message);
  }

  whenLeft(requestId: string | number): Promise<boolean> {
    // To what is in flight no longer, because it was taken back, there is no answer to wait for.
    return this.#inFlight.has(requestId) ? this.#outbox.whenLeft(requestId) : Promise.resolve(!this.#isClosed);
  }

  /** Closes the connection as soon as nobody waits for an answer on it. */
  closeWhenIdle(): void {
    this.#isLeaving = true;
    if (this.#inFlight.size === this.#standing.size) void this.close();
  }

  #answered(id: string | number): void {
    this.#inFlight.delete(id);
    this.#standing.delete(id);
    // The answer itself has yet to be written.
    if (this.#isLeaving) process.nextTick(() => this.closeWhenIdle());
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { input, output } = this.#options;
    this.#outbox.close(output.writable);
    input.off("data", this.#onData);
    input.off("end", this.#onEnd);
    input.off("close", this.#onEnd);
    output.off("drain", this.#outbox.onDrain);
    input.pause();
    // The error listeners stay: a late EPIPE without one would end the process.
    this.onClose?.();
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#chunks.push({ bytes: chunk, arrivedAt: arrivalTime(this.#options.clock) });
    if (!this.#waitsForTurn) this.#receiveSome();
  };

  /** Begins what has come, as much as leaves others their turn; until the rest has begun nothing more is read. */
  #receiveSome(): void {
    if (!this.#isCountingTurn) setImmediate(this.#onTurn);
    if (!this.#isCountingTurn) this.#turnBeganAt = this.#options.clock.monotonic();
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
    if (this.#waitsForTurn) this.#fitTurn();
    this.#leftThisTurn = this.#aTurn;
    if (!this.#waitsForTurn) return;
    this.#receiveSome();
    if (this.#isEnded) this.#onEnd();
    else this.#resume();
  };

  /** What a message costs is known when its turn is over. */
  #fitTurn(): void {
    const tookMs = Math.max(1, this.#options.clock.monotonic() - this.#turnBeganAt);
    this.#aTurn = Math.min(messagesATurn, Math.max(leastATurn, Math.round((this.#aTurn * turnMs) / tookMs)));
  }

  #nextLine(): Buffer | "tooLong" | undefined {
    for (;;) {
      const next = this.#lines?.next();
      if (next !== undefined && next.done !== true) return next.value;
      const chunk = this.#chunks.shift();
      this.#lines = chunk === undefined ? undefined : this.#splitter.push(chunk.bytes);
      if (chunk === undefined) return undefined;
      this.#arrivedAt = chunk.arrivedAt;
    }
  }

  #resume(): void {
    if (!this.#isClosed && !this.#waitsForTurn && !this.#waitsForDrain) this.#options.input.resume();
  }

  #receive(line: Buffer | "tooLong"): void {
    const waitedMs = this.#options.isProxied === true && line !== "tooLong" ? readWaitedLine(line) : undefined;
    if (waitedMs === undefined) this.#receiveMessage(line);
    this.#waitedMs = waitedMs ?? 0;
  }

  #receiveMessage(line: Buffer | "tooLong"): void {
    try {
      if (line === "tooLong")
        throw new RequestError("tooLarge", `The message is larger than ${maxLineBytes / 1024 / 1024} MiB.`);
      const message = parseMessage(line);
      this.#track(message);
      this.onMessage?.(message);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      // What the client sent may be private; its kind is enough for the log.
      this.#options.log.warn("refused a message", { kind: error.kind });
      const id = error instanceof TooManyRequests ? error.id : null;
      this.#outbox.push({ id, error: { code: requestErrors[error.kind].code, message: error.message } });
    }
  }

  /** An id names one call at a time; answering a second one would give its caller the first one's result. */
  #track(message: Message): void {
    const { method, id } = message;
    if (method === undefined) return;
    if (id !== undefined && id !== null) {
      if (this.#inFlight.has(id))
        throw new RequestError(
          "request",
          `The id ${JSON.stringify(id)} belongs to a call that is still running; use a fresh id.`,
        );
      if (this.#inFlight.size >= maxInFlight) throw new TooManyRequests(id);
      this.#inFlight.add(id);
      if (method === "subscriptions/listen" || this.#options.isAskedAgain?.(method) === true) this.#standing.add(id);
    } else if (method === "notifications/cancelled") {
      const { requestId } = (message.params ?? {}) as { requestId?: string | number };
      if (requestId === undefined) return;
      this.#answered(requestId);
      this.#outbox.forget(requestId);
    }
  }

  readonly #onBroken = (error: Error): void => {
    if (this.#isClosed) return;
    this.onError?.(error);
    void this.close();
  };

  /** What came before the end is still received. */
  readonly #onEnd = (): void => {
    this.#isEnded = true;
    if (!this.#waitsForTurn) void this.close();
  };
}

/** What cannot be taken on; unlike a message that could not be read it has an id to be answered by. */
class TooManyRequests extends RequestError {
  readonly id: string | number;

  constructor(id: string | number) {
    super(
      "busy",
      `There are ${maxInFlight} requests without an answer on this connection already, the most there may be; wait for one to end.`,
    );
    this.id = id;
  }
}
