import { RuntimeError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { GuestHost, GuestPair } from "../mcp/guest-host.ts";

/** Our end of a linked pair, as every SDK wants its transports. */
export type LinkedTransport = GuestPair;

/** A server made with an SDK, of whichever version: all that is asked of it is that it can be connected. */
export interface ConnectableServer {
  connect(transport: LinkedTransport): Promise<unknown>;
}

/** Makes a server for each session. */
export type ServerFactory<S extends ConnectableServer> = () => S | Promise<S>;

const advice = "hand it over before it is connected, and serve what durable() returns";

/** Somebody's server as a host of guests. */
export function toHost(given: ConnectableServer | ServerFactory<ConnectableServer>, log: Logger): GuestHost {
  const isFactory = typeof given === "function";
  return {
    name: "the server",
    eras: ["legacy"],
    // One of fastmcp makes a session of its own for each connection.
    isOne: !isFactory && !hasOwnSessions(given),
    isPerCaller: isFactory || hasOwnSessions(given),
    async connect(_era, pair) {
      const server = isFactory ? await make(given, log) : given;
      if (!hasOwnSessions(server)) refuseConnected(server, isFactory);
      // Some wait for their client's handshake before they say that they are connected.
      const failed = Promise.resolve(server.connect(pair)).then(
        (session) => {
          endWith(pair, session);
          return new Promise<never>(() => undefined);
        },
        (cause: unknown) => {
          // What goes wrong once it is over is nobody's trouble.
          if (!pair.isClosed) log.error("the server could not be connected", { error: cause });
          throw new RuntimeError("SERVER_UNUSABLE", "The server could not be connected.", { cause, forClients });
        },
      );
      failed.catch(() => undefined);
      return { failed };
    },
  };
}

/** A session that fastmcp hands out keeps a timer until it is closed itself; that its transport was is not enough. */
function endWith(pair: LinkedTransport, session: unknown): void {
  const { close } = (session ?? {}) as { readonly close?: unknown };
  if (typeof close !== "function") return;
  const end = () => void Promise.resolve(close.call(session)).catch(() => undefined);
  if (pair.isClosed) {
    end();
    // It begins to listen for the end only now, and would keep what has ended before.
    pair.onclose?.();
    return;
  }
  const onClose = pair.onclose?.bind(pair);
  pair.onclose = () => {
    onClose?.();
    end();
  };
}

const forClients = "The server behind this address could not be started; its log says why.";

async function make(factory: ServerFactory<ConnectableServer>, log: Logger): Promise<ConnectableServer> {
  try {
    const server = await factory();
    refuseUnusable(server, true);
    return server;
  } catch (cause) {
    log.error("the function handed to durable() made no server", { error: cause });
    throw new RuntimeError("SERVER_UNUSABLE", "The function handed to durable() made no server.", {
      cause,
      forClients,
    });
  }
}

/** Throws where it cannot be connected, or is already. */
export function refuseUnusable(server: unknown, isMade = false): asserts server is ConnectableServer {
  const isServer =
    typeof server === "object" && server !== null && typeof (server as { connect?: unknown }).connect === "function";
  if (!isServer)
    throw new TypeError(
      "durable() takes an MCP server, which has connect(transport), or a function that makes one for each session",
    );
  if (!hasOwnSessions(server)) refuseConnected(server as ConnectableServer, isMade);
}

/** What the SDKs say of themselves in public: McpServer has isConnected(), Server has transport. */
function refuseConnected(server: ConnectableServer, isMade: boolean): void {
  const { isConnected, transport } = server as { isConnected?: unknown; transport?: unknown };
  const isTaken =
    (typeof isConnected === "function" && isConnected.call(server) === true) ||
    (typeof transport === "object" && transport !== null);
  if (!isTaken) return;
  throw new TypeError(
    isMade
      ? "the function handed to durable() returned a server that is connected already; make a new one each time"
      : `the server handed to durable() is connected already; ${advice}`,
  );
}

function hasOwnSessions(server: object): boolean {
  return "sessions" in server && typeof (server as { addTool?: unknown }).addTool === "function";
}
