import { systemClock, within } from "../../clock.ts";
import { acceptBoth, subjectHeaders } from "../../wire/http-client.ts";
import { fieldsOf, isObject, type Json } from "../../wire/json.ts";
import { metaKeys, toEnvelope } from "../../wire/request-envelope.ts";
import { isModern, tasksExtension } from "../../wire/revisions.ts";
import type { Carrier } from "./carriers.ts";
import { listPages } from "./list-pages.ts";
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

interface ProbeRequestOptions {
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

export interface Listed {
  readonly items: readonly Json[];
  readonly pages: number;
  readonly problem?: string;
  readonly answers: readonly ProbeAnswer[];
}

const defaultCapabilities = { elicitation: {} } as const;
/** A server that asks more in one conversation gets no answer: each costs a request of ours. */
const maxReplies = 20;
/** A notification has no answer to wait for; over HTTP it is taken at once. */
const notifyMs = 3_000;

type OpenSessionOptions = SessionOptions & {
  readonly timeoutMs: number;
  readonly onExchange?: (exchange: ProbeExchange) => void;
};

/**
 * A conversation in one revision, over either transport. It is lenient where a client must not be: it takes what comes,
 * so that checks can look at it, and it never retries.
 */
export class ProbeSession {
  readonly revision: string;
  readonly isModern: boolean;
  readonly #carrier: Carrier;
  readonly #options: OpenSessionOptions;
  readonly #clientInfo: Json;
  readonly #cancelled = new Set<unknown>();
  readonly #waiting = new Set<(heard: Heard) => void>();
  #heard: Heard[] = [];
  #hello: Json = {};
  #sessionId: string | undefined;
  #lastId = 0;
  #replies = 0;

  constructor(carrier: Carrier, revision: string, options: OpenSessionOptions) {
    this.#carrier = carrier;
    this.revision = revision;
    this.isModern = isModern(revision);
    this.#options = options;
    this.#clientInfo = { ...(options.clientInfo ?? { name: "meanwhile-diagnose", version: "1" }) };
  }

  /** The result of `initialize` or `server/discover`. */
  get hello(): Json {
    return this.#hello;
  }

  get capabilities(): Json {
    return fieldsOf(this.#hello.capabilities);
  }

  /** What the server sent by itself, in order. */
  get heard(): readonly Heard[] {
    return this.#heard;
  }

  /** What it said to others is not news to who goes on with the conversation. */
  forgetHeard(): void {
    this.#heard = [];
  }

  /** Over stdio. */
  get pipe(): Pipe | undefined {
    return this.#carrier.pipe;
  }

  /** Over HTTP before 2026-07-28, when the server gave one. */
  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  /** The handshake of its era; the answer says whether it worked. */
  async begin(): Promise<ProbeAnswer> {
    const isPiped = this.#carrier.pipe !== undefined;
    if (isPiped) this.#carrier.listen((message) => this.#hear(message), {});
    const params = { protocolVersion: this.revision, capabilities: this.#capabilities(), clientInfo: this.#clientInfo };
    const first = this.#options.firstMs === undefined ? {} : { timeoutMs: this.#options.firstMs };
    const answer = this.isModern
      ? await this.request("server/discover", {}, first)
      : await this.request("initialize", params, first);
    this.#hello = answer.result ?? {};
    if (this.isModern || answer.result === undefined) return answer;
    this.#sessionId = answer.http?.headers["mcp-session-id"];
    await this.notify("notifications/initialized");
    if (!isPiped) this.#carrier.listen((message) => this.#hear(message), this.#headers());
    return answer;
  }

  request(method: string, params?: Json, options: ProbeRequestOptions = {}): Promise<ProbeAnswer> {
    return this.start(method, params, options).answer;
  }

  /** The same, with the id at once, to be cancelled by. */
  start(
    method: string,
    params?: Json,
    options: ProbeRequestOptions = {},
  ): { id: string | number; answer: Promise<ProbeAnswer> } {
    const id = options.id ?? ++this.#lastId;
    return {
      id,
      answer: this.#ask({ jsonrpc: "2.0", id, method, ...this.#params(params, options.meta) }, method, options),
    };
  }

  async #ask(
    message: Json,
    method: string,
    { timeoutMs = this.#options.timeoutMs, headers = {} }: ProbeRequestOptions,
  ): Promise<ProbeAnswer> {
    const startedAt = systemClock.monotonic();
    const all = Object.fromEntries(
      Object.entries({ ...this.#headers(method, fieldsOf(message.params)), ...headers }).filter(
        ([, value]) => value !== "",
      ),
    );
    const given = await this.#carrier.send(message, { timeoutMs, headers: all, onOther: (other) => this.#hear(other) });
    const { result, error } = given.message ?? {};
    const answer: ProbeAnswer = {
      message: given.message,
      result: isObject(result) ? result : undefined,
      error: isObject(error) ? (error as unknown as NonNullable<ProbeAnswer["error"]>) : undefined,
      ...(given.problem !== undefined && { problem: given.problem }),
      elapsedMs: systemClock.monotonic() - startedAt,
      ...(given.http !== undefined && { http: given.http }),
    };
    this.#options.onExchange?.({
      method,
      params: fieldsOf(message.params),
      answer,
      isCancelled: this.#cancelled.has(message.id),
    });
    return answer;
  }

  async notify(method: string, params?: Json): Promise<void> {
    if (method === "notifications/cancelled" && params?.requestId !== undefined) this.#cancelled.add(params.requestId);
    const message = { jsonrpc: "2.0", method, ...this.#params(params, undefined) };
    const timeoutMs = Math.min(this.#options.timeoutMs, notifyMs);
    await this.#carrier.send(message, {
      timeoutMs,
      headers: this.#headers(method),
      onOther: (other) => this.#hear(other),
    });
  }

  /** Every page of a list, up to a limit; `problem` says why it ended early. */
  list(method: string, field: string, options?: ListOptions): Promise<Listed> {
    return listPages(this, this.#options.timeoutMs, { method, field, ...options });
  }

  /** Waits for something the server sends by itself, also what came before; undefined when it does not in time. */
  async waitHeard(fits: (message: Json) => boolean, timeoutMs: number): Promise<Heard | undefined> {
    const before = this.heard.find(({ message }) => fits(message));
    if (before !== undefined) return before;
    const found = Promise.withResolvers<Heard>();
    const look = (heard: Heard) => {
      if (fits(heard.message)) found.resolve(heard);
    };
    this.#waiting.add(look);
    try {
      return await within(systemClock, timeoutMs, found.promise);
    } finally {
      this.#waiting.delete(look);
    }
  }

  close(): Promise<void> {
    return this.#carrier.close(this.#headers());
  }

  #capabilities(): Json {
    if (this.#options.capabilities !== undefined) return this.#options.capabilities;
    return this.isModern ? { ...defaultCapabilities, extensions: { [tasksExtension]: {} } } : defaultCapabilities;
  }

  #params(params: Json | undefined, meta: Json | undefined): { params?: Json } {
    const envelope = this.isModern
      ? { ...toEnvelope(this.#clientInfo, this.#capabilities()), [metaKeys.revision]: this.revision }
      : {};
    const all = { ...envelope, ...fieldsOf(params?._meta), ...meta };
    if (Object.keys(all).length === 0) return params === undefined ? {} : { params };
    return { params: { ...params, _meta: all } };
  }

  #headers(method?: string, params?: Json): Record<string, string> {
    const about = subjectHeaders({ revision: this.revision, session: this.#sessionId, method, params });
    return { ...this.#options.credentials, ...acceptBoth, "content-type": "application/json", ...about };
  }

  #hear(message: Json): void {
    const heard: Heard = { at: systemClock.monotonic(), message };
    if (this.heard.length < 20_000) this.#heard.push(heard);
    for (const look of this.#waiting) look(heard);
    if (message.id === undefined || message.method === undefined || ++this.#replies > maxReplies) return;
    const reply =
      this.#options.onRequest?.(message) ??
      (message.method === "ping" ? { result: {} } : { error: { code: -32601, message: "Not supported." } });
    const answer = { jsonrpc: "2.0", id: message.id, ...reply };
    void this.#carrier
      .send(answer, { timeoutMs: this.#options.timeoutMs, headers: this.#headers(), onOther: () => undefined })
      .catch(() => undefined);
  }
}
