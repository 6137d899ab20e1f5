import { systemClock } from "../clock.ts";
import { RequestError } from "../errors.ts";
import { fieldsOf, isObject, type Json } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { Detach } from "./detach.ts";
import { ConnectionError, ServerError } from "./errors.ts";
import type { Link, LinkEvents, SendOptions } from "./link.ts";

export interface PeerEvents {
  onNotification(method: string, params: Json): void;
  /** Answers a request of the server's; undefined for a method that is not known. What never resolves is never answered. */
  onRequest(method: string, params: Json): Promise<Json | undefined>;
}

export interface AskOptions extends Pick<SendOptions, "isFresh" | "headers"> {
  readonly signal?: AbortSignal | undefined;
  /** The longest an answer may take. */
  readonly limitMs?: number | undefined;
  /** The stream of a request is its life: closing it cancels, and nothing else does. */
  readonly isStreamBound?: boolean;
  /** What came although the request was taken back; a short time is left for it. */
  readonly onLate?: ((result: unknown) => Promise<void>) | undefined;
}

/** How long it may take to tell a server that a request is taken back, and how long an answer may still be on its way. */
const tellMs = 1_000;
const lateMs = 300;

/** Why nobody waits any more. */
class GivenUp {
  readonly reason: unknown;

  constructor(reason: unknown) {
    this.reason = reason;
  }
}

interface Waiting {
  readonly method: string;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** JSON-RPC over a link: each request finds its answer. */
export class Peer {
  readonly link: Link;
  readonly #events: PeerEvents;
  readonly #waiting = new Map<number, Waiting>();
  /** Requests of the server's that wait for our answer. */
  readonly #asked = new Set<string | number>();
  readonly #closed = Promise.withResolvers<ConnectionError>();
  #why: ConnectionError | undefined;
  #lastId = 0;

  private constructor(link: Link, events: PeerEvents) {
    this.link = link;
    this.#events = events;
  }

  static async open(openLink: (events: LinkEvents) => Promise<Link>, events: PeerEvents): Promise<Peer> {
    // What comes before the link is handed over waits for it.
    const early: (() => void)[] = [];
    let peer: Peer | undefined;
    const whenOpen = (act: (peer: Peer) => void) => void (peer === undefined ? early.push(() => act(peer as Peer)) : act(peer));
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

  /** Sends a request and resolves with its result. Who gives up on it has the server told, unless the work is only to be left alone. */
  async request(method: string, params: Json, options: AskOptions = {}): Promise<unknown> {
    const { signal, limitMs } = options;
    signal?.throwIfAborted();
    if (this.#why !== undefined) throw this.#why;
    const id = ++this.#lastId;
    const stop = new AbortController();
    const answer = Promise.withResolvers<unknown>();
    const givenUp = Promise.withResolvers<GivenUp>();
    this.#waiting.set(id, { ...answer, method });
    const onAbort = () => givenUp.resolve(new GivenUp(signal?.reason));
    signal?.addEventListener("abort", onAbort, { once: true });
    const slow = new ConnectionError(`The server did not answer ${method} within ${Math.round((limitMs ?? 0) / 1000)} s.`);
    const stopClock = limitMs === undefined ? undefined : systemClock.after(limitMs, () => givenUp.resolve(new GivenUp(slow)));
    this.link.send({ id, method, params }, { signal: stop.signal, isFresh: options.isFresh, headers: options.headers }).then(
      () => {
        if (this.link.kind === "url") answer.reject(new ConnectionError(`The server did not answer ${method}.`));
      },
      (error: unknown) => answer.reject(error),
    );
    try {
      const first = await Promise.race([answer.promise, givenUp.promise]);
      if (!(first instanceof GivenUp)) return first;
      if (!(first.reason instanceof Detach)) await this.#takeBack(id, answer.promise, stop, options);
      throw first.reason;
    } finally {
      this.#waiting.delete(id);
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

  /** Tells the server that nobody waits any more. An answer that was already on its way is not lost: it may name a task. */
  async #takeBack(id: number, answer: Promise<unknown>, stop: AbortController, { isStreamBound = false, onLate }: AskOptions): Promise<void> {
    const isClosed = isStreamBound && this.link.kind === "url";
    if (!isClosed && this.#why === undefined) await this.#within(tellMs, this.notify("notifications/cancelled", { requestId: id }));
    const late = onLate === undefined ? undefined : await this.#within(lateMs, answer);
    if (late !== undefined) await onLate?.(late);
    // Only now, lest the server takes the closing for an accident.
    stop.abort();
  }

  /** What comes within this time, if anything does. */
  async #within(ms: number, promise: Promise<unknown>): Promise<unknown> {
    const over = Promise.withResolvers<undefined>();
    const stopClock = systemClock.after(ms, () => over.resolve(undefined));
    const outcome = await Promise.race([promise, over.promise]).catch(() => undefined);
    stopClock();
    return outcome;
  }

  #receive(message: Message): void {
    const { id, method, params = {} } = message;
    if (method === undefined) {
      const waiting = typeof id === "number" ? this.#waiting.get(id) : undefined;
      if (message.error !== undefined) waiting?.reject(new ServerError(message.error));
      else if (isObject(message.result)) waiting?.resolve(message.result);
      else waiting?.reject(new RequestError("request", `Asked for ${waiting.method}, the server answered with something that is no result.`));
    } else if (id === undefined || id === null) {
      if (method === "notifications/cancelled") this.#asked.delete(fieldsOf(params).requestId as string);
      this.#events.onNotification(method, params);
    } else void this.#answer(id, method, params);
  }

  async #answer(id: string | number, method: string, params: Json): Promise<void> {
    this.#asked.add(id);
    const result = await this.#events.onRequest(method, params);
    const reply: Message = result === undefined ? { id, error: { code: -32601, message: "Method not found" } } : { id, result };
    // A question that was taken back wants no answer.
    if (this.#asked.delete(id) && this.#why === undefined) await this.link.send(reply).catch(() => undefined);
  }

  #finish(why: ConnectionError): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    for (const waiting of this.#waiting.values()) waiting.reject(why);
    this.#closed.resolve(why);
  }
}
