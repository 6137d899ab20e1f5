import type { Authentication } from "../auth/authentication.ts";
import type { Caller } from "../command/caller.ts";
import type { Json } from "../wire/json.ts";
import type { Tasks2025 } from "./generation/tasks-2025.ts";
import type { GuestView } from "./guest-view.ts";
import type { Outbound } from "./outbound.ts";

/** What our methods know of a request, of the connection it came on and of who asks, whatever carries them. */

export type Result = Json;

/** Answers one method. */
export type Handler = (params: Json, request: ClientRequest) => Result | Promise<Result>;

export interface ClientCapabilities {
  readonly elicitation?: { readonly form?: object; readonly url?: object };
  readonly sampling?: object;
  readonly roots?: object;
  readonly extensions?: Readonly<Record<string, unknown>>;
  readonly experimental?: Readonly<Record<string, unknown>>;
}

/** Who asks: as said with the request since 2026-07-28, at the handshake before. */
export interface ClientIdentity {
  readonly revision: string;
  readonly isModern: boolean;
  readonly name: string | undefined;
  readonly capabilities: ClientCapabilities;
  /** Has asked for log lines. */
  readonly wantsLog: boolean;
}

export interface AskLimits {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

export type SessionEnvironment = Readonly<Record<string, string>>;

/** One client that is connected; since 2026-07-28 over HTTP as long as its request. */
export interface ClientConnection {
  readonly caller: Caller;
  /** Aborted when the client is gone, before its requests are. */
  readonly closed: AbortSignal;
  /** Whether a message can reach the client while no request of its own is open. */
  readonly canPush: boolean;
  /** Who the MCP host is, whatever it calls itself. */
  readonly hostName: string | undefined;
  /** Names it to whoever works on its calls, where that is somebody else's server. */
  readonly session: string | undefined;
  /** The working folder of this connection's session; undefined where it has none. */
  readonly folder: string | undefined;
  /** The variables that the session was started with; undefined where they are this process's own. */
  readonly environment: SessionEnvironment | undefined;
  /** It lasts as long as one request: since 2026-07-28 over HTTP. */
  readonly isOfOneRequest: boolean;
  /** A front of ours is at the other end: what is safe to ask twice it asks the next daemon. */
  readonly isFront: boolean;
  /** Jobs this connection is told about: each once, however many calls have joined it. */
  readonly jobs: Set<string>;
  /** Follows the tasks that a client of 2025-11-25 has started here. */
  readonly tasks2025: Tasks2025 | undefined;
  /** Who shook hands; undefined since 2026-07-28. */
  readonly client: ClientIdentity;
  /** Calls back when the client has opened a stream for messages of our own. */
  onStream(listener: () => void): () => void;
  /** Sends on whatever stream is open by itself; who cannot be told is not. */
  notify(method: string, params: Json): void;
  /** Asks on whatever stream is open by itself. */
  ask(method: string, params: Json, options: AskLimits): Promise<unknown>;
}

export interface ClientRequest {
  readonly id: string | number;
  readonly caller: Caller;
  readonly authentication: Authentication;
  /** See `GuestClient`. */
  readonly who: string;
  readonly client: ClientIdentity;
  readonly connection: ClientConnection;
  readonly door: "stdio" | "http";
  readonly meta: Json;
  /** When its bytes arrived, on the monotonic clock. A host counts its limit from about then. */
  readonly arrivedAt: number;
  readonly progressToken: string | number | undefined;
  /** Answers to questions that an earlier call was sent back with, and the state that leads back to it. */
  readonly inputResponses: Json;
  readonly requestState: unknown;
  /** Aborted when the client takes its request back, or is lost. */
  readonly signal: AbortSignal;
  /** Over HTTP: aborted when the exchange that carries the request is over, or broken. */
  readonly exchange: AbortSignal | undefined;
  /** The way by which it is answered. */
  readonly outbound: Outbound;
  /** What the author has registered by hand, for clients like this one; undefined where that is nothing. */
  guest(): Promise<GuestView> | undefined;
  /** The same, where it is there already. */
  readonly openGuest: GuestView | undefined;
  /** Whether a tool of this name is among it, as far as that is known by now. */
  isAuthorsTool(name: string): boolean;
  /**
   * Ends the stream of this request before it is answered: the client comes back for the rest. Undefined where it could
   * not.
   */
  readonly hangUp: (() => void) | undefined;
  /** Sends on the stream of this request. */
  notify(method: string, params: Json): void;
  /** Asks on the stream of this request; not since 2026-07-28. */
  ask(method: string, params: Json, options: AskLimits): Promise<unknown>;
  /** Whether the client has asked for log lines of this level. */
  hears(level: unknown): boolean;
  /** Sends a log line, where the client has asked for lines of this level. */
  log(level: string, data: unknown, logger: string): void;
}
