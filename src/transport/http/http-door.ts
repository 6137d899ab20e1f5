import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server as NodeServer, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Clock, nextTurn } from "../../clock.ts";
import { anonymous, type Caller, localUser } from "../../command/caller.ts";
import {
  internalErrorCode,
  isOutOfDescriptors,
  outOfDescriptors,
  ProtocolError,
  RequestError,
  RuntimeError,
  requestErrors,
  UsageError,
} from "../../errors.ts";
import type { Logger } from "../../log.ts";
import { Conversation } from "../../mcp/conversation.ts";
import type { Serving } from "../../mcp/serving.ts";
import { checkMessage, maxIntroductionBytes, parseJson, refuseIntroduction } from "../../wire/frames.ts";
import { fieldsOf, textOf } from "../../wire/json.ts";
import type { Message } from "../../wire/message.ts";
import { checkParamHeaders, checkRouting, isModernMessage } from "../../wire/routing.ts";
import { readBody } from "./body.ts";
import { Connections } from "./connections.ts";
import { HttpExchange, OpenStreams } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { Sessions } from "./http-sessions.ts";

export interface HttpOptions {
  readonly serving: Serving;
  readonly host: string;
  readonly port: number;
  /** The home's token: who sends it is the local user. */
  readonly token: string;
  /** Lets in who sends no token, as `anonymous`. */
  readonly allowAnonymous: boolean;
  /** False when one more connection would leave too few file descriptors for the work itself. */
  readonly hasRoom?: () => boolean;
  /** Knows callers by more than the home's token; undefined for a request it does not know. */
  readonly identify?: (request: IncomingMessage) => Caller | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface HttpDoor {
  readonly url: string;
  close(): Promise<void>;
}

const loopback = new Set(["127.0.0.1", "localhost", "::1", "[::1]"]);
/** The names of this machine that a Host or Origin header may have. */
const ownNames = new Set(["localhost", "127.0.0.1", "[::1]"]);

/**
 * How long a request's head, and all of it, may take: who sends nothing, or a byte at a time, holds nothing for long.
 */
const patience = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 5_000 };

/** Serves MCP at /mcp, every revision on one address. Resolves once it listens. */
export async function serveHttp(options: HttpOptions): Promise<HttpDoor> {
  if (!loopback.has(options.host))
    throw new UsageError(
      `--host ${options.host} would be reachable from other machines, and there is no authentication yet; use 127.0.0.1 and a tunnel.`,
    );
  const endpoint = new Endpoint(options);
  const server = createServer(patience, (request, response) => endpoint.handle(request, response));
  server.on("connection", (socket) => endpoint.connected(socket));
  await listen(server, options);
  // Later errors are those of taking a connection; without a listener one would end the process.
  server.on("error", (error) => endpoint.refused(error));
  const { port } = server.address() as { port: number };
  return {
    url: `http://${options.host.includes(":") && !options.host.startsWith("[") ? `[${options.host}]` : options.host}:${port}/mcp`,
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
        cause.code === "EADDRINUSE"
          ? `Port ${port} is in use; choose another one with --port.`
          : `Cannot listen on ${host}:${port}: ${cause.message}`;
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

/** What is asked, by whom, and how it is answered. */
interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly caller: Caller;
  readonly exchange: HttpExchange;
}

class Endpoint {
  readonly #connections: Connections;
  readonly #sessions: Sessions;
  readonly #options: HttpOptions;
  readonly #token: Buffer;
  readonly #streams: OpenStreams;
  /** Those that came when there were too few file descriptors left for one more. */
  readonly #crowded = new WeakSet<Socket>();
  /** What is asked of the paths beside MCP's own. */
  readonly #routes: ReadonlyMap<string, (response: ServerResponse) => void> = new Map([
    ["/healthz", (response) => writeJson(response, 200, { status: "ok" })],
  ]);
  #toldFullAt = Number.NEGATIVE_INFINITY;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#connections = new Connections(options.clock);
    this.#sessions = new Sessions(options.serving.served);
    options.serving.onListsChanged((lists) => this.#sessions.sendListsChanged(lists));
    this.#token = Buffer.from(options.token);
    this.#streams = new OpenStreams(options.clock);
  }

  /** Somebody has connected. */
  connected(socket: Socket): void {
    this.#connections.add(socket);
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
    this.#sessions.close();
    this.#options.serving.listening.endHttp();
    // Their last words are written by then.
    await nextTurn();
  }

  /** Never throws: whatever goes wrong is answered. */
  handle(request: IncomingMessage, response: ServerResponse): void {
    const exchange = new HttpExchange({ response, clock: this.#options.clock, streams: this.#streams });
    if (!this.#connections.begin(request, exchange)) return;
    try {
      this.#route(request, response, exchange);
    } catch (error) {
      this.#refuse(response, error);
    }
  }

  #refuse(response: ServerResponse, error: unknown, id: string | number | null = null): void {
    const { status, headers, ...told } = this.#describe(error);
    if (response.headersSent) response.destroy();
    else writeJson(response, status, { jsonrpc: "2.0", id, error: told }, { ...errorHeaders[status], ...headers });
  }

  #describe(error: unknown): {
    status: number;
    code: number;
    message: string;
    data?: unknown;
    headers?: Readonly<Record<string, string>> | undefined;
  } {
    if (error instanceof HttpRefusal)
      return { status: error.status, code: error.code, message: error.message, headers: error.headers };
    if (error instanceof RequestError)
      return { status: requestErrors[error.kind].http, code: requestErrors[error.kind].code, message: error.message };
    if (error instanceof ProtocolError)
      return { status: 400, code: error.code, message: error.message, data: error.data };
    if (error instanceof RuntimeError && error.forClients !== undefined)
      return { status: 200, code: internalErrorCode, message: error.forClients };
    this.#options.log.error("request failed", { error });
    return { status: 500, code: internalErrorCode, message: "Internal error" };
  }

  #route(request: IncomingMessage, response: ServerResponse, exchange: HttpExchange): void {
    refuseStrangers(request);
    if (this.#crowded.has(request.socket))
      throw new HttpRefusal(
        503,
        "The server has no file descriptors left for another connection; come back in a moment, or have their number raised (ulimit -n).",
      );
    const path = pathOf(request);
    const route = this.#routes.get(path);
    if (route !== undefined) return void route(response);
    // Before anything else is said: who may not come in learns nothing about what is here.
    const caller = this.#callerOf(request);
    if (path !== "/mcp") throw new HttpRefusal(404, "There is nothing here; MCP is at /mcp.");
    this.#mcp({ request, response, caller, exchange });
  }

  #callerOf(request: IncomingMessage): Caller {
    const known = this.#options.identify?.(request);
    if (known !== undefined) return known;
    if (hasTokenInUrl(request))
      throw new HttpRefusal(401, `A token in the URL is not taken, because URLs are kept and logged; ${cure}.`);
    const [authorization, ...more] = allOf(request, "authorization");
    if (more.length > 0) throw new HttpRefusal(401, `There is more than one Authorization header; ${cure}, once.`);
    if (authorization === undefined) {
      if (this.#options.allowAnonymous) return anonymous;
      throw new HttpRefusal(401, `This server wants to know who calls; ${cure}, or start it with --allow-anonymous.`);
    }
    const given = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
    if (given === undefined) throw new HttpRefusal(401, `The Authorization header holds no bearer token; ${cure}.`);
    if (!isSameSecret(Buffer.from(given), this.#token))
      throw new HttpRefusal(401, `The bearer token is not this home's; ${cure}.`);
    return localUser;
  }

  #mcp(asked: Asked): void {
    const { request, response, caller, exchange } = asked;
    const { method } = request;
    if (method !== "POST" && method !== "GET" && method !== "DELETE")
      throw new HttpRefusal(405, "MCP is asked by POST, GET and DELETE.");
    this.#connections.admit(request, exchange, caller);
    exchange.shareBacklog(this.#connections.backlogOf(caller));
    if (method === "GET") this.#connections.holdStream(caller, exchange);
    if (method !== "POST") return void this.#sessions.handle({ request, caller, exchange });
    const fail = (error: unknown) => this.#refuse(response, error);
    readBody(request, {
      onGrowth: (bytes) => this.#connections.holdBody(caller, bytes, exchange),
      onBody: (body) => {
        const turn = this.#connections.pace(caller, body.length);
        if (turn === undefined) this.#receive(body, asked);
        else turn.then(() => this.#receive(body, asked)).catch(fail);
      },
      onError: fail,
    });
  }

  /** Never throws. */
  #receive(body: Buffer, asked: Asked): void {
    let message: Message | undefined;
    // Its client has hung up while it waited for its turn.
    if (asked.exchange.isOver) return;
    try {
      message = checkMessage(parseJson(body));
      this.#answer(message, body.length, asked);
    } catch (error) {
      const isRequest = message?.method !== undefined && error instanceof ProtocolError;
      this.#refuse(asked.response, error, isRequest ? (message?.id ?? null) : null);
    }
  }

  #answer(message: Message, bytes: number, { request, caller, exchange }: Asked): void {
    const introduction = bytes <= maxIntroductionBytes ? undefined : refuseIntroduction(message);
    if (introduction !== undefined) throw new ProtocolError(requestErrors.params.code, introduction);
    if (!isModernMessage(message, request.headers))
      return void this.#sessions.handle({ request, caller, exchange, message });
    if (message.id === undefined) return void exchange.accept();
    checkRouting(message, request.headers);
    this.#checkParams(message, request, caller);
    if (message.method === "subscriptions/listen") this.#holdListening(message, caller, exchange);
    const conversation = new Conversation(this.#options.serving.served, {
      caller,
      door: "http",
      way: exchange,
      canPush: () => false,
      era: "modern",
    });
    exchange.onClose(() => conversation.close());
    conversation.receive(message);
  }

  #checkParams({ method, params = {} }: Message, request: IncomingMessage, caller: Caller): void {
    if (method !== "tools/call") return;
    const schema = this.#options.serving.schemaOf(textOf(params.name) ?? "", caller);
    if (schema !== undefined) checkParamHeaders(schema, params.arguments, request.headers);
  }

  #holdListening({ params = {} }: Message, caller: Caller, exchange: HttpExchange): void {
    const { taskIds } = fieldsOf(params.notifications);
    this.#connections.holdStream(caller, exchange);
    if (Array.isArray(taskIds)) this.#connections.holdTaskIds(caller, taskIds.length, exchange);
  }
}

/** A web page must not reach us through its reader's browser: not by its own origin, not by a rebound name. */
function refuseStrangers(request: IncomingMessage): void {
  const { headers, method } = request;
  const { host, origin } = headers;
  if (host === undefined || host === "")
    throw new HttpRefusal(403, "The Host header must name this machine, e.g. localhost: Missing Host header");
  if (allOf(request, "host").length > 1) throw new HttpRefusal(400, "There is more than one Host header; send one.");
  const name = /[/?#@]/.test(host) ? undefined : nameIn(`http://${host}`);
  if (name === undefined)
    throw new HttpRefusal(403, `The Host header must name this machine, e.g. localhost: Invalid Host header: ${host}`);
  if (!ownNames.has(name))
    throw new HttpRefusal(403, `The Host header must name this machine, e.g. localhost: Invalid Host: ${name}`);
  if (origin !== undefined && origin !== "") {
    const from = nameIn(origin);
    if (from === undefined || from === "")
      throw new HttpRefusal(403, `Requests from other web pages are refused: Invalid Origin header: ${origin}`);
    if (!ownNames.has(from))
      throw new HttpRefusal(403, `Requests from other web pages are refused: Invalid Origin: ${from}`);
  }
  const hasBody = method !== "GET" && method !== "HEAD" && method !== "DELETE" && method !== "OPTIONS";
  if (hasBody && !isJson(headers["content-type"])) throw new HttpRefusal(415, "Content-Type must be application/json.");
}

function isJson(type: string | undefined): boolean {
  return type === "application/json" || type?.split(";", 1)[0]?.trim().toLowerCase() === "application/json";
}

/** Names that were looked up, by the header they came in: a client sends the same one again and again. */
const namesIn = new Map<string, string | undefined>();
const maxNames = 100;

function nameIn(url: string): string | undefined {
  if (namesIn.has(url)) return namesIn.get(url);
  const name = URL.canParse(url) ? new URL(url).hostname : undefined;
  if (namesIn.size < maxNames && url.length < 100) namesIn.set(url, name);
  return name;
}

/** What every caller who is refused for want of a token is told. */
const cure = "send `Authorization: Bearer …` with what `meanwhile token` prints";

/** All that were sent: node keeps the first of several and drops the rest without a word. */
function allOf({ rawHeaders }: IncomingMessage, header: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === header.length && name.toLowerCase() === header) found.push(rawHeaders[at + 1] as string);
  }
  return found;
}

/** A proxy is asked with the whole address: its host counts, as that of a Host header does. */
function pathOf({ url = "/" }: IncomingMessage): string {
  if (url === "/mcp") return url;
  if (url.startsWith("/")) return url.split("?", 1)[0] as string;
  if (!URL.canParse(url)) throw new HttpRefusal(400, "The target of the request is no path.");
  const { hostname, pathname } = new URL(url);
  if (!ownNames.has(hostname))
    throw new HttpRefusal(403, `The target must name this machine, e.g. localhost: Invalid Host: ${hostname}`);
  return pathname;
}

function hasTokenInUrl({ url = "/" }: IncomingMessage): boolean {
  const at = url.indexOf("?");
  if (at === -1) return false;
  const query = new URLSearchParams(url.slice(at + 1));
  return query.has("access_token") || query.has("token");
}

/** Compares in a time that tells nothing; an empty secret is none. */
function isSameSecret(given: Buffer, expected: Buffer): boolean {
  return expected.length > 0 && given.length === expected.length && timingSafeEqual(given, expected);
}

const errorHeaders: Readonly<Record<number, Record<string, string>>> = {
  401: { "www-authenticate": "Bearer" },
  405: { allow: "GET, POST, DELETE" },
  413: { connection: "close" },
  503: { connection: "close", "retry-after": "1" },
};

function writeJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(value);
  response
    .writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers })
    .end(text);
}
