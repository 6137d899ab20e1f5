import type { Authentication } from "../../auth/authentication.ts";
import { type Caller, callerKey, whose } from "../../command/caller.ts";
import { isStoreError, RequestError, RpcCode } from "../../errors.ts";
import { Conversation } from "../../mcp/conversation.ts";
import type { Served } from "../../mcp/serving.ts";
import type { Message } from "../../wire/message.ts";
import { assumedRevision, legacyRevisions, modernRevision } from "../../wire/revisions.ts";
import { limitsOf, tooManyRequests } from "../door-limits.ts";
import type { DoorRequest } from "./door-request.ts";
import { EventWay } from "./event-way.ts";
import { FarLines } from "./far-lines.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { HttpSession, receive, type SessionNode } from "./http-session.ts";
import { ReplayMemory } from "./replay.ts";
import { toGreeting } from "./session-notes.ts";
import { SessionPost } from "./session-post.ts";

/** How long what was sent is kept for a client that comes back, at least; it is looked for once a minute. */
const replayLivesMs = 60_000;
/** What is left of an answer lives this long: a client that comes back even later asks for its tasks. */
const wordLivesMs = 5 * 60_000;
/** How often it is looked for sessions that were silent for too long, and those that were used are noted as such. */
const lookMs = 60_000;

interface From {
  readonly authentication: Authentication;
  readonly request: DoorRequest;
  readonly exchange: HttpExchange;
  readonly message?: Message;
}

/**
 * Clients before 2026-07-28 hold a session: one conversation each, found by a header. Who has too many loses its own,
 * and nobody else's. One that is not known here has begun at another server on the store, and goes on here as well.
 */
export class Sessions {
  readonly #served: Served;
  readonly #sessions = new Map<string, HttpSession>();
  readonly #byCaller = new Map<string, Set<HttpSession>>();
  readonly #place: SessionNode;
  #cancelLook: (() => void) | undefined;
  #lastLookAt = Number.NEGATIVE_INFINITY;

  constructor(served: Served) {
    this.#served = served;
    const { clock, log } = served;
    const post = new SessionPost({
      open: async () => (await served.openShared()).sessions,
      onNews: (sessionId, news, from) => this.#sessions.get(sessionId)?.hear(news, from),
      onEnded: (sessionId) => this.#forget(this.#sessions.get(sessionId)),
      clock,
      log,
    });
    this.#place = { served, replays: new ReplayMemory(), post, lines: new FarLines(post, clock) };
  }

  /** Answers on the exchange; throws, or rejects with, what the request is refused with. */
  handle(from: From): void | Promise<void> {
    const { request, message } = from;
    const id = request.header("mcp-session-id");
    // Since 2026-07-28 there is no session, whatever a header says.
    if (message === undefined && request.header("mcp-protocol-version") === modernRevision) throw withoutSession();
    if (id !== undefined) return this.#find(id, from);
    if (message === undefined) throw withoutSession();
    refuseAccept(request, ["application/json", "text/event-stream"]);
    if (message.method === "initialize" && message.id !== undefined) return this.#begin(message, from);
    refuseVersion(request);
    this.#answerAlone(message, from);
  }

  sendListsChanged(lists: readonly string[]): void {
    for (const session of this.#sessions.values()) session.sendListsChanged(lists);
  }

  /** The store is about to be closed: sessions go on at other servers. */
  async leave(): Promise<void> {
    this.#cancelLook?.();
    await Promise.all([this.#noteUsed(), ...[...this.#sessions.values()].map((session) => session.leave())]);
    await this.#place.post.leave();
  }

  close(): void {
    this.#cancelLook?.();
    this.#place.post.close();
    for (const session of this.#sessions.values()) session.close();
    this.#sessions.clear();
    this.#byCaller.clear();
  }

  /** A message that belongs to no session. */
  #answerAlone(message: Message, { authentication, exchange }: From): void {
    if (message.method === undefined || message.id === undefined) return void exchange.accept();
    const way = new EventWay({ id: "" }, exchange);
    const conversation = new Conversation(this.#served, {
      authentication,
      door: "http",
      way,
      canPush: () => false,
      era: "legacy",
    });
    exchange.onClose(() => conversation.close());
    receive(conversation, message, way);
  }

  #begin(message: Message, { authentication, exchange }: From): Promise<void> {
    this.#refuseWithoutRoom(authentication.caller);
    const session = new HttpSession(this.#place, authentication);
    return session.begin(message, exchange, () => this.#keep(session, toGreeting(message)));
  }

  /** The handshake has been accepted. */
  async #keep(session: HttpSession, greeting: string): Promise<void> {
    const { id: sessionId, caller } = session;
    const { sessions: most, silenceMs } = limitsOf(caller);
    this.#makeRoom(caller);
    const kept = { sessionId, caller: this.#ownerKey(caller), greeting, silenceMs };
    if (!(await this.#share((post) => post.keep(kept, most)))) throw tooManySessions(caller, most);
    this.#add(session);
  }

  /** Where the store fails, sessions go on as long as their client comes here. */
  async #share(act: (post: SessionPost) => Promise<boolean>): Promise<boolean> {
    try {
      return await act(this.#place.post);
    } catch (error) {
      if (isStoreError(error)) return true;
      throw error;
    }
  }

  #add(session: HttpSession): void {
    this.#sessions.set(session.id, session);
    const key = callerKey(session.caller);
    const own = this.#byCaller.get(key) ?? new Set();
    this.#byCaller.set(key, own.add(session));
    this.#lookForSilent();
  }

  #find(id: string, from: From): void | Promise<void> {
    // What its client has done elsewhere, its end for one, comes first.
    this.#place.post.catchUpUnlessJustNow();
    const session = this.#sessions.get(id);
    if (session === undefined) return this.#findElsewhere(id, from);
    // A session belongs to who began it: for anybody else it does not exist.
    if (callerKey(session.caller) !== callerKey(from.authentication.caller)) throw noSession();
    return session.ready === undefined
      ? this.#continue(session, from)
      : session.ready.then(() => this.#continue(session, from));
  }

  async #findElsewhere(id: string, from: From): Promise<void> {
    const { authentication, request, exchange } = from;
    const kept = await this.#place.post.find(this.#ownerKey(authentication.caller), id);
    if (kept === undefined) throw noSession();
    // Another request may have been faster.
    if (this.#sessions.has(id)) return await this.#find(id, from);
    if (request.method === "DELETE") {
      refuseVersion(request);
      await this.#place.post.end(id);
      return void exchange.accept(200);
    }
    const session = new HttpSession(this.#place, authentication, id);
    this.#add(session);
    session.ready = session.resume(kept).finally(() => (session.ready = undefined));
    try {
      await session.ready;
    } catch (error) {
      this.#forget(session);
      throw error;
    }
    await this.#continue(session, from);
  }

  #continue(session: HttpSession, { authentication, request, exchange, message }: From): void | Promise<void> {
    // It may have hung up while it was looked for.
    if (exchange.isOver) return;
    session.use();
    if (request.method === "DELETE") {
      refuseVersion(request);
      return this.#end(session).then(() => exchange.accept(200));
    }
    if (message === undefined) {
      refuseAccept(request, ["text/event-stream"]);
      refuseVersion(request);
      return session.openStream(exchange, request.header("last-event-id"));
    }
    refuseAccept(request, ["application/json", "text/event-stream"]);
    if (message.method === "initialize")
      throw new RequestError("request", "Invalid Request: Server already initialized");
    refuseVersion(request);
    if (message.method === undefined || message.id === undefined || message.id === null) {
      const told = session.heed(message);
      return told === undefined ? exchange.accept() : told.then(() => exchange.accept());
    }
    if (session.conversation.isRunning(message.id))
      throw new RequestError(
        "request",
        `The id ${JSON.stringify(message.id)} belongs to a call that is still running; use a fresh id.`,
      );
    this.#refuseTooMany(authentication.caller);
    session.answer(message, exchange, { revision: versionOf(request), authentication });
  }

  /** A session is of one caller and one project, as tasks are. */
  #ownerKey(caller: Caller): string {
    return `${this.#served.project} ${callerKey(caller)}`;
  }

  #of(caller: Caller): readonly HttpSession[] {
    return [...(this.#byCaller.get(callerKey(caller)) ?? [])];
  }

  #refuseWithoutRoom(caller: Caller): void {
    const own = this.#of(caller);
    if (own.length < limitsOf(caller).sessions || own.some(({ isIdle }) => isIdle)) return;
    throw tooManySessions(caller, own.length);
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
    for (const session of silent.slice(0, own.length + 1 - limitsOf(caller).sessions)) void this.#end(session);
  }

  /** Ends it everywhere. */
  async #end(session: HttpSession): Promise<void> {
    this.#forget(session);
    await this.#place.post.end(session.id);
  }

  #forget(session: HttpSession | undefined): void {
    if (session === undefined || !this.#sessions.delete(session.id)) return;
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
      this.#place.replays.sweep(now - replayLivesMs, now - wordLivesMs);
      void this.#noteUsed();
      // Whether it is used elsewhere is on record: who comes back finds it there, or not.
      for (const session of this.#sessions.values())
        if (session.isIdle && now - session.lastUsedAt >= limitsOf(session.caller).silenceMs) this.#forget(session);
      if (this.#sessions.size > 0) this.#lookForSilent();
    });
  }

  /** That a session is used here is on record within a minute. */
  async #noteUsed(): Promise<void> {
    const now = this.#served.clock.monotonic();
    const since = this.#lastLookAt;
    this.#lastLookAt = now;
    const used = [...this.#sessions.values()].filter(({ isIdle, lastUsedAt }) => !isIdle || lastUsedAt >= since);
    await this.#place.post.touch(
      used.map(({ id, isIdle, lastUsedAt }) => ({ sessionId: id, agoMs: isIdle ? now - lastUsedAt : 0 })),
    );
  }
}

function noSession(): HttpRefusal {
  return new HttpRefusal(404, "Session not found; begin a new one with initialize.", {
    code: RpcCode.SessionNotFound,
  });
}

function tooManySessions(caller: Caller, count: number): RequestError {
  return new RequestError(
    "busy",
    `There are ${count} sessions of ${whose(callerKey(caller))} already, all of them in use; end one with DELETE, then begin another.`,
  );
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
