import { systemClock, within } from "../clock.ts";
import { RequestError, RpcCode } from "../errors.ts";
import { type Id, InFlight, type Sent } from "./in-flight.ts";
import { fieldsOf, isObject, type Json } from "./json.ts";
import type { Message } from "./message.ts";
import { ConnectionError, checkToolResult, MalformedAnswer, ServerError } from "./peer-errors.ts";

/** Messages to and from the other side, whatever carries them. */
export interface Link {
  readonly kind: "command" | "url" | "socket";
  /** Takes a message to the other side. Over HTTP a request lasts until its answer has come. */
  send(message: Message, options?: SendOptions): Promise<void>;
  /** Told once, when the handshake is over. */
  begin(revision: string): Promise<void>;
  close(): Promise<void>;
}

export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Over HTTP: on a connection of its own, because one that was kept open may be gone just as the request leaves. */
  readonly isFresh?: boolean | undefined;
  /** Over HTTP. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface LinkEvents {
  onMessage(message: Message): void;
  /** Called once; nothing comes after it. */
  onClose(why: ConnectionError): void;
}

export interface PeerEvents {
  onNotification(method: string, params: Json): void;
  /**
   * Answers a request of the other side's; undefined for a method that is not known. What never resolves is never
   * answered.
   */
  onRequest(method: string, params: Json): Promise<Json | undefined>;
}

export interface AskOptions extends Pick<SendOptions, "isFresh" | "headers"> {
  readonly signal?: AbortSignal | undefined;
  /** The longest an answer may take. */
  readonly limitMs?: number | undefined;
  /** The stream of a request is its life: closing it cancels, and nothing else does. */
  readonly isStreamBound?: boolean;
  /** False for a reason to give up that leaves the work alone. */
  readonly mustCancel?: (reason: unknown) => boolean;
  /** What came although the request was taken back; a short time is left for it. */
  readonly onLate?: ((result: unknown) => Promise<void>) | undefined;
}

/**
 * How long it may take to tell the other side that a request is taken back, and how long an answer may still be on its
 * way.
 */
const tellMs = 1_000;
const lateMs = 300;

const nothing = () => undefined;

/** Why nobody waits any more. */
class GivenUp {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

/** JSON-RPC over a link: each request finds its answer, or is taken back. */
export class Peer {
  readonly link: Link;
  readonly #events: PeerEvents;
  readonly #inFlight = new InFlight<Message>();
  /** Requests of the other side's that wait for our answer. */
  readonly #asked = new Set<Id>();
  readonly #closed = Promise.withResolvers<ConnectionError>();
  #why: ConnectionError | undefined;

  private constructor(link: Link, events: PeerEvents) {
    this.link = link;
    this.#events = events;
  }

  static async open(openLink: (events: LinkEvents) => Promise<Link>, events: PeerEvents): Promise<Peer> {
    // What comes before the link is handed over waits for it.
    const early: (() => void)[] = [];
    let peer: Peer | undefined;
    const whenOpen = (act: (peer: Peer) => void) =>
      void (peer === undefined ? early.push(() => act(peer as Peer)) : act(peer));
    const link = await openLink({
      onMessage: (message) => whenOpen((open) => open.#receive(message)),
      onClose: (why) => whenOpen((open) => open.#finish(why)),
    });
    peer = new Peer(link, events);
    for (const act of early) act();
    return peer;
  }

  /** Why nothing comes any more; undefined while the link is open. */
  get why(): ConnectionError | undefined {
    return this.#why;
  }

  /** Resolves when the link is closed by the other side. */
  get closed(): Promise<ConnectionError> {
    return this.#closed.promise;
  }

  /**
   * Sends a request and resolves with its result. Who gives up on it has the other side told, unless the work is only
   * to be left alone.
   */
  async request(method: string, params: Json, options: AskOptions = {}): Promise<unknown> {
    const { signal, limitMs, mustCancel = () => true } = options;
    signal?.throwIfAborted();
    if (this.#why !== undefined) throw this.#why;
    const stop = new AbortController();
    const sent = this.#send(method, params, {
      signal: stop.signal,
      isFresh: options.isFresh,
      headers: options.headers,
    });
    const result = sent.answer.then((answer) => resultOf(answer, method));
    const givenUp = Promise.withResolvers<GivenUp>();
    const onAbort = () => givenUp.resolve(new GivenUp(signal?.reason));
    signal?.addEventListener("abort", onAbort, { once: true });
    const slow = new ConnectionError(
      `The server did not answer ${method} within ${Math.round((limitMs ?? 0) / 1000)} s.`,
    );
    const stopClock =
      limitMs === undefined ? undefined : systemClock.after(limitMs, () => givenUp.resolve(new GivenUp(slow)));
    try {
      const first = await Promise.race([result, givenUp.promise]);
      if (!(first instanceof GivenUp)) return first;
      if (mustCancel(first.reason)) await this.#takeBack(sent.id, result, stop, options);
      throw first.reason;
    } finally {
      sent.forget();
      stopClock?.();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  async notify(method: string, params?: Json): Promise<void> {
    await this.link.send({ method, ...(params !== undefined && { params }) });
  }

  async close(): Promise<void> {
    this.#finish(new ConnectionError("The connection is closed.", { isPassing: false }));
    await this.link.close();
  }

  #send(method: string, params: Json, options: SendOptions): Sent<Message> {
    const sent = this.#inFlight.open();
    this.link.send({ id: sent.id, method, params }, options).then(() => {
      if (this.link.kind === "url") sent.fail(new ConnectionError(`The server did not answer ${method}.`));
    }, sent.fail);
    return sent;
  }

  /**
   * Tells the other side that nobody waits any more. An answer that was already on its way is not lost: it may name a
   * task.
   */
  async #takeBack(
    id: Id,
    result: Promise<unknown>,
    stop: AbortController,
    { isStreamBound = false, onLate }: AskOptions,
  ): Promise<void> {
    const isClosed = isStreamBound && this.link.kind === "url";
    if (!isClosed && this.#why === undefined)
      await within(systemClock, tellMs, this.notify("notifications/cancelled", { requestId: id }).catch(nothing));
    const late = onLate === undefined ? undefined : await within(systemClock, lateMs, result.catch(nothing));
    if (late !== undefined) await onLate?.(late);
    // Only now, lest the server takes the closing for an accident.
    stop.abort();
  }

  #receive(message: Message): void {
    const { id, method, params = {} } = message;
    if (method === undefined) this.#inFlight.settle(id, message);
    else if (id === undefined || id === null) {
      if (method === "notifications/cancelled") this.#asked.delete(fieldsOf(params).requestId as Id);
      this.#events.onNotification(method, params);
    } else void this.#answer(id, method, params);
  }

  async #answer(id: Id, method: string, params: Json): Promise<void> {
    this.#asked.add(id);
    const result = await this.#events.onRequest(method, params);
    const reply: Message =
      result === undefined ? { id, error: { code: RpcCode.Method, message: "Method not found" } } : { id, result };
    // A question that was taken back wants no answer.
    if (this.#asked.delete(id) && this.#why === undefined) await this.link.send(reply).catch(() => undefined);
  }

  #finish(why: ConnectionError): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    this.#inFlight.failAll(why);
    this.#closed.resolve(why);
  }
}

function resultOf({ result, error }: Message, method: string): Json {
  if (error instanceof MalformedAnswer) throw error.naming("The server", method);
  if (error !== undefined) throw new ServerError(error);
  if (!isObject(result))
    throw new RequestError("request", `Asked for ${method}, the server answered with something that is no result.`);
  checkToolResult(method, result);
  return result;
}
