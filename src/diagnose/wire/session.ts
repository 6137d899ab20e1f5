import { systemClock } from "../../clock.ts";
import { metaKeys, toEnvelope } from "../../wire/envelope.ts";
import { acceptBoth, subjectHeaders } from "../../wire/http-client.ts";
import { fieldsOf, isObject, type Json, textOf } from "../../wire/json.ts";
import { isModern, tasksExtension } from "../../wire/revisions.ts";
import { printable } from "../text.ts";
import type { HttpAnswer, HttpWish } from "./http.ts";
import type { Pipe } from "./pipe.ts";

/**
 * A conversation in one revision, over either transport. It is lenient where a client must not be: it takes what comes,
 * so that checks can look at it, and it never retries.
 */

/** What came for one request. */
export interface Answer {
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
export interface Exchange {
  readonly method: string;
  readonly params: Json;
  readonly answer: Answer;
  /** We have cancelled it ourselves, so its answer says nothing. */
  readonly isCancelled: boolean;
}

/** A notification, or a request of the server's own. */
export interface Heard {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly message: Json;
}

export interface RequestOptions {
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

export interface OpenOptions {
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

export interface Session {
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
  request(method: string, params?: Json, options?: RequestOptions): Promise<Answer>;
  /** The same, with the id at once, to be cancelled by. */
  start(
    method: string,
    params?: Json,
    options?: RequestOptions,
  ): { readonly id: string | number; readonly answer: Promise<Answer> };
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
  readonly answers: readonly Answer[];
}

/** How messages travel; the session does the rest. */
export interface Carrier {
  readonly pipe: Pipe | undefined;
  /** Resolves when the answer is there, the time is over, or the way is closed. */
  send(
    message: Json,
    how: {
      readonly timeoutMs: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly onOther: (message: Json) => void;
    },
  ): Promise<{
    readonly message?: Json | undefined;
    readonly problem?: string;
    readonly http?: HttpAnswer;
  }>;
  /** Where messages of the server's own come from beside answers. */
  listen(onMessage: (message: Json) => void, headers: Readonly<Record<string, string>>): void;
  close(headers: Readonly<Record<string, string>>): Promise<void>;
}

const defaultCapabilities = { elicitation: {} } as const;
const maxListBytes = 4 * 1024 * 1024;
const maxListValues = 200_000;
/** A server that asks more in one conversation gets no answer: each costs a request of ours. */
const maxReplies = 20;
/** A notification has no answer to wait for; over HTTP it is taken at once. */
const notifyMs = 3_000;

type SessionOptions = OpenOptions & { readonly timeoutMs: number; readonly onExchange?: (exchange: Exchange) => void };

export class WireSession implements Session {
  readonly revision: string;
  readonly isModern: boolean;
  readonly heard: Heard[] = [];
  readonly #carrier: Carrier;
  readonly #options: SessionOptions;
  readonly #clientInfo: Json;
  readonly #cancelled = new Set<unknown>();
  readonly #waiting = new Set<(heard: Heard) => void>();
  #hello: Json = {};
  #sessionId: string | undefined;
  #lastId = 0;
  #replies = 0;

  constructor(carrier: Carrier, revision: string, options: SessionOptions) {
    this.#carrier = carrier;
    this.revision = revision;
    this.isModern = isModern(revision);
    this.#options = options;
    this.#clientInfo = { ...(options.clientInfo ?? { name: "meanwhile-diagnose", version: "1" }) };
  }

  get hello(): Json {
    return this.#hello;
  }

  get capabilities(): Json {
    return fieldsOf(this.#hello.capabilities);
  }

  get pipe(): Pipe | undefined {
    return this.#carrier.pipe;
  }

  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  /** The handshake of its era; the answer says whether it worked. */
  async begin(): Promise<Answer> {
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

  request(method: string, params?: Json, options: RequestOptions = {}): Promise<Answer> {
    return this.start(method, params, options).answer;
  }

  start(method: string, params?: Json, options: RequestOptions = {}): { id: string | number; answer: Promise<Answer> } {
    const id = options.id ?? ++this.#lastId;
    return {
      id,
      answer: this.#ask({ jsonrpc: "2.0", id, method, ...this.#params(params, options.meta) }, method, options),
    };
  }

  async #ask(
    message: Json,
    method: string,
    { timeoutMs = this.#options.timeoutMs, headers = {} }: RequestOptions,
  ): Promise<Answer> {
    const startedAt = systemClock.monotonic();
    const all = Object.fromEntries(
      Object.entries({ ...this.#headers(method, fieldsOf(message.params)), ...headers }).filter(
        ([, value]) => value !== "",
      ),
    );
    const came = await this.#carrier.send(message, { timeoutMs, headers: all, onOther: (other) => this.#hear(other) });
    const { result, error } = came.message ?? {};
    const answer: Answer = {
      message: came.message,
      result: isObject(result) ? result : undefined,
      error: isObject(error) ? (error as unknown as NonNullable<Answer["error"]>) : undefined,
      ...(came.problem !== undefined && { problem: came.problem }),
      elapsedMs: systemClock.monotonic() - startedAt,
      ...(came.http !== undefined && { http: came.http }),
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

  async list(
    method: string,
    field: string,
    { maxItems = 1_000, maxPages = 50, timeoutMs = this.#options.timeoutMs * 3 }: ListOptions = {},
  ): Promise<Listed> {
    const items: Json[] = [];
    const answers: Answer[] = [];
    const seen = new Set<string>();
    const endsAt = systemClock.monotonic() + timeoutMs;
    let cursor: string | undefined;
    let size = { bytes: 0, values: 0 };
    for (;;) {
      const leftMs = Math.min(this.#options.timeoutMs, endsAt - systemClock.monotonic());
      const answer = await this.request(method, cursor === undefined ? {} : { cursor }, { timeoutMs: leftMs });
      answers.push(answer);
      const end = (problem?: string): Listed => ({
        items,
        pages: answers.length,
        answers,
        ...(problem !== undefined && { problem }),
      });
      if (answer.result === undefined) return end(answer.problem ?? `${method} was answered with an error`);
      const page = answer.result[field];
      if (!Array.isArray(page)) return end(`${method} gave no list called ${field}`);
      items.push(...page.slice(0, maxItems - items.length).filter(isObject));
      cursor = textOf(answer.result.nextCursor);
      if (cursor === undefined || cursor === "") return end();
      if (items.length >= maxItems) return end(`there are more than ${maxItems}`);
      if (seen.has(cursor)) return end("the same cursor came twice");
      if (answers.length >= maxPages) return end(`there are more than ${maxPages} pages`);
      size = { bytes: size.bytes + (answer.http?.bytes ?? 0), values: size.values + (answer.http?.values ?? 0) };
      if (size.bytes > maxListBytes || size.values > maxListValues)
        return end("the pages are larger than anybody reads");
      if (systemClock.monotonic() >= endsAt) return end(`its pages took more than ${Math.round(timeoutMs)} ms`);
      seen.add(cursor);
    }
  }

  async waitHeard(fits: (message: Json) => boolean, timeoutMs: number): Promise<Heard | undefined> {
    const before = this.heard.find(({ message }) => fits(message));
    if (before !== undefined) return before;
    const found = Promise.withResolvers<Heard | undefined>();
    const look = (heard: Heard) => {
      if (fits(heard.message)) found.resolve(heard);
    };
    this.#waiting.add(look);
    const stopTimer = systemClock.after(timeoutMs, () => found.resolve(undefined));
    try {
      return await found.promise;
    } finally {
      stopTimer();
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
    if (this.heard.length < 20_000) this.heard.push(heard);
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

/** Over pipes: answers are told apart by their ids. */
export function pipeCarrier(pipe: Pipe, signal: AbortSignal): Carrier {
  return {
    pipe,
    async send(message, { timeoutMs }) {
      if (pipe.isEnded) return { problem: "the server has left" };
      const since = pipe.lines.length;
      pipe.send(message);
      if (message.id === undefined || message.method === undefined) return {};
      const isAnswer = ({ json }: { readonly json: unknown }) =>
        isObject(json) && json.id === message.id && json.method === undefined;
      const line = await pipe.waitFor(isAnswer, { since, timeoutMs, signal });
      if (line !== undefined) return { message: line.json as Json };
      return { problem: pipe.flood ?? (pipe.isEnded ? "the server left without an answer" : noAnswer(timeoutMs)) };
    },
    listen: (onMessage) =>
      void pipe.onLine(({ json }) => {
        if (isObject(json) && textOf(json.method) !== undefined) onMessage(json);
      }),
    close: async () => void (await pipe.close()),
  };
}

/** Over HTTP: a POST for each message. */
export function httpCarrier(send: (wish: HttpWish) => Promise<HttpAnswer>): Carrier {
  const closing = new AbortController();
  return {
    pipe: undefined,
    async send(message, { timeoutMs, headers, onOther }) {
      const isRequest = message.id !== undefined && message.method !== undefined;
      let found: Json | undefined;
      const http = await send({
        headers,
        body: JSON.stringify(message),
        timeoutMs,
        signal: closing.signal,
        onMessage: (came) => {
          if (!isObject(came)) return false;
          if (textOf(came.method) !== undefined) onOther(came);
          else if (came.id === message.id || (came.id == null && came.error !== undefined)) found = came;
          return found !== undefined;
        },
      });
      if (!isRequest || found !== undefined) return { message: found, http };
      return { http, problem: describeMiss(http, timeoutMs) };
    },
    listen(onMessage, headers) {
      const { "content-type": _type, ...rest } = headers;
      void send({
        method: "GET",
        headers: { ...rest, accept: "text/event-stream" },
        timeoutMs: 600_000,
        signal: closing.signal,
        onMessage: (came) => {
          if (isObject(came) && textOf(came.method) !== undefined) onMessage(came);
          return false;
        },
      }).catch(() => undefined);
    },
    async close(headers) {
      if (headers["mcp-session-id"] !== undefined)
        await send({ method: "DELETE", headers, timeoutMs: 1_000 }).catch(() => undefined);
      closing.abort();
    },
  };
}

/** Times may be sums of what was measured. */
function noAnswer(timeoutMs: number): string {
  return `no answer within ${Math.round(timeoutMs)} ms`;
}

/** Where a redirect leads, without what may be secret in it. */
function describeWay(location = ""): string {
  return printable(URL.parse(location)?.origin ?? location.replace(/[?#].*$/s, ""), 200) || "nowhere";
}

function describeMiss(http: HttpAnswer, timeoutMs: number): string {
  if (http.ended === "timeout") return noAnswer(timeoutMs);
  if (http.ended === "too-large") return "the answer is larger than anybody reads";
  if (http.ended === "broken" || http.ended === "refused") return `the connection failed: ${http.error ?? "unknown"}`;
  if (http.status >= 300 && http.status < 400)
    return `a redirect to ${describeWay(http.headers.location)} (status ${http.status})`;
  const packing = http.headers["content-encoding"] ?? "identity";
  if (packing !== "identity") return `the answer is packed (${printable(packing, 40)}), which nobody asked for`;
  return `HTTP status ${http.status} without an answer to the request`;
}
