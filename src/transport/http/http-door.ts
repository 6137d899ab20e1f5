import { createServer, type IncomingMessage, type Server as NodeServer, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Clock, nextTurn } from "../../clock.ts";
import type { Caller } from "../../command/caller.ts";
import {
  isOutOfDescriptors,
  outOfDescriptors,
  ProtocolError,
  RequestError,
  RpcCode,
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
import { type Admission, callerOf, pathOf, refuseStrangers } from "./admission.ts";
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
  readonly #admission: Admission;
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
    this.#admission = { ...options, token: Buffer.from(options.token) };
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
      return { status: 200, code: RpcCode.Internal, message: error.forClients };
    this.#options.log.error("request failed", { error });
    return { status: 500, code: RpcCode.Internal, message: "Internal error" };
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
    const caller = callerOf(request, this.#admission);
    if (path !== "/mcp") throw new HttpRefusal(404, "There is nothing here; MCP is at /mcp.");
    this.#mcp({ request, response, caller, exchange });
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
