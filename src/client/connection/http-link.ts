import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { env } from "node:process";
import { type Clock, systemClock } from "../../clock.ts";
import { UsageError } from "../../errors.ts";
import { acceptBoth, isEventStream, readBody, subjectHeaders, TooLarge } from "../../wire/http-client.ts";
import { fieldsOf, textOf } from "../../wire/json.ts";
import { maxMessageBytes, tooLarge } from "../../wire/line-link.ts";
import { type Message, readMessage, writeMessage } from "../../wire/message.ts";
import type { Link, LinkEvents, SendOptions } from "../../wire/peer.ts";
import { ConnectionError, cut } from "../../wire/peer-errors.ts";
import { metaKeys } from "../../wire/request-envelope.ts";
import { isModern } from "../../wire/revisions.ts";
import type { ServerEvent } from "../../wire/sse.ts";
import type { UrlTarget } from "../client.ts";
import { exchange, retryAfterMs, toConnectionError } from "./http-request.ts";
import { maxInVain, Resumes } from "./resumes.ts";

/**
 * Streamable HTTP of every revision: a POST for each message, its answer as JSON or on a stream, and before 2026-07-28
 * a stream for the server's own messages.
 */

/** Too many requests, and what proxies say for a server that is not there right now. */
const passingStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** What these say is about the connection, whatever message comes with them. */
const connectionStatuses: ReadonlySet<number> = new Set([401, 403, ...passingStatuses]);
/** How often the server's own stream is asked for in vain before it is left alone. */
const maxFailures = 5;

export function openHttp(target: UrlTarget, events: LinkEvents): HttpLink {
  return new HttpLink(checkUrl(target.url), headersOf(target), events);
}

export class HttpLink implements Link {
  readonly kind = "url";
  readonly #url: URL;
  readonly #own: Readonly<Record<string, string>>;
  readonly #events: LinkEvents;
  readonly #clock: Clock;
  readonly #agent: http.Agent;
  readonly #closing = new AbortController();
  #revision: string | undefined;
  #session: string | undefined;
  #isPushed = false;

  constructor(url: URL, own: Readonly<Record<string, string>>, events: LinkEvents, clock: Clock = systemClock) {
    this.#url = url;
    this.#own = own;
    this.#events = events;
    this.#clock = clock;
    this.#agent = new (url.protocol === "https:" ? https : http).Agent({ keepAlive: true });
  }

  /** Whether messages of the server's own reach us while no request of ours is open. */
  get isPushed(): boolean {
    return this.#isPushed;
  }

  async begin(revision: string): Promise<void> {
    this.#revision = revision;
    if (isModern(revision)) return;
    await this.send({ method: "notifications/initialized" });
    const opened = Promise.withResolvers<void>();
    void this.#listen(() => opened.resolve()).finally(() => opened.resolve());
    await opened.promise;
  }

  async send(message: Message, options: SendOptions = {}): Promise<void> {
    const signal =
      options.signal === undefined ? this.#closing.signal : AbortSignal.any([options.signal, this.#closing.signal]);
    const headers = { ...this.#headers(message), "content-type": "application/json", ...options.headers };
    const agent = options.isFresh === true ? undefined : this.#agent;
    const response = await exchange(this.#url, { method: "POST", headers, body: writeMessage(message), signal, agent });
    if (message.method === "initialize") this.#session = textOf(response.headers["mcp-session-id"]);
    await this.#read(response, message, signal);
  }

  async close(): Promise<void> {
    const isSession = this.#session !== undefined;
    this.#closing.abort(new ConnectionError("The connection is closed."));
    // A session is ended for good manners; a server that is slow about it is not waited for.
    if (isSession) {
      const signal = AbortSignal.timeout(1_000);
      const ended = exchange(this.#url, { method: "DELETE", headers: this.#headers(), signal });
      await ended.then((response) => response.destroy()).catch(() => undefined);
    }
    this.#agent.destroy();
  }

  /** What every exchange says; a request of 2026-07-28 says itself which revision it is of. */
  #headers({ method, params, id }: Message = {}): Record<string, string> {
    const claimed = id === undefined ? undefined : textOf(fieldsOf(params?._meta)[metaKeys.revision]);
    const about = claimed === undefined ? {} : { method, params };
    return {
      ...this.#own,
      ...acceptBoth,
      ...subjectHeaders({ revision: claimed ?? this.#revision, session: this.#session, ...about }),
    };
  }

  async #read(response: IncomingMessage, message: Message, signal: AbortSignal): Promise<void> {
    const { statusCode: status = 0, headers } = response;
    const isError = status < 200 || status >= 300;
    if (!isError && isEventStream(headers["content-type"])) return await this.#readStream(response, message, signal);
    const isJson = /^\s*application\/json\s*(;|$)/i.test(headers["content-type"] ?? "");
    let answer: Message | undefined;
    for await (const { data } of this.#eventsOf(response, false, signal))
      answer = isJson ? readMessage(data) : undefined;
    if (isError && (answer?.error === undefined || connectionStatuses.has(status) || this.#isSessionLost(status)))
      throw this.#refused(status, headers, answer);
    if (message.id === undefined || message.method === undefined) return;
    if (answer === undefined)
      throw new ConnectionError(
        `${this.#url.origin} answered ${message.method} with something that is no message of MCP.`,
        { isPassing: false },
      );
    // An error that says nothing about its request is about this one.
    this.#events.onMessage(answer.id == null ? { ...answer, id: message.id } : answer);
  }

  #isSessionLost(status: number): boolean {
    return status === 404 && this.#session !== undefined;
  }

  #refused(status: number, headers: http.IncomingHttpHeaders, answer: Message | undefined): ConnectionError {
    const isLost = this.#isSessionLost(status);
    const words = answer?.error === undefined ? "" : ` ${cut(String(answer.error.message))}`;
    const what = isLost
      ? "has forgotten our session"
      : status === 401 || status === 403
        ? `refuses us (HTTP status ${status}); it may want a token.${words}`
        : `answered with HTTP status ${status}.${words}`;
    const error = new ConnectionError(`${this.#url.origin} ${what}`, {
      status,
      isUnsent: isLost || status === 429,
      isPassing: isLost || passingStatuses.has(status),
      retryAfterMs: retryAfterMs(headers["retry-after"]),
    });
    if (isLost) this.#events.onClose(error);
    return error;
  }

  /** Reads until the answer has come; a stream that breaks before is opened again where the server said how. */
  async #readStream(first: IncomingMessage, message: Message, signal: AbortSignal): Promise<void> {
    let isAnswered = false;
    const resumes = new Resumes(this.#clock);
    const receive = (event: ServerEvent) => {
      const received = event.data === "" ? undefined : readMessage(event.data);
      resumes.heard(event, received);
      if (received === undefined) return;
      if (received.method === undefined && received.id === message.id) isAnswered = true;
      this.#events.onMessage(received);
    };
    for (let response = first; ; ) {
      try {
        for await (const event of this.#eventsOf(response, true, signal)) receive(event);
      } catch (error) {
        if (signal.aborted || resumes.lastId === undefined) throw error;
      }
      if (isAnswered || message.id === undefined) return;
      resumes.broke();
      if (resumes.lastId === undefined)
        throw new ConnectionError(`${this.#url.origin} closed the stream before it answered ${message.method}.`);
      if (resumes.isLost)
        throw new ConnectionError(
          `${this.#url.origin} closed the stream ${maxInVain} times in a row without anything on it, and has not answered ${message.method}.`,
        );
      await resumes.wait(signal);
      response = await this.#resume(resumes.lastId, signal);
      resumes.opened();
    }
  }

  async #resume(lastId: string, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await exchange(this.#url, {
      method: "GET",
      headers: { ...this.#headers(), "last-event-id": lastId },
      signal,
      agent: this.#agent,
    });
    if (response.statusCode === 200) return response;
    response.resume();
    throw new ConnectionError(
      `${this.#url.origin} does not take up the broken stream again (HTTP status ${response.statusCode}).`,
    );
  }

  /** The stream for what the server sends by itself; a server that has none says so. */
  async #listen(onOpen: () => void): Promise<void> {
    const { signal } = this.#closing;
    const resumes = new Resumes(this.#clock);
    for (let failures = 0; failures < maxFailures && !resumes.isLost && !signal.aborted; failures++) {
      try {
        const headers = {
          ...this.#headers(),
          ...(resumes.lastId !== undefined && { "last-event-id": resumes.lastId }),
        };
        const response = await exchange(this.#url, { method: "GET", headers, signal });
        const isStream = response.statusCode === 200 && isEventStream(response.headers["content-type"]);
        if (!isStream) return void response.destroy();
        this.#isPushed = true;
        onOpen();
        failures = 0;
        resumes.opened();
        for await (const event of this.#eventsOf(response, true, signal)) {
          const received = event.data === "" ? undefined : readMessage(event.data);
          resumes.heard(event, received);
          if (received !== undefined) this.#events.onMessage(received);
        }
      } catch {
        // Requests find out by themselves whether the server is gone.
      }
      this.#isPushed = false;
      resumes.broke();
      await resumes.wait(signal).catch(() => undefined);
    }
  }

  async *#eventsOf(response: IncomingMessage, isStream: boolean, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    try {
      yield* readBody(response, isStream, maxMessageBytes);
    } catch (cause) {
      if (cause instanceof TooLarge) throw new ConnectionError(tooLarge, { isPassing: false });
      throw signal.aborted ? signal.reason : toConnectionError(this.#url, cause as NodeJS.ErrnoException);
    }
  }
}

function checkUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new UsageError(`The address ${cut(text.replace(/\/\/[^/]*@/, "//…@"), 100)} is no http or https URL.`);
  if (url.username !== "" || url.password !== "")
    throw new UsageError("A URL must not hold a name or a password; name the variable that holds the token instead.");
  return url;
}

const loopbackNames = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** The caller's own headers; the protocol's are put over them. No value of theirs is ever shown. */
function headersOf({ headers = {}, tokenVariable, url }: UrlTarget): Record<string, string> {
  for (const [name, value] of Object.entries(headers)) {
    try {
      http.validateHeaderName(name);
      http.validateHeaderValue(name, value);
    } catch {
      throw new UsageError(
        `The header ${JSON.stringify(cut(name, 60))} cannot be sent: its name or its value holds characters that headers may not have.`,
      );
    }
  }
  const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  if (tokenVariable === undefined) return own;
  const token = env[tokenVariable]?.trim();
  if (token === undefined || token === "")
    throw new UsageError(
      `The variable ${tokenVariable} is ${token === undefined ? "not set" : "empty"}; it must hold the bearer token.`,
    );
  if (/[^\x21-\x7e]/.test(token))
    throw new UsageError(`The variable ${tokenVariable} holds characters that no bearer token has.`);
  const { protocol, hostname, origin } = new URL(url);
  if (protocol === "http:" && !loopbackNames.test(hostname))
    throw new UsageError(
      `The token of ${tokenVariable} would cross the network to ${origin} for everybody to read; use https.`,
    );
  return { ...own, authorization: `Bearer ${token}` };
}
