import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server as NodeServer, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import {
  createMcpHandler,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpServer,
  type McpServerFactory,
  type ServerNotifier,
  validateHostHeader,
  validateOriginHeader,
} from "@modelcontextprotocol/server";
import type { Clock } from "../clock.ts";
import { internalErrorCode, isOutOfDescriptors, outOfDescriptors, RequestError, RuntimeError, requestErrors, UsageError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { anonymous, type Caller, localUser, toAuthInfo } from "../mcp/caller.ts";
import { toProtocolError } from "../mcp/server.ts";
import { refuseListen, type TaskListen, type TaskSubscriptions, toTaskListen } from "../mcp/subscriptions.ts";
import { Connections } from "./connections.ts";
import { checkMessage, maxBodyBytes, parseJson, refuseIntroduction } from "./frames.ts";
import { keptOpen, withTasks } from "./listen.ts";
import { writeResponse } from "./respond.ts";
import { Sessions } from "./sessions.ts";

export interface HttpOptions {
  readonly factory: McpServerFactory;
  readonly host: string;
  readonly port: number;
  /** The home's token: who sends it is the local user. */
  readonly token: string;
  /** Lets in who sends no token, as `anonymous`. */
  readonly allowAnonymous: boolean;
  /** False when one more connection would leave too few file descriptors for the work itself. */
  readonly hasRoom?: () => boolean;
  readonly subscriptions: TaskSubscriptions;
  /** Knows callers by more than the home's token; undefined for a request it does not know. */
  readonly identify?: (request: IncomingMessage) => Caller | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface HttpDoor {
  readonly url: string;
  /** Tells every connected client that the tools, and the prompts, have changed. */
  notifyListsChanged(): void;
  close(): Promise<void>;
}

const loopback = new Set(["127.0.0.1", "localhost", "::1", "[::1]"]);

/** How long a request's head, and all of it, may take: who sends nothing, or a byte at a time, holds nothing for long. */
const patience = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 5_000 };

/** What MCP is asked by; of the last two the answer is that they are nothing here. Of others no request can be made at all. */
const methods = ["GET", "POST", "DELETE", "HEAD", "OPTIONS"];

/** Our own limits for each caller come first. */
const maxSubscriptions = 10_000;

/** Serves MCP at /mcp, every revision on one address. Resolves once it listens. */
export async function serveHttp(options: HttpOptions): Promise<HttpDoor> {
  if (!loopback.has(options.host))
    throw new UsageError(`--host ${options.host} would be reachable from other machines, and there is no authentication yet; use 127.0.0.1 and a tunnel.`);
  const endpoint = new Endpoint(options);
  const server = createServer(patience, (request, response) => void endpoint.handle(request, response));
  server.on("connection", (socket) => endpoint.connected(socket));
  await listen(server, options);
  // Later errors are those of taking a connection; without a listener one would end the process.
  server.on("error", (error) => endpoint.refused(error));
  const { port } = server.address() as { port: number };
  return {
    url: `http://${options.host.includes(":") && !options.host.startsWith("[") ? `[${options.host}]` : options.host}:${port}/mcp`,
    notifyListsChanged: () => endpoint.notifyListsChanged(),
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await endpoint.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function listen(server: NodeServer, { host, port }: HttpOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException) => {
      const text =
        cause.code === "EADDRINUSE" ? `Port ${port} is in use; choose another one with --port.` : `Cannot listen on ${host}:${port}: ${cause.message}`;
      reject(new RuntimeError("PORT_IN_USE", text, { cause }));
    };
    server.once("error", onError);
    server.listen(port, host.replace(/^\[|\]$/g, ""), () => {
      server.off("error", onError);
      resolve();
    });
  });
}

const tellMs = 60_000;

class Endpoint {
  readonly connections: Connections;
  readonly #options: HttpOptions;
  readonly #token: Buffer;
  readonly #modern: ReturnType<typeof createMcpHandler>;
  readonly #sessions: Sessions;
  /** Those that came when there were too few file descriptors left for one more. */
  readonly #crowded = new WeakSet<Socket>();
  #toldFullAt = Number.NEGATIVE_INFINITY;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.connections = new Connections(options.clock);
    this.#token = Buffer.from(options.token);
    const onerror = (error: Error) => options.log.debug(`mcp: ${error.message}`);
    const factory: McpServerFactory = async (facts) => publishChanges((await options.factory(facts)) as McpServer, this.#modern.notify);
    this.#modern = createMcpHandler(factory, { legacy: "reject", onerror, maxSubscriptions });
    this.#sessions = new Sessions({ factory: options.factory, clock: options.clock, onerror });
  }

  notifyListsChanged(): void {
    this.#modern.notify.toolsChanged();
    this.#modern.notify.promptsChanged();
    this.#sessions.notifyListsChanged();
  }

  /** Somebody has connected. */
  connected(socket: Socket): void {
    this.connections.add(socket);
    if (this.#options.hasRoom?.() !== false) return;
    this.#tellFull();
    this.#crowded.add(socket);
  }

  /** A connection could not be taken. */
  refused(error: Error): void {
    if (isOutOfDescriptors(error)) this.#tellFull();
    else this.#options.log.error("a connection could not be taken", { error });
  }

  /** Once a minute: whoever is refused comes again and again. */
  #tellFull(): void {
    const at = this.#options.clock.monotonic();
    if (at - this.#toldFullAt < tellMs) return;
    this.#toldFullAt = at;
    this.#options.log.warn(`there is no room for another connection: ${outOfDescriptors}`);
  }

  async close(): Promise<void> {
    await Promise.all([this.#modern.close(), this.#sessions.close()]);
  }

  /** Never rejects: whatever goes wrong is answered. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.connections.begin(request, response)) return;
    try {
      const answer = await this.#route(request, response);
      await writeResponse(response, answer, this.#options.clock);
    } catch (error) {
      const { status, code, message } = this.#describe(error);
      if (response.headersSent) response.destroy();
      else await writeResponse(response, jsonError(status, code, message), this.#options.clock);
    }
  }

  #describe(error: unknown): { status: number; code: number; message: string } {
    if (error instanceof Refusal) {
      const code = error.status === 503 ? internalErrorCode : requestErrors.request.code;
      return { status: error.status, code, message: error.message };
    }
    if (error instanceof RequestError) return { status: requestErrors[error.kind].http, code: requestErrors[error.kind].code, message: error.message };
    if (error instanceof RuntimeError && error.forClients !== undefined) return { status: 200, code: internalErrorCode, message: error.forClients };
    this.#options.log.error("request failed", { error });
    return { status: 500, code: internalErrorCode, message: "Internal error" };
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<Response> {
    this.#refuseStrangers(request);
    if (this.#crowded.has(request.socket))
      throw new Refusal(503, "The server has no file descriptors left for another connection; come back in a moment, or have their number raised (ulimit -n).");
    const path = (request.url ?? "/").split("?", 1)[0];
    if (path === "/healthz") return Response.json({ status: "ok" });
    // Before anything else is said: who may not come in learns nothing about what is here.
    const caller = this.#callerOf(request);
    if (path !== "/mcp") throw new Refusal(404, "There is nothing here; MCP is at /mcp.");
    return await this.#mcp(request, response, caller);
  }

  /** A web page must not reach us through its reader's browser: not by its own origin, not by a rebound name. */
  #refuseStrangers(request: IncomingMessage): void {
    const host = validateHostHeader(request.headers.host, localhostAllowedHostnames());
    if (!host.ok) throw new Refusal(403, `The Host header must name this machine, e.g. localhost: ${host.message}`);
    const origin = validateOriginHeader(request.headers.origin, localhostAllowedOrigins());
    if (!origin.ok) throw new Refusal(403, `Requests from other web pages are refused: ${origin.message}`);
    const hasBody = request.method !== "GET" && request.method !== "HEAD" && request.method !== "DELETE" && request.method !== "OPTIONS";
    const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
    if (hasBody && type !== "application/json") throw new Refusal(415, "Content-Type must be application/json.");
  }

  #callerOf(request: IncomingMessage): Caller {
    const known = this.#options.identify?.(request);
    if (known !== undefined) return known;
    if (hasTokenInUrl(request)) throw new Refusal(401, `A token in the URL is not taken, because URLs are kept and logged; ${cure}.`);
    const [authorization, ...more] = authorizationsOf(request);
    if (more.length > 0) throw new Refusal(401, `There is more than one Authorization header; ${cure}, once.`);
    if (authorization === undefined) {
      if (this.#options.allowAnonymous) return anonymous;
      throw new Refusal(401, `This server wants to know who calls; ${cure}, or start it with --allow-anonymous.`);
    }
    const given = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
    if (given === undefined) throw new Refusal(401, `The Authorization header holds no bearer token; ${cure}.`);
    if (!isSameSecret(Buffer.from(given), this.#token)) throw new Refusal(401, `The bearer token is not this home's; ${cure}.`);
    return localUser;
  }

  async #mcp(request: IncomingMessage, response: ServerResponse, caller: Caller): Promise<Response> {
    if (!methods.includes(request.method ?? "")) throw new Refusal(405, "MCP is asked by POST, GET and DELETE.");
    this.connections.admit(request, response, caller);
    const gone = new AbortController();
    const closed = new AbortController();
    const left = Promise.withResolvers<boolean>();
    response.on("close", () => {
      left.resolve(response.writableFinished);
      closed.abort();
      if (!response.writableFinished) gone.abort();
    });
    const webRequest = toWebRequest(request, gone.signal);
    const authInfo = toAuthInfo(caller, { backlog: this.connections.backlogOf(caller), whenLeft: () => left.promise });
    if (request.method === "GET") this.connections.holdStream(caller, closed.signal);
    if (request.method !== "POST") return await this.#sessions.handle(webRequest, { caller, authInfo, closed: closed.signal });
    const body = await readBody(request);
    await this.connections.pace(caller, body.length);
    const parsedBody = checkMessage(parseJson(body));
    const introduction = refuseIntroduction(parsedBody);
    if (introduction !== undefined) return jsonError(400, requestErrors.params.code, introduction, (parsedBody as { id?: string | number }).id);
    const isLegacy = await isLegacyRequest(webRequest, parsedBody);
    if (isLegacy) return await this.#sessions.handle(webRequest, { caller, authInfo, parsedBody });
    if ("method" in parsedBody && parsedBody.method === "subscriptions/listen") this.connections.holdStream(caller, closed.signal);
    const listen = toTaskListen(parsedBody);
    if (listen !== undefined) this.connections.holdTaskIds(caller, listen.taskIds.length, closed.signal);
    if (listen !== undefined) return await this.#listen(listen, webRequest, caller);
    return await this.#modern.fetch(webRequest, { authInfo, parsedBody });
  }

  /** The SDK serves the stream; what becomes of the tasks is written into it. */
  async #listen(listen: TaskListen, request: Request, caller: Caller): Promise<Response> {
    const refusal = refuseListen(listen);
    if (refusal !== undefined) return Response.json(refusal, { status: 400 });
    const { subscriptions } = this.#options;
    const taskIds = await subscriptions.honour(listen, caller).catch(toProtocolError);
    if (!Array.isArray(taskIds)) return jsonError(200, taskIds.code, taskIds.message, listen.id);
    const { message, wantsToolChanges } = keptOpen(listen);
    const response = await this.#modern.fetch(request, { authInfo: toAuthInfo(caller), parsedBody: message });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) return response;
    return withTasks(response, { listen, caller, subscriptions, taskIds, wantsToolChanges, signal: request.signal });
  }
}

/** A server of 2026-07-28 lives for one request: what it announces has to reach the streams of all clients that listen. */
function publishChanges(server: McpServer, notify: ServerNotifier): McpServer {
  // Before it is connected a server is only being filled, and nothing has changed.
  const announce = (publish: () => void) => () => void (server.isConnected() && publish());
  server.sendToolListChanged = announce(() => notify.toolsChanged());
  server.sendPromptListChanged = announce(() => notify.promptsChanged());
  server.sendResourceListChanged = announce(() => notify.resourcesChanged());
  server.server.sendResourceUpdated = async ({ uri }) => notify.resourceUpdated(uri);
  return server;
}

/** What every caller who is refused for want of a token is told. */
const cure = "send `Authorization: Bearer …` with what `meanwhile token` prints";

/** All that were sent: node keeps the first of several and drops the rest without a word. */
function authorizationsOf({ rawHeaders }: IncomingMessage): string[] {
  return rawHeaders.filter((_value, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "authorization");
}

function hasTokenInUrl({ url = "/" }: IncomingMessage): boolean {
  const query = new URLSearchParams(url.split("?").slice(1).join("?"));
  return query.has("access_token") || query.has("token");
}

/** Compares in a time that tells nothing; an empty secret is none. */
function isSameSecret(given: Buffer, expected: Buffer): boolean {
  return expected.length > 0 && given.length === expected.length && timingSafeEqual(given, expected);
}

/** An answer below the protocol: wrong door, wrong host, wrong token. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const errorHeaders: Readonly<Record<number, Record<string, string>>> = {
  401: { "www-authenticate": "Bearer" },
  405: { allow: methods.join(", ") },
  413: { connection: "close" },
  503: { connection: "close", "retry-after": "1" },
};

function jsonError(status: number, code: number, message: string, id: string | number | null = null): Response {
  const headers = errorHeaders[status];
  return Response.json({ jsonrpc: "2.0", id, error: { code, message } }, { status, ...(headers && { headers }) });
}

function toWebRequest(request: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && name !== "authorization") headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return new Request(`http://${request.headers.host}${request.url}`, { method: request.method ?? "GET", headers, signal });
}

/** A client that is still sending reads no answer, so what is too large is read on, up to here, and dropped. */
const maxDroppedBytes = 16 * maxBodyBytes;

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const refusal = () => new RequestError("tooLarge", `The body is larger than ${maxBodyBytes / 1024 / 1024} MiB.`);
  if (Number(request.headers["content-length"] ?? 0) > maxDroppedBytes) throw refusal();
  let parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxDroppedBytes) throw refusal();
    if (size > maxBodyBytes) parts = [];
    else parts.push(part);
  }
  if (size > maxBodyBytes) throw refusal();
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
}
