import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { systemClock } from "../../clock.ts";
import * as wire from "../../wire/http-client.ts";
import { type AddressPolicy, checkUrlHost, guardedLookup } from "./addresses.ts";
import { parseJson } from "./bounded-json.ts";

/**
 * One HTTP exchange with a server that nobody trusts: bounded in time and bytes, to allowed addresses only. Redirects
 * are reported and never followed; compressed answers are not unpacked (we ask for none).
 */

export interface ProbeHttpOptions {
  readonly method?: wire.HttpRequest["method"];
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

export function sendHttp(url: URL, options: ProbeHttpOptions, policy: AddressPolicy): Promise<HttpAnswer> {
  checkUrlHost(url, policy);
  return new HttpExchange(options).run(url, policy);
}

type Ended = HttpAnswer["ended"];

class HttpExchange {
  readonly #options: ProbeHttpOptions;
  readonly #startedAt = systemClock.monotonic();
  readonly #messages: unknown[] = [];
  #head: Pick<HttpAnswer, "status" | "headers" | "isStream" | "headMs"> = {
    status: 0,
    headers: {},
    isStream: false,
    headMs: 0,
  };
  #kept = "";
  #bytes = 0;
  #values = 0;

  constructor(options: ProbeHttpOptions) {
    this.#options = options;
  }

  async run(url: URL, policy: AddressPolicy): Promise<HttpAnswer> {
    const { method = "POST", headers = {}, body, timeoutMs, signal } = this.#options;
    const over = new AbortController();
    const stopTimer = systemClock.after(timeoutMs, () => over.abort());
    const either = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
    const safe = {
      headers: { "accept-encoding": "identity", ...headers },
      lookup: guardedLookup(policy),
      maxHeaderSize: 64 * 1024,
    };
    try {
      const response = await wire.sendHttp(url, { method, body, signal: either, ...safe });
      const ended = await this.#read(response);
      // Who only looks at the head may have ended it by that.
      return this.#toAnswer(either.aborted && ended === "whole" ? "timeout" : ended);
    } catch (cause) {
      if (either.aborted) return this.#toAnswer("timeout");
      const { name, code, message } = cause as NodeJS.ErrnoException;
      return name === "AddressRefused" ? this.#toAnswer("refused", message) : this.#toAnswer("broken", code ?? message);
    } finally {
      stopTimer();
    }
  }

  async #read(response: IncomingMessage): Promise<Ended> {
    const headers = toPlain(response.headers);
    const isStream = wire.isEventStream(headers["content-type"]);
    this.#head = {
      status: response.statusCode ?? 0,
      headers,
      isStream,
      headMs: systemClock.monotonic() - this.#startedAt,
    };
    this.#options.onHead?.(this.#head.status, headers);
    try {
      for await (const { data } of wire.readBody(this.#count(response), isStream)) {
        const ended = this.#hear(data);
        if (ended !== undefined) return ended;
      }
      return "whole";
    } catch (error) {
      if (error instanceof wire.TooLarge) return "too-large";
      throw error;
    } finally {
      response.destroy();
    }
  }

  async *#count(response: IncomingMessage): AsyncGenerator<Buffer> {
    const { maxBytes = defaultMaxBytes } = this.#options;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      this.#bytes += chunk.length;
      if (this.#kept.length < maxKept) this.#kept += chunk.toString("utf8").slice(0, maxKept - this.#kept.length);
      if (this.#bytes > maxBytes) throw new wire.TooLarge();
      yield chunk;
    }
  }

  #hear(text: string): Ended | undefined {
    const message = parseJson(text, (values) => (this.#values += values));
    if (message === undefined) return undefined;
    if (this.#messages.length >= maxMessages || this.#values > maxValues) return "too-large";
    this.#messages.push(message);
    return this.#options.onMessage?.(message) === true ? "enough" : undefined;
  }

  #toAnswer(ended: Ended, error?: string): HttpAnswer {
    return {
      ...this.#head,
      text: this.#kept,
      bytes: this.#bytes,
      values: this.#values,
      messages: this.#messages,
      ended,
      ...(error !== undefined && { error }),
      elapsedMs: systemClock.monotonic() - this.#startedAt,
    };
  }
}

function toPlain(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]),
  );
}
