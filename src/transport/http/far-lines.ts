import type { Clock } from "../../clock.ts";
import { createId } from "../../ids.ts";
import { Backlog } from "../../mcp/outbound.ts";
import type { EventCarrier } from "./event-way.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";
import type { News, SessionPost } from "./session-post.ts";

/** A server that has not answered by then is gone: one that has nothing else to do looks for letters once a second. */
const answerMs = 3_000;
/** A client that has not taken its last events by then has not got them. */
const deliveryMs = 60_000;

/**
 * Clients that come back to another server than the one that has their events: there it is a line by which these leave,
 * here an exchange that they arrive at.
 */
export class FarLines {
  readonly #post: SessionPost;
  readonly #clock: Clock;
  /** Events come in by these … */
  readonly #near = new Map<string, NearLine>();
  /** … and go out by these. */
  readonly #far = new Map<string, FarCarrier>();

  constructor(post: SessionPost, clock: Clock) {
    this.#post = post;
    this.#clock = clock;
  }

  /** Asks a server for the events after one of its own; undefined when it is gone. Throws what it refuses with. */
  async want(sessionId: string, node: string, lastEventId: string | undefined): Promise<NearLine | undefined> {
    if (!(await this.#post.isThere(node))) return undefined;
    const id = createId();
    const line = new NearLine(() => this.#near.delete(id));
    this.#near.set(id, line);
    this.#post.watchClosely(true);
    const cancelTimer = this.#clock.after(answerMs, () => line.giveUp());
    try {
      await this.#post.tell(sessionId, { kind: "wanted", line: id, lastEventId }, node);
      if (!(await line.answered)) return undefined;
    } finally {
      cancelTimer();
      this.#post.watchClosely(false);
    }
    line.onOver = (isBroken) => void this.#post.tell(sessionId, { kind: "over", line: id, isBroken }, node);
    return line;
  }

  /** A line to a client that is at another server. */
  open(sessionId: string, node: string, id: string): FarCarrier {
    const send = (text: string, isLast: boolean) =>
      void this.#post.tell(sessionId, { kind: "events", line: id, text, isLast }, node);
    const carrier = new FarCarrier(send, this.#clock, () => this.#far.delete(id));
    this.#far.set(id, carrier);
    return carrier;
  }

  hear(news: News): void {
    if (news.kind === "events") this.#near.get(news.line)?.take(news.text, news.isLast === true);
    else if (news.kind === "refused") this.#near.get(news.line)?.refuse(new HttpRefusal(news.status, news.why));
    else if (news.kind === "over") this.#far.get(news.line)?.over(news.isBroken);
  }
}

/** Events of another server, for a client that is here. */
export class NearLine {
  readonly #answer = Promise.withResolvers<boolean>();
  readonly #forget: () => void;
  #text = "";
  #isLast = false;
  #exchange: HttpExchange | undefined;
  onOver: (isBroken: boolean) => void = () => {};

  constructor(forget: () => void) {
    this.#forget = forget;
  }

  get answered(): Promise<boolean> {
    return this.#answer.promise;
  }

  take(text: string, isLast: boolean): void {
    if (isLast) this.#forget();
    if (this.#exchange === undefined) {
      this.#text += text;
      this.#isLast ||= isLast;
      return void this.#answer.resolve(true);
    }
    this.#exchange.write(text);
    if (isLast) this.#exchange.end();
  }

  refuse(refusal: HttpRefusal): void {
    this.#forget();
    this.#answer.reject(refusal);
  }

  giveUp(): void {
    this.#forget();
    this.#answer.resolve(false);
  }

  /** All that has come, where nothing else will. */
  close(): string {
    this.#forget();
    return this.#text;
  }

  /** From now on they leave by this exchange. */
  arriveAt(exchange: HttpExchange, headers: Readonly<Record<string, string>>): void {
    exchange.onClose(() => {
      this.#forget();
      this.onOver(exchange.isBroken);
    });
    exchange.openStream(headers, this.#text);
    this.#exchange = exchange;
    if (this.#isLast) exchange.end();
  }
}

/** The way of a request whose client has come back to another server. */
export class FarCarrier implements EventCarrier {
  readonly backlog = new Backlog();
  readonly #send: (text: string, isLast: boolean) => void;
  readonly #clock: Clock;
  readonly #forget: () => void;
  readonly #gone = new AbortController();
  readonly #left = Promise.withResolvers<boolean>();
  #cancelTimer: (() => void) | undefined;
  /** The last event was sent, and the other server has not said what became of it. */
  #isUnconfirmed = false;
  isStream = false;
  isOver = false;

  constructor(send: (text: string, isLast: boolean) => void, clock: Clock, forget: () => void) {
    this.#send = send;
    this.#clock = clock;
    this.#forget = forget;
  }

  get exchange(): AbortSignal {
    return this.#gone.signal;
  }

  whenLeft(): Promise<boolean> {
    return this.#left.promise;
  }

  /** The other server says nothing before the client has everything, so that the whole answer is one part. */
  get untakenPart(): number | undefined {
    return this.#isUnconfirmed ? 0 : undefined;
  }

  closeSlow(): void {
    this.over(true);
  }

  openStream(_headers: unknown, first: string): void {
    if (this.isOver) return;
    this.isStream = true;
    this.#send(first, false);
  }

  answerStream(_headers: unknown, text: string): void {
    this.#finish(text);
  }

  write(text: string, tail = ""): void {
    if (!this.isOver) this.#send(text + tail, false);
  }

  end(): void {
    this.#finish("");
  }

  /** Its client has hung up, or has everything. */
  over(isBroken: boolean): void {
    this.#cancelTimer?.();
    this.#forget();
    this.isOver = true;
    this.#isUnconfirmed = false;
    this.#left.resolve(!isBroken);
    if (isBroken) this.#gone.abort();
  }

  #finish(text: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#send(text, true);
    this.#isUnconfirmed = true;
    this.#cancelTimer = this.#clock.after(deliveryMs, () => this.over(true));
  }
}
