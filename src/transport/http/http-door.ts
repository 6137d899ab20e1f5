import { createServer, type IncomingMessage, type Server as NodeServer, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../clock.ts";
import type { Caller } from "../../command/caller.ts";
import { isOutOfDescriptors, outOfDescriptors, RuntimeError, UsageError } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import type { Serving } from "../../mcp/serving.ts";
import { type Admission, callerOf, machineNames, pathOf, refuseStrangers } from "./admission.ts";
import { type BodyListener, readBody } from "./body.ts";
import { NodeRequest } from "./door-request.ts";
import { Endpoint, writeJson } from "./endpoint.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";

export interface HttpOptions {
  readonly serving: Serving;
  readonly host: string;
  readonly port: number;
  /** The home's token, as it is now: who sends it is the local user. */
  readonly token: () => string;
  readonly localUser: Caller;
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
  const door = new OwnDoor(options);
  const server = createServer(patience, (request, response) => door.handle(request, response));
  server.on("connection", (socket) => door.connected(socket));
  await listen(server, options);
  // Later errors are those of taking a connection; without a listener one would end the process.
  server.on("error", (error) => door.refused(error));
  const { port } = server.address() as { port: number };
  return {
    url: `http://${options.host.includes(":") && !options.host.startsWith("[") ? `[${options.host}]` : options.host}:${port}/mcp`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await door.close();
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

/** The endpoint at /mcp of a listener of our own. */
class OwnDoor {
  readonly #endpoint: Endpoint;
  readonly #options: HttpOptions;
  readonly #admission: Admission;
  /** Those that came when there were too few file descriptors left for one more. */
  readonly #crowded = new WeakSet<Socket>();
  /** What is asked of the paths beside MCP's own. */
  readonly #routes: ReadonlyMap<string, (response: ServerResponse) => void> = new Map([
    ["/healthz", (response) => writeJson(response, 200, { status: "ok" })],
  ]);
  #toldFullAt = Number.NEGATIVE_INFINITY;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#endpoint = new Endpoint(options);
    this.#admission = options;
  }

  /** Somebody has connected. */
  connected(socket: Socket): void {
    this.#endpoint.connections.add(socket);
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
    await this.#endpoint.close();
  }

  /** Never throws: whatever goes wrong is answered. */
  handle(incoming: IncomingMessage, response: ServerResponse): void {
    const exchange = this.#endpoint.createExchange(response);
    if (!this.#endpoint.connections.begin(incoming, exchange)) return;
    try {
      this.#route(new NodeRequest(incoming), response, exchange);
    } catch (error) {
      this.#endpoint.refuse(response, error);
    }
  }

  #route(request: NodeRequest, response: ServerResponse, exchange: HttpExchange): void {
    refuseStrangers(request, machineNames);
    if (this.#crowded.has(request.socket))
      throw new HttpRefusal(
        503,
        "The server has no file descriptors left for another connection; come back in a moment, or have their number raised (ulimit -n).",
      );
    const path = pathOf(request.original);
    const route = this.#routes.get(path);
    if (route !== undefined) return void route(response);
    // Before anything else is said: who may not come in learns nothing about what is here.
    const caller = callerOf(request, this.#admission);
    if (path !== "/mcp") throw new HttpRefusal(404, "There is nothing here; MCP is at /mcp.");
    const readWhole = (listener: BodyListener) => readBody(request.original, listener);
    this.#endpoint.answer({ request, response, caller, exchange, readBody: readWhole });
  }
}
