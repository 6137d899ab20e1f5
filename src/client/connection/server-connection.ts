import { type Clock, sleep, systemClock } from "../../clock.ts";
import { fieldsOf, type Json } from "../../wire/json.ts";
import { type AskOptions, type Link, type LinkEvents, Peer } from "../../wire/peer.ts";
import { ConnectionError } from "../../wire/peer-errors.ts";
import type { ConnectOptions, ServerFacts, Target } from "../client.ts";
import { Detach } from "../detach.ts";
import type { HttpLink } from "./http-link.ts";
import {
  checkRevision,
  type Dialect,
  envelope,
  type Introduction,
  isOwnFailure,
  modernCapabilities,
  negotiate,
} from "./negotiate.ts";
import { orAborted } from "./or-aborted.ts";
import { nextRetryMs } from "./pauses.ts";

const defaultConnectMs = 30_000;
const defaultRetryMs = 30_000;
/** What a server only has to look up is answered within this. */
export const answerMs = 60_000;

interface RequestOptions extends Pick<AskOptions, "signal" | "limitMs" | "headers" | "onLate"> {
  /** Sending it twice does no harm, so it is sent again when nobody knows whether it arrived. */
  readonly isRepeatable?: boolean;
  /** 2026-07-28: whether this request's caller can be asked. */
  readonly canAsk?: boolean;
}

type Listener = (params: Json) => void;

const mustCancel = (reason: unknown) => !(reason instanceof Detach);

/**
 * A server as one thing to talk to, across lost connections: what may be repeated is, within a limit.
 *
 * The messages are our own, not the SDK client's: that one refuses the handles of tasks, starts a second process to
 * find out what a server speaks, takes capabilities once for all calls, and reads HTTP with `fetch`, which gives up on
 * an answer after five silent minutes. What is left of it is JSON-RPC over lines and over Streamable HTTP, which is
 * little, and loads in no time.
 */
export class ServerConnection {
  readonly #target: Target;
  readonly #who: Introduction;
  readonly #options: ConnectOptions;
  readonly #clock: Clock = systemClock;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #closing = new AbortController();
  #peer: Peer | undefined;
  #opening: Promise<Peer> | undefined;
  #dialect: Dialect | undefined;
  #isProbed = false;
  /** Answers `elicitation/create`. */
  onQuestion: (params: Json) => Promise<Json> = () => new Promise(() => undefined);

  private constructor(target: Target, options: ConnectOptions) {
    this.#target = target;
    this.#options = options;
    this.#who = { name: options.name ?? "meanwhile", version: options.version ?? "0", revision: options.revision };
  }

  static async open(target: Target, options: ConnectOptions): Promise<ServerConnection> {
    checkRevision(options.revision);
    options.signal?.throwIfAborted();
    const connection = new ServerConnection(target, options);
    try {
      await connection.#current(options.signal);
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  get dialect(): Dialect {
    if (this.#dialect === undefined) throw new Error("The connection is not open yet.");
    return this.#dialect;
  }

  get server(): ServerFacts {
    return this.dialect.facts;
  }

  /** A server that was started for us is not started again: what it was doing is gone with it. */
  get isRestorable(): boolean {
    return !("command" in this.#target);
  }

  /** Whether messages of the server's own reach us between requests. */
  get isPushed(): boolean {
    const link = this.#peer?.link;
    return link !== undefined && (link.kind !== "url" || (link as HttpLink).isPushed);
  }

  /** Resolves when the connection is lost that is open now. */
  lost(): Promise<ConnectionError> {
    return this.#peer?.closed ?? new Promise(() => undefined);
  }

  /** Calls back for each notification of a method, across connections. */
  on(method: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(method) ?? new Set();
    this.#listeners.set(method, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /** Sends a request and resolves with its result's fields. */
  async request(method: string, params: Json, options: RequestOptions = {}): Promise<Json> {
    const endMs = this.#clock.monotonic() + (this.#options.retryMs ?? defaultRetryMs);
    for (let tries = 0; ; tries++) {
      try {
        const peer = await this.#current(options.signal);
        return fieldsOf(await peer.request(method, this.#dress(params, options), this.#toAsk(options)));
      } catch (error) {
        const waitMs = this.#mayRepeat(error, options)
          ? nextRetryMs(tries, (error as ConnectionError).retryAfterMs)
          : undefined;
        if (waitMs === undefined || this.#clock.monotonic() + waitMs > endMs) throw error;
        await sleep(this.#clock, waitMs, options.signal);
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new ConnectionError("The connection is closed.", { isPassing: false }));
    const opening = this.#opening;
    await this.#peer?.close();
    await opening?.then(
      (peer) => peer.close(),
      () => undefined,
    );
  }

  #mayRepeat(error: unknown, { isRepeatable = false }: RequestOptions): boolean {
    if (!(error instanceof ConnectionError) || !error.isPassing || this.#closing.signal.aborted) return false;
    if (!this.isRestorable && this.#peer?.why !== undefined) return false;
    return isRepeatable || error.isUnsent;
  }

  #toAsk({ signal, limitMs, headers, onLate, isRepeatable = false }: RequestOptions): AskOptions {
    return {
      signal,
      limitMs,
      headers,
      onLate,
      isFresh: !isRepeatable,
      isStreamBound: this.dialect.isModern,
      mustCancel,
    };
  }

  #dress(params: Json, { canAsk = false }: RequestOptions): Json {
    if (!this.dialect.isModern) return params;
    return { ...params, _meta: { ...envelope(this.#who, modernCapabilities(canAsk)), ...fieldsOf(params._meta) } };
  }

  /** The open connection; one that was lost is opened again. */
  async #current(signal?: AbortSignal): Promise<Peer> {
    this.#closing.signal.throwIfAborted();
    const peer = this.#peer;
    if (peer !== undefined && peer.why === undefined) return peer;
    if (peer?.why !== undefined && !this.isRestorable) throw peer.why;
    // Others may wait for it too, so one who gives up leaves it to them.
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return await orAborted(this.#opening, signal);
  }

  async #open(): Promise<Peer> {
    await this.#peer?.close().catch(() => undefined);
    const limitMs = this.#options.timeoutMs ?? defaultConnectMs;
    const slow = new AbortController();
    let refusal: ConnectionError | undefined;
    const stopClock = this.#clock.after(limitMs, () => {
      const text =
        refusal === undefined
          ? `The server did not begin to talk within ${limitMs / 1000} s.`
          : `${refusal.message} Further tries for ${limitMs / 1000} s did not help.`;
      slow.abort(new ConnectionError(text, { isPassing: false, isUnsent: true }));
    });
    const signal = AbortSignal.any([slow.signal, this.#closing.signal]);
    try {
      this.#peer = await this.#shakeHands(signal, (error) => (refusal = error));
      return this.#peer;
    } finally {
      stopClock();
    }
  }

  async #shakeHands(signal: AbortSignal, onRetry: (error: ConnectionError) => void): Promise<Peer> {
    const isFirst = this.#dialect === undefined;
    // A server that is found again speaks what it spoke.
    const who = isFirst ? this.#who : { ...this.#who, revision: this.dialect.revision };
    for (let tries = 0; ; tries++) {
      let peer: Peer | undefined;
      try {
        peer = await this.#begin(signal);
        this.#dialect = await negotiate(peer, who, !this.#isProbed, signal);
        return peer;
      } catch (error) {
        const hasEnded = peer?.why !== undefined;
        await peer?.close();
        const hasLeft = peer?.link.kind === "command" && hasEnded && !this.#isProbed && who.revision === undefined;
        // It may not have stood `server/discover`; what it thinks of `initialize` is still open.
        if (hasLeft && !isOwnFailure(error) && !signal.aborted) this.#isProbed = true;
        else if (!this.#isWorthAnotherTry(error, isFirst) || signal.aborted)
          throw signal.aborted ? signal.reason : error;
        else {
          onRetry(error);
          await sleep(this.#clock, nextRetryMs(tries, error.retryAfterMs), signal);
        }
      }
    }
  }

  /** Where nothing was found at first, nothing will be. */
  #isWorthAnotherTry(error: unknown, isFirst: boolean): error is ConnectionError {
    return (
      isFirst &&
      this.#options.retryMs !== 0 &&
      error instanceof ConnectionError &&
      error.isPassing &&
      !(error.isUnsent && error.status === undefined)
    );
  }

  async #begin(signal: AbortSignal): Promise<Peer> {
    const opening = Peer.open((events) => this.#openLink(events), {
      onNotification: (method, params) => {
        for (const listener of this.#listeners.get(method) ?? []) listener(params);
      },
      onRequest: async (method, params) => {
        if (method === "ping") return {};
        if (method === "elicitation/create") return await this.onQuestion(params);
        return undefined;
      },
    });
    try {
      return await orAborted(opening, signal);
    } catch (error) {
      await opening.then((peer) => peer.close()).catch(() => undefined);
      throw error;
    }
  }

  async #openLink(events: LinkEvents): Promise<Link> {
    const target = this.#target;
    // Each loads what it needs itself: node's HTTP alone takes longer than all the rest.
    if ("url" in target) return (await import("./http-link.ts")).openHttp(target, events);
    const { startServer, connectLines } = await import("./local-link.ts");
    // Who has given up by now must not find a server started.
    this.#closing.signal.throwIfAborted();
    return "command" in target
      ? await startServer(target, events, this.#options.onStderr)
      : await connectLines(target, events);
  }
}
