import { systemClock, within } from "../../clock.ts";
import { metaKeys, toEnvelope } from "../../wire/envelope.ts";
import { acceptBoth, subjectHeaders } from "../../wire/http-client.ts";
import { fieldsOf, isObject, type Json } from "../../wire/json.ts";
import { isModern, tasksExtension } from "../../wire/revisions.ts";
import type { Carrier } from "./carriers.ts";
import { listPages } from "./list-pages.ts";
import type {
  Heard,
  Listed,
  ListOptions,
  ProbeAnswer,
  ProbeExchange,
  ProbeRequestOptions,
  ProbeSession,
  SessionOptions,
} from "./probe-session.ts";
import type { Pipe } from "./server-pipe.ts";

/**
 * A conversation in one revision, over either transport. It is lenient where a client must not be: it takes what comes,
 * so that checks can look at it, and it never retries.
 */

const defaultCapabilities = { elicitation: {} } as const;
/** A server that asks more in one conversation gets no answer: each costs a request of ours. */
const maxReplies = 20;
/** A notification has no answer to wait for; over HTTP it is taken at once. */
const notifyMs = 3_000;

type LiveSessionOptions = SessionOptions & {
  readonly timeoutMs: number;
  readonly onExchange?: (exchange: ProbeExchange) => void;
};

export class LiveSession implements ProbeSession {
  readonly revision: string;
  readonly isModern: boolean;
  readonly heard: Heard[] = [];
  readonly #carrier: Carrier;
  readonly #options: LiveSessionOptions;
  readonly #clientInfo: Json;
  readonly #cancelled = new Set<unknown>();
  readonly #waiting = new Set<(heard: Heard) => void>();
  #hello: Json = {};
  #sessionId: string | undefined;
  #lastId = 0;
  #replies = 0;

  constructor(carrier: Carrier, revision: string, options: LiveSessionOptions) {
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

  list(method: string, field: string, options?: ListOptions): Promise<Listed> {
    return listPages(this, this.#options.timeoutMs, { method, field, ...options });
  }

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
