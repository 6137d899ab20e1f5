import type { IncomingMessage } from "node:http";
import { exchangeAs, retryAfterMs, toConnectionError } from "../client/connection/http-request.ts";
import { orAborted } from "../client/connection/or-aborted.ts";
import { targetOf } from "../client/connection/url-target.ts";
import { type Clock, systemClock, within } from "../clock.ts";
import { isEventStream, readBody, subjectHeaders, TooLarge } from "../wire/http-client.ts";
import type { Id } from "../wire/in-flight.ts";
import { maxMessageBytes, tooLarge } from "../wire/line-link.ts";
import { type Message, readMessage, writeMessage } from "../wire/message.ts";
import type { SendOptions } from "../wire/peer.ts";
import { ConnectionError, cut } from "../wire/peer-errors.ts";
import { withPauses } from "./send-again.ts";
import type { UpstreamEvents, UpstreamLink, UrlAddress } from "./upstream-link.ts";

/**
 * HTTP+SSE of 2024-11-05: one stream on which the server says where to post messages, and on which everything else of
 * it comes. https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
 */

/** How long it may take to say where messages are posted. */
const endpointMs = 10_000;

export async function openSse(address: UrlAddress, events: UpstreamEvents, clock?: Clock): Promise<UpstreamLink> {
  const link = new SseLink(address, events, clock);
  try {
    await link.open();
    return link;
  } catch (error) {
    await link.close();
    throw error;
  }
}

class SseLink implements UpstreamLink {
  readonly kind = "url";
  readonly #url: URL;
  readonly #own: Readonly<Record<string, string>>;
  readonly #address: UrlAddress;
  readonly #events: UpstreamEvents;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  readonly #endpoint = Promise.withResolvers<URL>();
  /** Requests that wait for their answers, and what ends their waiting. */
  readonly #waiting = new Map<Id, PromiseWithResolvers<void>>();
  #revision: string | undefined;
  #why: ConnectionError | undefined;

  constructor(address: UrlAddress, events: UpstreamEvents, clock: Clock = systemClock) {
    const { url, own } = targetOf(address);
    this.#url = url;
    this.#own = own;
    this.#address = address;
    this.#events = events;
    this.#clock = clock;
    this.#endpoint.promise.catch(() => undefined);
  }

  /** Resolves when messages can be posted. */
  async open(): Promise<void> {
    const { signal } = this.#closing;
    const headers = { ...this.#own, accept: "text/event-stream" };
    const response = await exchangeAs(this.#address.authorizer, this.#url, { method: "GET", headers, signal });
    const { statusCode: status = 0, headers: said } = response;
    if (status !== 200 || !isEventStream(said["content-type"])) {
      response.destroy();
      throw this.#refusal(status, said["retry-after"], "opens no stream of the old HTTP+SSE transport");
    }
    void this.#read(response);
    await within(systemClock, endpointMs, this.#endpoint.promise, () => {
      throw new ConnectionError(`${this.#url.origin} does not say where messages are to be posted.`, {
        isUnsent: true,
        isPassing: false,
      });
    });
  }

  async begin(revision: string): Promise<void> {
    this.#revision = revision;
    await this.send({ method: "notifications/initialized" });
  }

  async send(message: Message, options: SendOptions = {}): Promise<void> {
    if (this.#why !== undefined)
      throw new ConnectionError(this.#why.message, { isUnsent: true, isPassing: this.#why.isPassing });
    const { id, method } = message;
    const signals = [this.#closing.signal, ...(options.signal === undefined ? [] : [options.signal])];
    const signal = AbortSignal.any(signals);
    const post = () => withPauses(message, { clock: this.#clock, signal }, () => this.#post(message, options, signal));
    if (id == null || method === undefined) return await post();
    const answered = Promise.withResolvers<void>();
    answered.promise.catch(() => undefined);
    this.#waiting.set(id, answered);
    try {
      // An answer may overtake what is said to the post.
      await Promise.race([answered.promise, post().then(() => orAborted(answered.promise, signal))]);
    } finally {
      this.#waiting.delete(id);
    }
  }

  drop(id: Id): void {
    this.#waiting.get(id)?.reject(new ConnectionError("The request was taken back.", { isPassing: false }));
  }

  async close(): Promise<void> {
    this.#finish(new ConnectionError("The connection is closed.", { isPassing: false }), false);
  }

  async #post(message: Message, { headers = {} }: SendOptions, signal: AbortSignal): Promise<void> {
    const response = await exchangeAs(this.#address.authorizer, await this.#endpoint.promise, {
      method: "POST",
      headers: {
        ...this.#own,
        "content-type": "application/json",
        ...subjectHeaders({ revision: this.#revision, session: undefined }),
        ...headers,
      },
      body: writeMessage(message),
      signal,
    });
    response.on("error", () => undefined).resume();
    const { statusCode: status = 0 } = response;
    if (status >= 200 && status < 300) return;
    const error = this.#refusal(status, response.headers["retry-after"], `refuses ${message.method ?? "an answer"}`);
    // What it says of a session that it has forgotten.
    if (status === 404) this.#finish(error);
    throw error;
  }

  #refusal(status: number, retryAfter: string | undefined, what: string): ConnectionError {
    const hint = status === 401 || status === 403 ? "; it may want a token" : "";
    return new ConnectionError(`${this.#url.origin} ${what} (HTTP status ${status})${hint}.`, {
      status,
      isUnsent: [401, 404, 429].includes(status),
      isPassing: [404, 429, 502, 503, 504].includes(status),
      retryAfterMs: retryAfterMs(retryAfter),
    });
  }

  async #read(response: IncomingMessage): Promise<void> {
    try {
      for await (const { name, data } of readBody(response, true, maxMessageBytes)) {
        if (name === "endpoint") this.#toldEndpoint(data);
        else if (name === undefined) this.#receive(data);
      }
      this.#finish(new ConnectionError(`${this.#url.origin} closed the stream.`));
    } catch (cause) {
      const why =
        cause instanceof ConnectionError
          ? cause
          : cause instanceof TooLarge
            ? new ConnectionError(tooLarge, { isPassing: false })
            : toConnectionError(this.#url, cause as NodeJS.ErrnoException);
      this.#finish(why);
    }
  }

  /** On the same origin only, so that no header ever leaves it. */
  #toldEndpoint(said: string): void {
    const endpoint = URL.canParse(said, this.#url.href) ? new URL(said, this.#url) : undefined;
    if (endpoint?.origin !== this.#url.origin)
      throw new ConnectionError(
        `${this.#url.origin} wants messages posted to another origin, ${cut(endpoint?.origin ?? said, 100)}, and that is never done.`,
        { isUnsent: true, isPassing: false },
      );
    this.#endpoint.resolve(endpoint);
  }

  #receive(data: string): void {
    const message = readMessage(data);
    if (message === undefined || this.#why !== undefined) return;
    this.#events.onMessage(message, undefined);
    if (message.method === undefined && message.id != null) this.#waiting.get(message.id)?.resolve();
  }

  #finish(why: ConnectionError, mustTell = true): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    this.#endpoint.reject(why);
    for (const waiting of this.#waiting.values()) waiting.reject(why);
    this.#closing.abort(why);
    if (mustTell) this.#events.onClose(why);
  }
}
