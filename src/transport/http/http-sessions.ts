import { type Caller, callerKey, whose } from "../../command/caller.ts";
import { RequestError, RpcCode } from "../../errors.ts";
import { createId } from "../../ids.ts";
import { Conversation } from "../../mcp/conversation.ts";
import type { Way } from "../../mcp/incoming.ts";
import type { Served } from "../../mcp/serving.ts";
import type { Message } from "../../wire/message.ts";
import { assumedRevision, legacyRevisions, modernRevision, takesEmptyEvents } from "../../wire/revisions.ts";
import { limitsOf, tooManyRequests } from "../door-limits.ts";
import type { DoorRequest } from "./door-request.ts";
import { EventWay } from "./event-way.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { Replay, ReplayMemory } from "./replay.ts";

/** How long what was sent is kept for a client that comes back, at least; it is looked for once a minute. */
const replayLivesMs = 60_000;
/** How often it is looked for sessions that were silent for too long. */
const lookMs = 60_000;
/** The stream for messages of our own; those of requests have ids that nobody has chosen. */
const ownStream = "_GET_stream";

interface From {
  readonly caller: Caller;
  readonly request: DoorRequest;
  readonly exchange: HttpExchange;
  readonly message?: Message;
}

/**
 * Clients before 2026-07-28 hold a session: one conversation each, found by a header. Who has too many loses its own,
 * and nobody else's.
 */
export class Sessions {
  readonly #served: Served;
  readonly #sessions = new Map<string, Session>();
  readonly #byCaller = new Map<string, Set<Session>>();
  readonly #replays = new ReplayMemory();
  #cancelLook: (() => void) | undefined;

  constructor(served: Served) {
    this.#served = served;
  }

  /** Answers on the exchange; throws what the request is refused with. */
  handle(from: From): void {
    const { request, message } = from;
    const id = request.header("mcp-session-id");
    // Since 2026-07-28 there is no session, whatever a header says.
    if (message === undefined && request.header("mcp-protocol-version") === modernRevision) throw withoutSession();
    if (id !== undefined) return void this.#continue(id, from);
    if (message === undefined) throw withoutSession();
    refuseAccept(request, ["application/json", "text/event-stream"]);
    if (message.method === "initialize" && message.id !== undefined) return void this.#begin(message, from);
    refuseVersion(request);
    this.#answerAlone(message, from);
  }

  sendListsChanged(lists: readonly string[]): void {
    for (const { conversation } of this.#sessions.values()) conversation.sendListsChanged(lists);
  }

  close(): void {
    this.#cancelLook?.();
    for (const session of this.#sessions.values()) session.close();
    this.#sessions.clear();
    this.#byCaller.clear();
  }

  /** A message that belongs to no session. */
  #answerAlone(message: Message, { caller, exchange }: From): void {
    if (message.method === undefined || message.id === undefined) return void exchange.accept();
    const way = new EventWay({ id: "" }, exchange);
    const conversation = new Conversation(this.#served, {
      caller,
      door: "http",
      way,
      canPush: () => false,
      era: "legacy",
    });
    exchange.onClose(() => conversation.close());
    receive(conversation, message, way);
  }

  #begin(message: Message, { caller, exchange }: From): void {
    this.#refuseWithoutRoom(caller);
    const session = new Session(this.#served, caller, this.#replays);
    session.begin(message, exchange, () => this.#keep(session));
  }

  /** The handshake has been accepted. */
  #keep(session: Session): void {
    this.#makeRoom(session.caller);
    this.#sessions.set(session.id, session);
    const key = callerKey(session.caller);
    const own = this.#byCaller.get(key) ?? new Set();
    this.#byCaller.set(key, own.add(session));
    this.#lookForSilent();
  }

  #continue(id: string, { caller, request, exchange, message }: From): void {
    const session = this.#sessions.get(id);
    // A session belongs to who began it: for anybody else it does not exist.
    if (session === undefined || callerKey(session.caller) !== callerKey(caller))
      throw new HttpRefusal(404, "Session not found; begin a new one with initialize.", {
        code: RpcCode.SessionNotFound,
      });
    session.use();
    if (request.method === "DELETE") {
      refuseVersion(request);
      this.#end(session);
      return void exchange.accept(200);
    }
    if (message === undefined) {
      refuseAccept(request, ["text/event-stream"]);
      refuseVersion(request);
      return void session.openStream(exchange, request.header("last-event-id"));
    }
    refuseAccept(request, ["application/json", "text/event-stream"]);
    if (message.method === "initialize")
      throw new RequestError("request", "Invalid Request: Server already initialized");
    refuseVersion(request);
    if (message.method === undefined || message.id === undefined || message.id === null) {
      session.conversation.receive(message);
      return void exchange.accept();
    }
    if (session.conversation.isRunning(message.id))
      throw new RequestError(
        "request",
        `The id ${JSON.stringify(message.id)} belongs to a call that is still running; use a fresh id.`,
      );
    this.#refuseTooMany(caller);
    session.answer(message, exchange, { revision: versionOf(request), caller });
  }

  #of(caller: Caller): readonly Session[] {
    return [...(this.#byCaller.get(callerKey(caller)) ?? [])];
  }

  #refuseWithoutRoom(caller: Caller): void {
    const own = this.#of(caller);
    if (own.length < limitsOf(caller).sessions || own.some(({ isIdle }) => isIdle)) return;
    throw new RequestError(
      "busy",
      `There are ${own.length} sessions of ${whose(callerKey(caller))} already, all of them in use; end one with DELETE, then begin another.`,
    );
  }

  /** Calls of clients that broke off are still in flight. */
  #refuseTooMany(caller: Caller): void {
    let running = 0;
    for (const { conversation } of this.#byCaller.get(callerKey(caller)) ?? []) running += conversation.running;
    if (running >= limitsOf(caller).requests) throw tooManyRequests(caller, running);
  }

  /** The caller's own session that has been silent longest makes room; its client will begin a new one. */
  #makeRoom(caller: Caller): void {
    const own = this.#of(caller);
    if (own.length < limitsOf(caller).sessions) return;
    const silent = own.filter(({ isIdle }) => isIdle).toSorted((a, b) => a.lastUsedAt - b.lastUsedAt);
    for (const session of silent.slice(0, own.length + 1 - limitsOf(caller).sessions)) this.#end(session);
  }

  #end(session: Session): void {
    this.#sessions.delete(session.id);
    const key = callerKey(session.caller);
    const own = this.#byCaller.get(key);
    own?.delete(session);
    if (own?.size === 0) this.#byCaller.delete(key);
    session.close();
  }

  /** Clients leave without a word, and what they said about themselves would stay for good. */
  #lookForSilent(): void {
    const { clock } = this.#served;
    this.#cancelLook ??= clock.after(lookMs, () => {
      this.#cancelLook = undefined;
      const now = clock.monotonic();
      this.#replays.sweep(now - replayLivesMs);
      for (const session of this.#sessions.values())
        if (session.isIdle && now - session.lastUsedAt >= limitsOf(session.caller).silenceMs) this.#end(session);
      if (this.#sessions.size > 0) this.#lookForSilent();
    });
  }
}

class Session {
  readonly id = createId();
  readonly caller: Caller;
  readonly conversation: Conversation;
  readonly #served: Served;
  readonly #replay: Replay;
  readonly #headers = { "mcp-session-id": this.id };
  /** Those of requests that are not over, by their ids. */
  readonly #ways = new Map<string, EventWay>();
  readonly #own: EventWay;
  lastUsedAt = 0;

  constructor(served: Served, caller: Caller, memory: ReplayMemory) {
    this.#served = served;
    this.caller = caller;
    this.#replay = new Replay(memory, () => served.clock.monotonic());
    this.#own = new EventWay({ id: ownStream, replay: this.#replay, headers: this.#headers });
    const canPush = () => this.#own.isCarried;
    this.conversation = new Conversation(served, { caller, door: "http", way: this.#own, canPush, era: "legacy" });
    this.use();
  }

  /** A call that runs, or a stream that is open, protects its session. */
  get isIdle(): boolean {
    return this.conversation.running === 0 && !this.#own.isCarried;
  }

  use(): void {
    this.lastUsedAt = this.#served.clock.monotonic();
  }

  /** The handshake. A session that was refused has not begun. */
  begin(message: Message, exchange: HttpExchange, onAccepted: () => void): void {
    const asked = String(message.params?.protocolVersion);
    const refused = new EventWay({ id: "" }, exchange);
    const accepted = this.#createWay(exchange, asked);
    receive(this.conversation, message, {
      outbound: exchange,
      exchange: exchange.exchange,
      open: () => undefined,
      send: (answer) => {
        if (answer.method === undefined && answer.error === undefined) onAccepted();
        (answer.error === undefined ? accepted : refused).send(answer);
        if (answer.error !== undefined) this.close();
      },
    });
  }

  answer(message: Message, exchange: HttpExchange, from: { revision: string; caller: Caller }): void {
    receive(this.conversation, message, this.#createWay(exchange, from.revision, from.caller));
  }

  /** For messages of our own; or, for a client that comes back, for what is left of a stream that broke. */
  openStream(exchange: HttpExchange, lastEventId: string | undefined): void {
    exchange.onClose(() => this.use());
    const wanted = lastEventId === undefined ? ownStream : this.#replay.streamOf(lastEventId);
    if (wanted === undefined)
      throw new HttpRefusal(400, "Invalid event ID format: Last-Event-ID names no event of this session.");
    const way =
      wanted === ownStream
        ? this.#own
        : (this.#ways.get(wanted) ?? new EventWay({ id: wanted, replay: this.#replay, headers: this.#headers }));
    if (way.isCarried)
      throw new HttpRefusal(
        409,
        `Conflict: ${way === this.#own ? "Only one SSE stream is allowed per session" : "Stream already has an active connection"}`,
      );
    way.carryOn(exchange, lastEventId ?? "");
    // What has been answered has nothing to come.
    if (way !== this.#own && !this.#ways.has(wanted)) return void way.end();
    if (way === this.#own) this.conversation.streamOpened();
  }

  close(): void {
    this.conversation.leave();
    for (const way of this.#ways.values()) way.end();
    this.#own.end();
    this.#replay.clear();
  }

  #createWay(exchange: HttpExchange, revision: string, caller = this.caller): EventWay {
    const onOver = () => {
      this.#ways.delete(way.id);
      this.use();
    };
    const way = new EventWay(
      {
        ...{ id: createId(), replay: this.#replay, headers: this.#headers, caller, onOver },
        isMarked: takesEmptyEvents(revision),
      },
      exchange,
    );
    this.#ways.set(way.id, way);
    return way;
  }
}

/** Hands a request over; a client whose answer is not there in this turn is shown that it was heard. */
function receive(conversation: Conversation, message: Message, way: Way & { open(): void }): void {
  const id = message.id as string | number;
  conversation.receive(message, way);
  if (!conversation.isRunning(id)) return;
  setImmediate(() => {
    if (conversation.isRunning(id)) way.open();
  });
}

function withoutSession(): HttpRefusal {
  return new HttpRefusal(405, "Without a session MCP is asked by POST.", { headers: { allow: "POST" } });
}

function versionOf(request: DoorRequest): string {
  return request.header("mcp-protocol-version") ?? assumedRevision;
}

function refuseVersion(request: DoorRequest): void {
  const version = request.header("mcp-protocol-version");
  if (version === undefined || legacyRevisions.includes(version)) return;
  throw new HttpRefusal(
    400,
    `Bad Request: Unsupported protocol version: ${version.slice(0, 100)} (supported versions: ${legacyRevisions.join(", ")})`,
  );
}

function refuseAccept(request: DoorRequest, types: readonly string[]): void {
  const accepted = (request.header("accept") ?? "").toLowerCase().split(",");
  if (types.every((type) => accepted.some((range) => range.split(";", 1)[0]?.trim() === type))) return;
  throw new HttpRefusal(
    406,
    `Not Acceptable: Client must accept ${types.length > 1 ? `both ${types.join(" and ")}` : types[0]}`,
  );
}
