import { createServer, type IncomingMessage, type Server as NodeServer, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Credentials } from "../../auth/authenticate.ts";
import type { Authentication } from "../../auth/authentication.ts";
import { type ProtectedResource, wellKnownMetadata } from "../../auth/metadata.ts";
import type { Clock } from "../../clock.ts";
import { isOutOfDescriptors, outOfDescriptors, RuntimeError, UsageError } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import type { Serving } from "../../mcp/serving.ts";
import { typedSocket } from "../../system/typed-socket.ts";
import {
  credentialsOf,
  type OwnNames,
  pathOf,
  refuseForeignHost,
  refuseOtherTypes,
  refuseStrangers,
  serverNames,
  toHttpRefusal,
} from "./admission.ts";
import { type BodyListener, readBody } from "./body.ts";
import { allowOrigin, answerMetadata, answerPreflight } from "./cross-origin.ts";
import { NodeRequest } from "./door-request.ts";
import { Endpoint, writeJson } from "./endpoint.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";

export interface HttpOptions {
  readonly serving: Serving;
  readonly host: string;
  readonly port: number;
  /** Listen on this socket file, or named pipe on Windows, in place of the host and port. Only its owner can use it. */
  readonly socket?: string | undefined;
  readonly authenticate: (
    credentials: Credentials,
    request: IncomingMessage,
  ) => Authentication | Promise<Authentication>;
  /** Undefined where no issuer is configured. Called when the server listens. */
  readonly resource?: (() => ProtectedResource) | undefined;
  /** The URL that clients know. Its host may be in Host and Origin headers. Default: names of this machine alone. */
  readonly publicUrl?: string | undefined;
  /** Origins of other hosts whose web pages may call the server. Default: none. */
  readonly allowedOrigins?: readonly string[];
  /** False when one more connection would leave too few file descriptors for the work itself. */
  readonly hasRoom?: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface HttpDoor {
  /** `unix:<path>` for one that listens on a socket. */
  readonly url: string;
  /** Undefined for one that listens on a socket. */
  readonly port: number | undefined;
  close(): Promise<void>;
}

const loopback = new Set(["127.0.0.1", "localhost", "::1", "[::1]"]);
/** Time limits for the head of a request and for all of it, against clients that send nothing or a byte at a time. */
const patience = { headersTimeout: 10_000, requestTimeout: 60_000, connectionsCheckingInterval: 5_000 };

/** Serves MCP at /mcp, every revision on one address. Resolves once it listens. */
export async function serveHttp(options: HttpOptions): Promise<HttpDoor> {
  const { socket } = options;
  if (socket === undefined && !loopback.has(options.host))
    throw new UsageError(
      `--host ${options.host} would be reachable from other machines without TLS; use 127.0.0.1, and a reverse proxy with TLS on this machine.`,
    );
  const door = new OwnDoor(options);
  const server = createServer(patience, (request, response) => door.handle(request, response));
  // With a listener Node does not ask for the body by itself, which it would do before the token is checked.
  server.on("checkContinue", (request, response) => door.handle(request, response, () => response.writeContinue()));
  server.on("connection", (socket) => door.connected(socket));
  const own = socket === undefined ? undefined : typedSocket(socket);
  try {
    await (own === undefined ? listen(server, options) : own.open((name) => listenOn(server, name, String(socket))));
  } catch (error) {
    // It may listen already, where the socket could not be moved to its path.
    server.close();
    throw error;
  }
  // Errors after this are failed accepts. Without a listener they would end the process.
  server.on("error", (error) => door.refused(error));
  const port = own === undefined ? (server.address() as { port: number }).port : undefined;
  return {
    url: port === undefined ? `unix:${socket}` : toUrl(options.host, port),
    port,
    async close() {
      own?.remove();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await door.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function toUrl(host: string, port: number): string {
  return `http://${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}/mcp`;
}

/** Listens on a socket that will have the path `file`. */
function listenOn(server: NodeServer, name: string, file: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (cause: NodeJS.ErrnoException) => {
      const text =
        cause.code === "EADDRINUSE"
          ? `${file} is in use; choose another one with --socket.`
          : `Cannot listen on ${file} (${cause.code}); choose another path with --socket.`;
      reject(new RuntimeError("PORT_IN_USE", text, { cause }));
    };
    server.once("error", onError);
    server.listen(name, () => {
      server.off("error", onError);
      resolve();
    });
  });
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

interface Received {
  readonly request: NodeRequest;
  readonly response: ServerResponse;
  readonly exchange: HttpExchange;
  readonly askForBody: () => void;
}

/** The routes of an HTTP server: /mcp, /healthz and the metadata of a server with issuers. */
class OwnDoor {
  readonly #endpoint: Endpoint;
  readonly #options: HttpOptions;
  readonly #names: OwnNames;
  /** Connections that were accepted while too few file descriptors were left. Their requests get 503. */
  readonly #crowded = new WeakSet<Socket>();
  /** The handlers of paths other than /mcp. They need no credential. */
  readonly #routes: ReadonlyMap<string, (response: ServerResponse) => void> = new Map([
    ["/healthz", (response) => writeJson(response, 200, { status: "ok" })],
  ]);
  #toldFullAt = Number.NEGATIVE_INFINITY;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#endpoint = new Endpoint(options);
    this.#names = serverNames(options.publicUrl, options.allowedOrigins ?? []);
  }

  /** Called for each accepted connection. */
  connected(socket: Socket): void {
    this.#endpoint.connections.add(socket);
    if (this.#options.hasRoom?.() !== false) return;
    this.#tellFull();
    this.#crowded.add(socket);
  }

  /** Called when a connection could not be accepted. */
  refused(error: Error): void {
    if (isOutOfDescriptors(error)) this.#tellFull();
    else this.#options.log.error("a connection could not be taken", { error });
  }

  /** Logs at most once a minute, because refused clients connect again and again. */
  #tellFull(): void {
    const at = this.#options.clock.monotonic();
    if (at - this.#toldFullAt < tellMs) return;
    this.#toldFullAt = at;
    this.#options.log.warn(`there is no room for another connection: ${outOfDescriptors}`);
  }

  async close(): Promise<void> {
    await this.#endpoint.close();
  }

  /** Answers a request. Calls `askForBody` before it reads the body. Never throws: errors become answers. */
  handle(incoming: IncomingMessage, response: ServerResponse, askForBody = () => {}): void {
    const exchange = this.#endpoint.createExchange(response);
    if (!this.#endpoint.connections.begin(incoming, exchange)) return;
    try {
      this.#route({ request: new NodeRequest(incoming), response, exchange, askForBody });
    } catch (error) {
      this.#endpoint.refuse(response, error);
    }
  }

  #route({ request, response, exchange, askForBody }: Received): void {
    refuseForeignHost(request, this.#names);
    this.#refuseWhenCrowded(request.socket);
    const path = pathOf(request.original, this.#names);
    const resource = this.#options.resource?.();
    const isMetadata = resource?.metadataPaths.includes(path) === true;
    if (isMetadata) return void answerMetadata(request, response, resource.metadata);
    // Also without a credential: a client that gets 401 for this path does not look any further.
    if (path.startsWith(wellKnownMetadata)) throw new HttpRefusal(404, "This server has no such metadata.");
    refuseStrangers(request, this.#names);
    if (allowOrigin(request, response, this.#names) && answerPreflight(request, response)) return;
    const route = this.#routes.get(path);
    if (route !== undefined) {
      refuseOtherTypes(request);
      return void route(response);
    }
    const answer = (authentication: Authentication) => {
      refuseOtherTypes(request);
      if (path !== "/mcp") throw new HttpRefusal(404, "There is nothing here; MCP is at /mcp.");
      const readWhole = (listener: BodyListener) => {
        askForBody();
        readBody(request.original, listener);
      };
      this.#endpoint.answer({ request, response, authentication, exchange, readBody: readWhole });
    };
    // Before any other answer: a caller without a credential learns nothing about the server.
    const authentication = this.#authenticate(request, resource);
    if (authentication instanceof Promise)
      authentication.then(answer).catch((error: unknown) => this.#endpoint.refuse(response, error));
    else answer(authentication);
  }

  #refuseWhenCrowded(socket: Socket): void {
    if (this.#crowded.has(socket))
      throw new HttpRefusal(
        503,
        "The server has no file descriptors left for another connection; come back in a moment, or have their number raised (ulimit -n).",
      );
  }

  /** Throws, or rejects with, an HttpRefusal for a request without a valid credential. */
  #authenticate(
    request: NodeRequest,
    resource: ProtectedResource | undefined,
  ): Authentication | Promise<Authentication> {
    const { authenticate, log } = this.#options;
    const refuse = (error: unknown): never => {
      throw toHttpRefusal(error, log, resource);
    };
    try {
      const found = authenticate(credentialsOf(request), request.original);
      return found instanceof Promise ? found.catch(refuse) : found;
    } catch (error) {
      return refuse(error);
    }
  }
}
