import type { Json } from "../../wire/json.ts";
import type { HttpAnswer } from "./probe-http.ts";
import type { Pipe } from "./server-pipe.ts";

/** What came for one request. */
export interface ProbeAnswer {
  /** The whole message; undefined when none came. */
  readonly message: Json | undefined;
  readonly result: Json | undefined;
  readonly error: { readonly code: unknown; readonly message: unknown; readonly data?: unknown } | undefined;
  /** Why there is no message. */
  readonly problem?: string;
  readonly elapsedMs: number;
  /** Over HTTP: the exchange itself. */
  readonly http?: HttpAnswer;
}

/** What was asked and what came of it, for whoever keeps count. */
export interface ProbeExchange {
  readonly method: string;
  readonly params: Json;
  readonly answer: ProbeAnswer;
  /** We have cancelled it ourselves, so its answer says nothing. */
  readonly isCancelled: boolean;
}

/** A notification, or a request of the server's own. */
export interface Heard {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly message: Json;
}

export interface ProbeRequestOptions {
  readonly timeoutMs?: number;
  /** The message's id; else a number of the session's own. */
  readonly id?: string | number;
  /** Put into `params._meta`. */
  readonly meta?: Json;
  /** Over HTTP, over the usual ones; an empty text takes one away. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ListOptions {
  readonly maxItems?: number;
  readonly maxPages?: number;
  /** All pages together. Default: three times what one request may take. */
  readonly timeoutMs?: number;
}

export interface SessionOptions {
  /** Default: the newest that the survey saw. */
  readonly revision?: string;
  /** What the client says it can do. Default: elicitation and, in 2026-07-28, tasks. */
  readonly capabilities?: Json;
  readonly clientInfo?: { readonly name: string; readonly version: string };
  /** Over HTTP: instead of the target's own headers. */
  readonly credentials?: Readonly<Record<string, string>>;
  /** Answers the server's own requests. Default: `ping` gets {}, everything else −32601. */
  readonly onRequest?: (message: Json) => Json | undefined;
  readonly timeoutMs?: number;
  /** Over HTTP: another address of the same origin. */
  readonly url?: string;
  /** For the handshake, where it may take longer. */
  readonly firstMs?: number;
}

export interface ProbeSession {
  readonly revision: string;
  readonly isModern: boolean;
  /** The result of `initialize` or `server/discover`. */
  readonly hello: Json;
  readonly capabilities: Json;
  /** What the server sent by itself, in order. */
  readonly heard: readonly Heard[];
  /** Over stdio. */
  readonly pipe: Pipe | undefined;
  /** Over HTTP before 2026-07-28, when the server gave one. */
  readonly sessionId: string | undefined;
  request(method: string, params?: Json, options?: ProbeRequestOptions): Promise<ProbeAnswer>;
  /** The same, with the id at once, to be cancelled by. */
  start(
    method: string,
    params?: Json,
    options?: ProbeRequestOptions,
  ): { readonly id: string | number; readonly answer: Promise<ProbeAnswer> };
  notify(method: string, params?: Json): Promise<void>;
  /** Every page of a list, up to a limit; `problem` says why it ended early. */
  list(method: string, field: string, options?: ListOptions): Promise<Listed>;
  /** Waits for something the server sends by itself, also what came before; undefined when it does not in time. */
  waitHeard(fits: (message: Json) => boolean, timeoutMs: number): Promise<Heard | undefined>;
  close(): Promise<void>;
}

export interface Listed {
  readonly items: readonly Json[];
  readonly pages: number;
  readonly problem?: string;
  readonly answers: readonly ProbeAnswer[];
}
