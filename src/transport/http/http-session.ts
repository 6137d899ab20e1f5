import type { Authentication } from "../../auth/authentication.ts";
import type { Caller } from "../../command/caller.ts";
import { RequestError } from "../../errors.ts";
import { createFirstNumber, createId } from "../../ids.ts";
import { Conversation } from "../../mcp/conversation.ts";
import type { Way } from "../../mcp/incoming.ts";
import type { Served } from "../../mcp/serving.ts";
import type { KeptSession } from "../../mcp/shared.ts";
import type { Message } from "../../wire/message.ts";
import { takesEmptyEvents } from "../../wire/revisions.ts";
import { type EventCarrier, EventWay } from "./event-way.ts";
import type { FarLines } from "./far-lines.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { OwnStream, originOfEvent } from "./own-stream.ts";
import { Replay, type ReplayMemory } from "./replay.ts";
import { notesOf, SilentWay, saidSoFar } from "./session-notes.ts";
import type { News, SessionPost } from "./session-post.ts";

/** The server that a session is on. */
export interface SessionNode {
  readonly served: Served;
  readonly replays: ReplayMemory;
  readonly post: SessionPost;
  readonly lines: FarLines;
}

/** A session of a client before 2026-07-28, as far as it goes on here. */
export class HttpSession {
  readonly id: string;
  readonly #authentication: Authentication;
  readonly conversation: Conversation;
  readonly #place: SessionNode;
  readonly #replay: Replay;
  readonly #headers: Readonly<Record<string, string>>;
  /** Those of requests that are not over, by their ids. */
  readonly #ways = new Map<string, EventWay>();
  /** Those of them that take longer: until they are over, their clients may take them back elsewhere. */
  readonly #watched = new Set<string>();
  readonly #own: OwnStream;
  lastUsedAt = 0;
  /** Undefined once it can be used. */
  ready: Promise<void> | undefined;

  constructor(place: SessionNode, authentication: Authentication, id = createId()) {
    this.#place = place;
    this.#authentication = authentication;
    this.id = id;
    this.#headers = { "mcp-session-id": id };
    const { served, replays, post, lines } = place;
    this.#replay = new Replay(replays, () => served.clock.monotonic());
    this.#own = new OwnStream({
      ...{ sessionId: id, post, lines, replay: this.#replay, headers: this.#headers },
      onOpen: () => this.conversation.streamOpened(),
    });
    const way = this.#own;
    const canPush = () => way.isOpen;
    // No two servers give their requests the same number: an answer may reach any of them.
    const firstId = createFirstNumber();
    this.conversation = new Conversation(served, {
      ...{ authentication, door: "http", way, canPush, era: "legacy", firstId },
    });
    this.use();
  }

  get caller(): Caller {
    return this.#authentication.caller;
  }

  /** A call that runs, or a stream that is open, protects its session. */
  get isIdle(): boolean {
    return this.conversation.running === 0 && !this.#own.isHeldHere && this.ready === undefined;
  }

  use(): void {
    this.lastUsedAt = this.#place.served.clock.monotonic();
  }

  /** The handshake. A session that was refused has not begun; rejects with what `keep` refuses it with. */
  begin(message: Message, exchange: HttpExchange, keep: () => Promise<void>): Promise<void> {
    const refused = new EventWay({ id: "" }, exchange);
    const accepted = this.#createWay(exchange, String(message.params?.protocolVersion));
    const over = Promise.withResolvers<void>();
    const refuse = (error: unknown) => {
      // Whoever has called answers this exchange.
      this.#ways.delete(accepted.id);
      this.close();
      over.reject(error);
    };
    const send = (answer: Message) => {
      if (answer.error === undefined)
        return void keep()
          .then(() => accepted.send(answer))
          .then(over.resolve, refuse);
      refused.send(answer);
      over.resolve();
      this.close();
    };
    this.#receive(message, { outbound: exchange, exchange: exchange.exchange, open: () => undefined, send });
    return over.promise;
  }

  /** Goes on with one that has begun elsewhere. */
  async resume(kept: KeptSession): Promise<void> {
    this.#own.read(kept.notes);
    for (const message of saidSoFar(kept)) {
      const { error } = (await this.#repeat(message)) ?? {};
      if (error !== undefined && message.method === "initialize")
        throw new RequestError("busy", `The session could not be continued: ${error.message}`);
    }
  }

  answer(message: Message, exchange: HttpExchange, from: { revision: string; authentication: Authentication }): void {
    const { authentication } = from;
    const way = this.#createWay(exchange, from.revision, authentication);
    const { id } = message;
    if (id !== undefined && id !== null) exchange.onClose(() => exchange.isBroken && this.conversation.noteHangUp(id));
    const notes = notesOf(message);
    if (notes === undefined) return void this.#receive(message, way);
    // Whichever server is asked next knows of it.
    const send = (answer: Message) => {
      const isDone = answer.method === undefined && answer.error === undefined;
      const noted = isDone ? this.#place.post.note(this.id, notes, { kind: "heard", message }) : Promise.resolve();
      void noted.then(() => way.send(answer));
    };
    const { exchange: gone } = exchange;
    this.#receive(message, { outbound: exchange, exchange: gone, authentication, open: () => way.open(), send });
  }

  /** What is no request: an answer, or word of something. Undefined where that is done with; else when others know. */
  heed(message: Message): Promise<void> | undefined {
    const { post, served } = this.#place;
    const isForUs = this.conversation.receive(message);
    const isForOne = message.method === undefined || message.method === "notifications/cancelled";
    // Only somebody else's server is interested in what else a client says.
    if (isForOne ? isForUs : served.guests === undefined) return undefined;
    const notes = notesOf(message);
    const news = { kind: "heard", message } as const;
    return notes === undefined ? post.tell(this.id, news) : post.note(this.id, notes, news);
  }

  /** For messages of our own; or, for a client that comes back, for what is left of a stream that broke. */
  async openStream(exchange: HttpExchange, lastEventId: string | undefined): Promise<void> {
    exchange.onClose(() => {
      if (exchange.isBroken) this.conversation.noteLostStream();
      this.use();
    });
    if (lastEventId === undefined) return await this.#own.open(exchange, undefined);
    const origin = originOfEvent(lastEventId);
    const isHere = origin?.node === this.#place.post.node;
    if (origin === undefined || (isHere && this.#replay.streamOf(lastEventId) === undefined)) throw unknownEvent();
    if (origin.isOwn) return await this.#own.open(exchange, { lastEventId, node: origin.node });
    if (isHere) return void this.#carryOn(lastEventId, exchange);
    const line = await this.#place.lines.want(this.id, origin.node, lastEventId);
    if (line === undefined) throw unknownEvent();
    line.arriveAt(exchange, this.#headers);
  }

  /** Another server has something to say about it. */
  hear(news: News, from: string): void {
    if (news.kind === "heard") void this.#repeat(news.message);
    else if (news.kind === "say") this.#own.sendFor(news.message);
    else if (news.kind === "stream") this.#own.heed(news.by, news.isOpen);
    else if (news.kind === "wanted") this.#handOver(from, news);
    else this.#place.lines.hear(news);
  }

  /** The commands have changed. Every server sees that for itself, so the one that holds the stream tells. */
  sendListsChanged(lists: readonly string[]): void {
    if (this.#own.isHeldHere || this.#own.holder === undefined) this.conversation.sendListsChanged(lists);
  }

  /** Others no longer count on us. */
  async leave(): Promise<void> {
    await this.#own.leave();
  }

  close(): void {
    this.conversation.leave();
    for (const way of this.#ways.values()) way.end();
    for (const id of this.#watched) this.#unwatch(id);
    this.#own.end();
    this.#replay.clear();
  }

  /** Does what was asked of another server, for as much as that matters here. */
  async #repeat(message: Message): Promise<Message | undefined> {
    if (message.method === undefined || message.id === undefined || message.id === null) {
      this.conversation.receive(message);
      return undefined;
    }
    const way = new SilentWay();
    this.conversation.receive({ ...message, id: createId() }, way);
    return await way.answered;
  }

  /** A client of ours has come back to another server. */
  #handOver(to: string, { line, lastEventId }: News & { kind: "wanted" }): void {
    const { post, lines } = this.#place;
    try {
      if (lastEventId === undefined || originOfEvent(lastEventId)?.isOwn === true)
        this.#own.handOver(to, line, lastEventId);
      else this.#carryOn(lastEventId, lines.open(this.id, to, line));
    } catch (error) {
      if (!(error instanceof HttpRefusal)) throw error;
      void post.tell(this.id, { kind: "refused", line, status: error.status, why: error.message }, to);
    }
  }

  #carryOn(lastEventId: string, carrier: EventCarrier): void {
    const id = this.#replay.streamOf(lastEventId);
    if (id === undefined) throw unknownEvent();
    const way = this.#ways.get(id) ?? new EventWay({ id, replay: this.#replay, headers: this.#headers });
    if (way.isCarried) throw new HttpRefusal(409, "Conflict: Stream already has an active connection");
    way.carryOn(carrier, lastEventId);
    // What has been answered has nothing to come.
    if (!this.#ways.has(id)) way.end();
  }

  #receive(message: Message, way: OpenableWay): void {
    receive(this.conversation, message, way, () => {
      if (way instanceof EventWay && this.#ways.has(way.id)) this.#watch(way.id);
    });
  }

  #watch(id: string): void {
    this.#watched.add(id);
    this.#place.post.watchClosely(true);
  }

  #unwatch(id: string): void {
    if (this.#watched.delete(id)) this.#place.post.watchClosely(false);
  }

  #createWay(exchange: HttpExchange, revision: string, authentication = this.#authentication): EventWay {
    const id = `${this.#place.post.node}.${createId()}`;
    const onOver = () => {
      this.#ways.delete(id);
      this.#unwatch(id);
      this.use();
    };
    const isMarked = takesEmptyEvents(revision);
    const { headers, replay } = { headers: this.#headers, replay: this.#replay };
    const way = new EventWay({ id, replay, headers, authentication, onOver, isMarked }, exchange);
    this.#ways.set(id, way);
    return way;
  }
}

type OpenableWay = Way & { open(): void };

/** Hands a request over; a client whose answer is not there in this turn is shown that it was heard. */
export function receive(conversation: Conversation, message: Message, way: OpenableWay, onLong = () => {}): void {
  const id = message.id as string | number;
  conversation.receive(message, way);
  if (!conversation.isRunning(id)) return;
  setImmediate(() => {
    if (!conversation.isRunning(id)) return;
    way.open();
    onLong();
  });
}

function unknownEvent(): HttpRefusal {
  return new HttpRefusal(400, "Invalid event ID format: Last-Event-ID names no event of this session.");
}
