import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { systemClock } from "../../clock.ts";
import { EventReader } from "../../wire/sse.ts";
import { type AddressPolicy, checkUrlHost, guardedLookup } from "./addresses.ts";
import { parseJson } from "./json.ts";

/**
 * One HTTP exchange with a server that nobody trusts: bounded in time and bytes, to allowed addresses only. Redirects are reported and
 * never followed; compressed answers are not unpacked (we ask for none).
 */

export interface HttpWish {
  readonly method?: "POST" | "GET" | "DELETE" | "OPTIONS" | "PUT" | "HEAD";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly timeoutMs: number;
  readonly maxBytes?: number;
  readonly signal?: AbortSignal | undefined;
  /** Sees every message as it comes; true ends the exchange, whatever else would follow. */
  readonly onMessage?: (message: unknown) => boolean | undefined;
  /** Called with the head of the answer. */
  readonly onHead?: (status: number, headers: Readonly<Record<string, string>>) => void;
}

export interface HttpAnswer {
  /** 0 when there was none. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** What came, cut to 64 KiB. */
  readonly text: string;
  readonly bytes: number;
  /** How many values the messages hold: what they weigh in memory. */
  readonly values: number;
  /** JSON of the body, or of each event of a stream. */
  readonly messages: readonly unknown[];
  readonly isStream: boolean;
  /** Why it ended before the server ended it. */
  readonly ended: "whole" | "timeout" | "too-large" | "enough" | "broken" | "refused";
  /** What the network said. */
  readonly error?: string;
  readonly headMs: number;
  readonly elapsedMs: number;
}

const defaultMaxBytes = 4 * 1024 * 1024;
const maxKept = 64 * 1024;
const maxMessages = 10_000;
const maxValues = 300_000;

export function sendHttp(url: URL, wish: HttpWish, policy: AddressPolicy): Promise<HttpAnswer> {
  checkUrlHost(url, policy);
  return new Exchange(url, wish, policy).run();
}

class Exchange {
  readonly #url: URL;
  readonly #wish: HttpWish;
  readonly #policy: AddressPolicy;
  readonly #startedAt = systemClock.monotonic();
  readonly #done = Promise.withResolvers<HttpAnswer>();
  readonly #messages: unknown[] = [];
  #outgoing: http.ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #status = 0;
  #headers: Record<string, string> = {};
  #headMs = 0;
  #kept = "";
  #parts: Buffer[] = [];
  #bytes = 0;
  #values = 0;
  #isStream = false;
  #isOver = false;
  #stopTimer: () => void = () => {};

  constructor(url: URL, wish: HttpWish, policy: AddressPolicy) {
    this.#url = url;
    this.#wish = wish;
    this.#policy = policy;
  }

  run(): Promise<HttpAnswer> {
    const { method = "POST", headers = {}, body, timeoutMs, signal } = this.#wish;
    const { request } = this.#url.protocol === "https:" ? https : http;
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    this.#stopTimer = systemClock.after(timeoutMs, () => this.#end("timeout"));
    const onAbort = () => this.#end("timeout");
    signal?.addEventListener("abort", onAbort, { once: true });
    void this.#done.promise.finally(() => signal?.removeEventListener("abort", onAbort));
    if (signal?.aborted === true) this.#end("timeout");
    else
      this.#outgoing = request(
        this.#url,
        {
          method,
          headers: { "accept-encoding": "identity", ...headers, ...length },
          agent: false,
          lookup: guardedLookup(this.#policy),
          maxHeaderSize: 64 * 1024,
        },
        (response) => this.#read(response),
      )
        .on("error", (error: NodeJS.ErrnoException) => this.#end(error.name === "AddressRefused" ? "refused" : "broken", error))
        .end(body);
    return this.#done.promise;
  }

  #read(response: IncomingMessage): void {
    this.#response = response;
    this.#status = response.statusCode ?? 0;
    this.#headMs = systemClock.monotonic() - this.#startedAt;
    this.#headers = Object.fromEntries(
      Object.entries(response.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]),
    );
    this.#isStream = /^text\/event-stream\b/i.test(this.#headers["content-type"] ?? "");
    this.#wish.onHead?.(this.#status, this.#headers);
    const events = new EventReader();
    response.on("data", (chunk: Buffer) => {
      if (this.#isOver) return;
      this.#bytes += chunk.length;
      if (this.#kept.length < maxKept) this.#kept += chunk.toString("utf8").slice(0, maxKept - this.#kept.length);
      if (this.#bytes > (this.#wish.maxBytes ?? defaultMaxBytes)) this.#end("too-large");
      else if (!this.#isStream) this.#parts.push(chunk);
      else for (const { data } of events.push(chunk)) this.#hear(data);
    });
    response.on("end", () => {
      if (!this.#isStream && this.#bytes > 0) this.#hear(Buffer.concat(this.#parts).toString("utf8"));
      this.#end("whole");
    });
    response.on("error", (error: Error) => this.#end("broken", error));
  }

  #hear(text: string): void {
    const message = parseJson(text, (values) => (this.#values += values));
    if (message === undefined || this.#isOver) return;
    if (this.#messages.length >= maxMessages || this.#values > maxValues) {
      this.#end("too-large");
      return;
    }
    this.#messages.push(message);
    if (this.#wish.onMessage?.(message) === true) this.#end("enough");
  }

  #end(ended: HttpAnswer["ended"], error?: NodeJS.ErrnoException): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopTimer();
    this.#parts = [];
    this.#response?.destroy();
    this.#outgoing?.on("error", () => undefined).destroy();
    this.#done.resolve({
      status: this.#status,
      headers: this.#headers,
      text: this.#kept,
      bytes: this.#bytes,
      values: this.#values,
      messages: this.#messages,
      isStream: this.#isStream,
      ended,
      ...(error !== undefined && { error: ended === "refused" ? error.message : (error.code ?? error.message) }),
      headMs: this.#headMs,
      elapsedMs: systemClock.monotonic() - this.#startedAt,
    });
  }
}
