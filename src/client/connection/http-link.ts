import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { type Clock, systemClock, within } from "../../clock.ts";
import {
  acceptBoth,
  type HttpRequest,
  isEventStream,
  readBody,
  subjectHeaders,
  TooLarge,
} from "../../wire/http-client.ts";
import type { Id } from "../../wire/in-flight.ts";
import { fieldsOf, textOf } from "../../wire/json.ts";
import { maxMessageBytes, tooLarge } from "../../wire/line-link.ts";
import { type Message, readMessage, writeMessage } from "../../wire/message.ts";
import type { Link, LinkEvents, SendOptions } from "../../wire/peer.ts";
import { ConnectionError, cut, MalformedAnswer } from "../../wire/peer-errors.ts";
import { metaKeys } from "../../wire/request-envelope.ts";
import { isModern } from "../../wire/revisions.ts";
import type { ServerEvent } from "../../wire/sse.ts";
import type { UrlTarget } from "../client.ts";
import { exchangeAs, type HttpAuthorizer, retryAfterMs, toConnectionError } from "./http-request.ts";
import { maxInVain, Resumes } from "./resumes.ts";
import { targetOf } from "./url-target.ts";

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

/** How long the handshake waits for the server's own stream: some send nothing of it before there is something on it. */
const openMs = 2_000;

/** Where the stream of a request stands, for whoever comes back to it. */
export interface StreamMark {
  readonly session: string | undefined;
  readonly revision: string | undefined;
  readonly lastEventId: string;
}

export interface HttpEvents extends LinkEvents {
  /** `about`: the request on whose stream it came. */
  onMessage(message: Message, about?: Id): void;
  /** The stream of a request can be taken up from here. */
  onMark?(id: Id, mark: StreamMark): void;
}

export interface HttpExtras {
  readonly clock?: Clock | undefined;
  readonly authorizer?: HttpAuthorizer | undefined;
  /** A session that somebody else has begun; it is not ended with the link. */
  readonly session?: Pick<StreamMark, "session" | "revision"> | undefined;
}

export function openHttp(target: UrlTarget, events: HttpEvents, extras?: HttpExtras): HttpLink {
  const { url, own } = targetOf(target);
  return new HttpLink(url, own, events, extras);
}

interface Reading {
  readonly message: Message;
  readonly signal: AbortSignal;
  readonly resumes: Resumes;
}

export class HttpLink implements Link {
  readonly kind = "url";
  readonly #url: URL;
  readonly #own: Readonly<Record<string, string>>;
  readonly #events: HttpEvents;
  readonly #clock: Clock;
  readonly #authorizer: HttpAuthorizer | undefined;
  readonly #agent: http.Agent;
  /** A connection for each request; what TLS has agreed on is kept. */
  readonly #fresh: http.Agent;
  readonly #closing = new AbortController();
  #revision: string | undefined;
  #session: string | undefined;
  /** Whether the session is ours to end. */
  #isOwn = true;
  #isPushed = false;

  constructor(url: URL, own: Readonly<Record<string, string>>, events: HttpEvents, extras: HttpExtras = {}) {
    this.#url = url;
    this.#own = own;
    this.#events = events;
    this.#clock = extras.clock ?? systemClock;
    this.#authorizer = extras.authorizer;
    if (extras.session !== undefined) {
      this.#session = extras.session.session;
      this.#revision = extras.session.revision;
      this.#isOwn = false;
    }
    const { Agent } = url.protocol === "https:" ? https : http;
    this.#agent = new Agent({ keepAlive: true });
    this.#fresh = new Agent({ keepAlive: false });
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
    await within(systemClock, openMs, opened.promise);
  }

  async send(message: Message, options: SendOptions = {}): Promise<void> {
    const signal = this.#either(options.signal);
    const headers = { ...this.#headers(message), "content-type": "application/json", ...options.headers };
    const agent = options.isFresh === true ? this.#fresh : this.#agent;
    const response = await this.#exchange({ method: "POST", headers, body: writeMessage(message), signal, agent });
    if (message.method === "initialize") this.#session = textOf(response.headers["mcp-session-id"]);
    await this.#read(response, message, signal);
  }

  /** Takes up the stream of a request that was sent before, by whomever, and reads until its answer has come. */
  async resume(message: Message, lastEventId: string, options: Pick<SendOptions, "signal"> = {}): Promise<void> {
    const signal = this.#either(options.signal);
    const response = await this.#resume(lastEventId, signal);
    await this.#readStream(response, { message, signal, resumes: new Resumes(this.#clock, lastEventId) });
  }

  #either(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
  }

  #exchange(request: HttpRequest): Promise<IncomingMessage> {
    return exchangeAs(this.#authorizer, this.#url, request);
  }

  /** The session in which everything is sent; undefined where the server has given none. */
  get session(): Pick<StreamMark, "session" | "revision"> | undefined {
    return this.#session === undefined ? undefined : { session: this.#session, revision: this.#revision };
  }

  /** `keepsSession`: somebody will come back to it. */
  async close({ keepsSession = false }: { readonly keepsSession?: boolean } = {}): Promise<void> {
    const isSession = this.#session !== undefined && this.#isOwn && !keepsSession;
    this.#closing.abort(new ConnectionError("The connection is closed."));
    // A session is ended for good manners; a server that is slow about it is not waited for.
    if (isSession) {
      const signal = AbortSignal.timeout(1_000);
      const ended = this.#exchange({ method: "DELETE", headers: this.#headers(), signal });
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
    if (!isError && isEventStream(headers["content-type"]))
      return await this.#readStream(response, { message, signal, resumes: new Resumes(this.#clock) });
    const isJson = /^\s*application\/json\s*(;|$)/i.test(headers["content-type"] ?? "");
    let answer: Message | undefined;
    for await (const { data } of this.#eventsOf(response, false, signal))
      answer = isJson ? readMessage(data) : undefined;
    // The body of an error status need not be a message: the status says what went wrong.
    if (isError && answer?.error instanceof MalformedAnswer) answer = undefined;
    if (
      isError &&
      (answer?.error === undefined || connectionStatuses.has(status) || this.#isSessionLost(status, answer))
    )
      throw this.#refused(status, headers, answer);
    if (message.id === undefined || message.method === undefined) return;
    if (answer === undefined)
      throw new ConnectionError(
        `${this.#url.origin} answered ${message.method} with something that is no message of MCP.`,
        { isPassing: false },
      );
    // An error that says nothing about its request is about this one.
    this.#events.onMessage(answer.id == null ? { ...answer, id: message.id } : answer, message.id ?? undefined);
  }

  /** Of servers that were made after the SDK's examples many say it with 400 and words of their own. */
  #isSessionLost(status: number, answer: Message | undefined): boolean {
    if (this.#session === undefined) return false;
    const { code, message } = answer?.error ?? {};
    return status === 404 || (status === 400 && code === -32_000 && /session|not initialized/i.test(String(message)));
  }

  #refused(status: number, headers: http.IncomingHttpHeaders, answer: Message | undefined): ConnectionError {
    const isLost = this.#isSessionLost(status, answer);
    const words = answer?.error === undefined ? "" : ` ${cut(String(answer.error.message))}`;
    const hint = status === 401 || words === "" ? "; it may want a token" : "";
    const what = isLost
      ? "has forgotten our session"
      : status === 401 || status === 403
        ? `refuses us (HTTP status ${status})${hint}.${words}`
        : `answered with HTTP status ${status}.${words}`;
    const error = new ConnectionError(`${this.#url.origin} ${what}`, {
      status,
      isUnsent: isLost || status === 401 || status === 429,
      isPassing: isLost || passingStatuses.has(status),
      retryAfterMs: retryAfterMs(headers["retry-after"]),
    });
    if (isLost) {
      this.#isOwn = false;
      this.#events.onClose(error);
    }
    return error;
  }

  /** Reads until the answer has come; a stream that breaks before is opened again where the server said how. */
  async #readStream(first: IncomingMessage, { message, signal, resumes }: Reading): Promise<void> {
    let isAnswered = false;
    const about = message.id ?? undefined;
    const receive = (event: ServerEvent) => {
      const received = event.data === "" ? undefined : readMessage(event.data);
      resumes.heard(event, received);
      if (received !== undefined) {
        if (received.method === undefined && received.id === message.id) isAnswered = true;
        this.#events.onMessage(received, about);
      }
      // Only then: what was not handed on is to come again.
      if (event.id !== undefined && about !== undefined && !isAnswered)
        this.#events.onMark?.(about, { session: this.#session, revision: this.#revision, lastEventId: event.id });
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
    const response = await this.#exchange({
      method: "GET",
      headers: { ...this.#headers(), "last-event-id": lastId },
      signal,
      agent: this.#agent,
    });
    if (response.statusCode === 200) return response;
    response.resume();
    throw new ConnectionError(
      `${this.#url.origin} does not take up the broken stream again (HTTP status ${response.statusCode}).`,
      { status: response.statusCode ?? 0 },
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
        const response = await this.#exchange({ method: "GET", headers, signal });
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
