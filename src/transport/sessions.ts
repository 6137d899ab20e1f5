import {
  type AuthInfo,
  isInitializeRequest,
  isJSONRPCRequest,
  legacyStatelessFallback,
  type McpServerFactory,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Clock } from "../clock.ts";
import { RequestError } from "../errors.ts";
import { createId } from "../ids.ts";
import { type Caller, callerKey } from "../mcp/caller.ts";
import type { CommandServer } from "../mcp/server.ts";
import { limitsOf, nameOf, tooManyRequests } from "./limits.ts";
import { Replay, ReplayMemory } from "./replay.ts";

/** How long a client that lost its connection is asked to wait before it comes back. */
const retryMs = 1_000;
/** How long what was sent is kept for a client that comes back, at least; it is looked for once a minute. */
const replayLivesMs = 60_000;
/** How often it is looked for sessions that were silent for too long. */
const lookMs = 60_000;

interface Session {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: CommandServer;
  readonly caller: Caller;
  /** Ids of calls that have not been answered. */
  readonly inFlight: Set<string | number>;
  lastUsedAt: number;
  /** How many streams the client holds open for messages of the server's own. */
  streams: number;
}

interface From {
  readonly caller: Caller;
  readonly authInfo: AuthInfo;
  readonly parsedBody?: unknown;
  /** Aborted when the response is over, whichever way. */
  readonly closed?: AbortSignal;
}

/** Clients before 2026-07-28 hold a session: one transport and one server each, found by a header. Who has too many loses its own, and nobody else's. */
export class Sessions {
  readonly #options: { factory: McpServerFactory; clock: Clock; onerror: (error: Error) => void };
  readonly #stateless: ReturnType<typeof legacyStatelessFallback>;
  readonly #sessions = new Map<string, Session>();
  readonly #replays = new ReplayMemory();
  #cancelLook: (() => void) | undefined;

  constructor(options: { factory: McpServerFactory; clock: Clock; onerror: (error: Error) => void }) {
    this.#options = options;
    this.#stateless = legacyStatelessFallback(options.factory, options.onerror);
  }

  async handle(request: Request, from: From): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    if (id !== null) return await this.#continue(id, request, from);
    if (from.parsedBody !== undefined && isInitializeRequest(from.parsedBody)) return await this.#begin(request, from);
    return await this.#stateless(request, from);
  }

  notifyListsChanged(): void {
    for (const { server } of this.#sessions.values()) server.sendListsChanged();
  }

  async close(): Promise<void> {
    this.#cancelLook?.();
    await Promise.all([...this.#sessions.values()].map(({ server }) => server.close()));
    this.#sessions.clear();
  }

  async #begin(request: Request, from: From): Promise<Response> {
    const { factory, clock } = this.#options;
    this.#refuseWithoutRoom(from.caller);
    const inFlight = new Set<string | number>();
    const replay = new Replay(this.#replays, () => clock.monotonic());
    const server = (await factory({ era: "legacy", authInfo: from.authInfo, requestInfo: request })) as CommandServer;
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: createId,
      eventStore: replay,
      retryInterval: retryMs,
      onsessioninitialized: (id) => {
        this.#makeRoom(from.caller);
        const session = { transport, server, caller: from.caller, inFlight, lastUsedAt: clock.monotonic(), streams: 0 };
        server.core.isPushable = () => session.streams > 0;
        this.#sessions.set(id, session);
        this.#lookForSilent();
      },
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    await server.connect(transport);
    server.core.closed.addEventListener("abort", () => replay.clear(), { once: true });
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      if (!("method" in message) && message.id !== undefined) {
        inFlight.delete(message.id);
        this.#use(this.#sessions.get(transport.sessionId ?? ""));
      }
      return send(message, options);
    };
    return await transport.handleRequest(request, from);
  }

  async #continue(id: string, request: Request, from: From): Promise<Response> {
    const session = this.#sessions.get(id);
    // A session belongs to who began it: for anybody else it does not exist.
    if (session === undefined || callerKey(session.caller) !== callerKey(from.caller)) {
      return Response.json(
        { jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found; begin a new one with initialize." } },
        { status: 404 },
      );
    }
    this.#use(session);
    const { parsedBody } = from;
    if (isJSONRPCRequest(parsedBody)) {
      if (session.inFlight.has(parsedBody.id))
        throw new RequestError("request", `The id ${JSON.stringify(parsedBody.id)} belongs to a call that is still running; use a fresh id.`);
      this.#refuseTooMany(session.caller);
      session.inFlight.add(parsedBody.id);
    } else this.#forgetCancelled(session, parsedBody);
    const response = await session.transport.handleRequest(request, from);
    if (request.method === "GET" && response.ok) {
      session.streams += 1;
      session.server.core.streamOpened();
      const over = () => {
        session.streams -= 1;
        this.#use(session);
      };
      (from.closed ?? request.signal).addEventListener("abort", over, { once: true });
    }
    // What was refused was never begun, so its id is free again.
    if (response.status >= 400 && isJSONRPCRequest(parsedBody)) session.inFlight.delete(parsedBody.id);
    return response;
  }

  #forgetCancelled(session: Session, message: unknown): void {
    const { method, params } = (message ?? {}) as { method?: string; params?: { requestId?: string | number } };
    if (method === "notifications/cancelled" && params?.requestId !== undefined) session.inFlight.delete(params.requestId);
  }

  #of(caller: Caller): [string, Session][] {
    const key = callerKey(caller);
    return [...this.#sessions].filter(([, session]) => callerKey(session.caller) === key);
  }

  #refuseWithoutRoom(caller: Caller): void {
    const own = this.#of(caller);
    if (own.length < limitsOf(caller).sessions || own.some(([, session]) => isIdle(session))) return;
    throw new RequestError(
      "busy",
      `There are ${own.length} sessions of ${nameOf(caller)} already, all of them in use; end one with DELETE, then begin another.`,
    );
  }

  /** Calls of clients that broke off are still in flight. */
  #refuseTooMany(caller: Caller): void {
    const running = this.#of(caller).reduce((sum, [, { inFlight }]) => sum + inFlight.size, 0);
    if (running >= limitsOf(caller).requests) throw tooManyRequests(caller, running);
  }

  /** The caller's own session that has been silent longest makes room; its client will begin a new one. */
  #makeRoom(caller: Caller): void {
    const own = this.#of(caller);
    if (own.length < limitsOf(caller).sessions) return;
    const silent = own.filter(([, session]) => isIdle(session)).toSorted(([, a], [, b]) => a.lastUsedAt - b.lastUsedAt);
    for (const [id, session] of silent.slice(0, own.length + 1 - limitsOf(caller).sessions)) this.#end(id, session);
  }

  #use(session: Session | undefined): void {
    if (session !== undefined) session.lastUsedAt = this.#options.clock.monotonic();
  }

  #end(id: string, session: Session): void {
    this.#sessions.delete(id);
    void session.server.close();
  }

  /** Clients leave without a word, and what they said about themselves would stay for good. */
  #lookForSilent(): void {
    this.#cancelLook ??= this.#options.clock.after(lookMs, () => {
      this.#cancelLook = undefined;
      const now = this.#options.clock.monotonic();
      this.#replays.sweep(now - replayLivesMs);
      for (const [id, session] of this.#sessions) if (isIdle(session) && now - session.lastUsedAt >= limitsOf(session.caller).silenceMs) this.#end(id, session);
      if (this.#sessions.size > 0) this.#lookForSilent();
    });
  }
}

/** A call that runs, or a stream that is open, protects its session. */
function isIdle({ inFlight, streams }: Session): boolean {
  return inFlight.size === 0 && streams === 0;
}
