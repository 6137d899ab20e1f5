import type { Clock } from "../../clock.ts";
import { arrivalTime } from "../../command/loop-watch.ts";
import { RpcCode } from "../../errors.ts";
import type { Way } from "../../mcp/incoming.ts";
import { Backlog, type Outbound } from "../../mcp/outbound.ts";
import { type Message, writeAnything } from "../../wire/message.ts";
import { toEventText } from "../../wire/sse.ts";
import { partBytes, unread } from "../door-limits.ts";
import type { DoorResponse } from "./door-response.ts";
import { PartWriter } from "./part-writer.ts";

/** The answer to one HTTP request: JSON where one message is all there is, events as soon as there is more. */

const streamHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

/** What is wrong with the request itself is also said in HTTP's own terms. */
const statuses: Readonly<Record<number, number>> = {
  [RpcCode.Method]: 404,
  [RpcCode.UnsupportedRevision]: 400,
  [RpcCode.MissingCapability]: 400,
  [RpcCode.HeaderMismatch]: 400,
};

interface HttpExchangeOptions {
  readonly response: DoorResponse;
  readonly clock: Clock;
  readonly streams: OpenStreams;
}

export class HttpExchange implements Way, Outbound {
  readonly #response: DoorResponse;
  readonly #options: HttpExchangeOptions;
  /** When the head of the request arrived. */
  readonly arrivedAt: number;
  #backlog: Backlog | undefined;
  #writer: PartWriter | undefined;
  /** Writes an answer that is all there is. */
  #wholeWriter: PartWriter | undefined;
  #gone: AbortController | undefined;
  #isEnded = false;
  #isBrokenOff = false;
  readonly #onClose: (() => void)[] = [];

  constructor(options: HttpExchangeOptions) {
    const { response } = options;
    this.#options = options;
    this.#response = response;
    this.arrivedAt = arrivalTime(options.clock);
    response.once("close", () => {
      options.streams.delete(this);
      if (this.isBroken) this.#gone?.abort();
      for (const listener of this.#onClose) listener();
    });
  }

  get outbound(): Outbound {
    return this;
  }

  get backlog(): Backlog {
    this.#backlog ??= new Backlog();
    return this.#backlog;
  }

  /** It is this caller's, and so is what waits to leave by it. */
  shareBacklog(backlog: Backlog): void {
    this.#backlog = backlog;
  }

  /** Nothing more can be written, be it that the app we are in has answered by itself. */
  get isOver(): boolean {
    const { destroyed, headersSent, writableEnded } = this.#response;
    return this.#isEnded || destroyed || writableEnded || (headersSent && !this.isStream);
  }

  /** The client hung up before it had everything. */
  get isBroken(): boolean {
    return this.#response.closed && (this.#isBrokenOff || !this.#response.writableFinished);
  }

  get isStream(): boolean {
    return this.#writer !== undefined;
  }

  get exchange(): AbortSignal {
    if (this.#gone === undefined) {
      this.#gone = new AbortController();
      if (this.isBroken) this.#gone.abort();
    }
    return this.#gone.signal;
  }

  /** Calls back when the response is over, whichever way. */
  onClose(listener: () => void): void {
    if (this.#response.closed) listener();
    else this.#onClose.push(listener);
  }

  whenLeft(): Promise<boolean> {
    return new Promise((resolve) => this.onClose(() => resolve(!this.isBroken)));
  }

  get untakenPart(): number | undefined {
    return (this.#writer ?? this.#wholeWriter)?.untakenPart;
  }

  closeSlow(): void {
    this.#response.destroy();
  }

  /** One message; an answer is the last. */
  send(message: Message): void {
    const isAnswer = message.method === undefined;
    if (isAnswer && !this.isStream) return void this.answer(statuses[message.error?.code ?? 0] ?? 200, message);
    this.openStream();
    this.write(toEventText(writeAnything(message) ?? "{}"));
    if (isAnswer) this.end();
  }

  drop(): void {
    this.end();
  }

  answer(status: number, message: Message, headers: Readonly<Record<string, string>> = {}): void {
    if (this.isOver) return;
    const text = writeAnything(message) ?? "";
    this.#isEnded = true;
    this.#writeWhole(status, { "content-type": "application/json", ...headers }, text);
  }

  /** Heard, and nothing to say. */
  accept(status = 202, headers: Readonly<Record<string, string>> = {}): void {
    if (this.isOver) return;
    this.#isEnded = true;
    this.#response.writeHead(status, { ...headers, "content-length": 0 });
    this.#response.end();
  }

  /** Events follow; `first` leaves with the head. */
  openStream(headers: Readonly<Record<string, string>> = {}, first = ""): void {
    if (this.isOver || this.isStream) return;
    this.#response.writeHead(200, { ...streamHeaders, ...headers });
    this.#writer = new PartWriter(this.#response, this.#options.clock);
    this.#options.streams.add(this);
    if (first === "") this.#response.flushHeaders();
    else this.write(first);
  }

  /** Events that are all there is. */
  answerStream(headers: Readonly<Record<string, string>>, text: string): void {
    if (this.isOver) return;
    this.#isEnded = true;
    this.#writeWhole(200, { ...streamHeaders, ...headers }, text);
  }

  /** Head and body leave in one write, unless the body is large. */
  #writeWhole(status: number, headers: Readonly<Record<string, string>>, text: string): void {
    const length = Buffer.byteLength(text);
    this.#response.writeHead(status, { ...headers, "content-length": length });
    if (length <= partBytes) return void this.#response.end(text);
    this.#wholeWriter = new PartWriter(this.#response, this.#options.clock);
    this.#wholeWriter.write(Buffer.from(text));
    void this.#wholeWriter.end();
  }

  /** Whoever writes does not wait, so a client that leaves too much unread is closed. */
  write(text: string, tail = ""): void {
    if (this.isOver || this.#writer === undefined) return;
    if (this.#writer.waitingBytes > unread.mostBytes) return void this.#response.destroy();
    const bytes = Buffer.allocUnsafe(Buffer.byteLength(text) + Buffer.byteLength(tail));
    bytes.write(tail, bytes.write(text));
    this.#writer.write(bytes);
  }

  /** The server leaves: who waits is told so, and whatever else the answer would have been is as if it were lost. */
  breakOff(status: number, message: Message): void {
    if (this.isOver) return;
    this.#isBrokenOff = true;
    if (this.isStream) this.#response.destroy();
    else this.answer(status, message);
  }

  end(): void {
    if (this.isOver) return;
    this.#isEnded = true;
    this.#options.streams.delete(this);
    if (this.#writer !== undefined) void this.#writer.end();
    else this.#response.end();
  }
}

/** A comment now and then, so that nobody between takes a quiet stream for a dead one. */
const keepAliveMs = 15_000;

/** The streams of a door that are open. */
export class OpenStreams {
  readonly #clock: Clock;
  readonly #open = new Set<HttpExchange>();
  #cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(exchange: HttpExchange): void {
    this.#open.add(exchange);
    this.#cancel ??= this.#clock.after(keepAliveMs, this.#onTime);
  }

  delete(exchange: HttpExchange): void {
    if (!this.#open.delete(exchange) || this.#open.size > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  readonly #onTime = (): void => {
    this.#cancel = this.#clock.after(keepAliveMs, this.#onTime);
    for (const exchange of this.#open) exchange.write(": keepalive\n\n");
  };
}
