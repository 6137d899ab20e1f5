import { type HttpLink, openHttp, type StreamMark } from "../client/connection/http-link.ts";
import { orAborted } from "../client/connection/or-aborted.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Id } from "../wire/in-flight.ts";
import { fieldsOf, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import type { SendOptions } from "../wire/peer.ts";
import { ConnectionError, cut } from "../wire/peer-errors.ts";
import { OpenQuestions } from "./open-questions.ts";
import { isLooking, withPauses } from "./send-again.ts";
import type { SessionMark, UpstreamEvents, UpstreamLink, UrlAddress } from "./upstream-link.ts";

/**
 * Streamable HTTP of every revision, across sessions that the server forgets: a request that was refused for that is
 * sent once more in a new session. Nothing is sent again that may have been worked on.
 */

/** One session of the server's, or none where it has none. */
interface Session {
  readonly link: HttpLink;
  isLost: boolean;
  /** Messages of ours that are under way in it. */
  pending: number;
}

export class HttpUpstream implements UpstreamLink {
  readonly kind = "url";
  readonly #address: UrlAddress;
  readonly #events: UpstreamEvents;
  readonly #clock: Clock;
  /** Which session a request of ours is in, and what ends its stream. */
  readonly #requests = new Map<Id, { session: Session; readonly stop: AbortController }>();
  readonly #questions: OpenQuestions<Session>;
  readonly #closing = new AbortController();
  #ended: Promise<void> | undefined;
  #current: Session;
  #hello: Message | undefined;
  #renewing: Promise<void> | undefined;
  #keepers = 0;

  constructor(address: UrlAddress, events: UpstreamEvents, clock: Clock = systemClock) {
    this.#address = address;
    this.#events = events;
    this.#clock = clock;
    this.#questions = new OpenQuestions((id, mark) => this.#events.onMark?.(id, mark));
    this.#current = this.#open();
  }

  async begin(revision: string): Promise<void> {
    await this.#current.link.begin(revision);
  }

  async send(message: Message, options: SendOptions = {}): Promise<void> {
    if (this.#closing.signal.aborted)
      throw new ConnectionError("The connection is closed.", { isUnsent: true, isPassing: false });
    const { id, method } = message;
    if (id == null || method === undefined) {
      await this.#sendIn(this.#sessionOf(message), message, options);
      if (id != null) this.#questions.settle(id);
      return;
    }
    if (method === "initialize") this.#hello = message;
    await this.#following(id, options.signal, (signal) =>
      withPauses(message, { clock: this.#clock, signal }, () => this.#try(message, { ...options, signal })),
    );
  }

  resume(message: Message, mark: StreamMark): Promise<void> {
    return this.#inSessionOf(mark, message, (link, signal) => link.resume(message, mark.lastEventId, { signal }));
  }

  get session(): SessionMark | undefined {
    return this.#current.link.session;
  }

  sendIn(mark: SessionMark, message: Message): Promise<void> {
    return this.#inSessionOf(mark, message, (link, signal) => link.send(message, { signal, isFresh: true }));
  }

  keepSession(): () => void {
    this.#keepers++;
    let isKept = true;
    return () => {
      if (isKept) this.#keepers--;
      isKept = false;
    };
  }

  drop(id: Id): void {
    this.#requests.get(id)?.stop.abort(new ConnectionError("The request was taken back.", { isPassing: false }));
  }

  close(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    this.#closing.abort(new ConnectionError("The connection is closed.", { isPassing: false }));
    const sessions = new Set([this.#current, ...[...this.#requests.values()].map(({ session }) => session)]);
    await Promise.all([...sessions].map(({ link }) => link.close({ keepsSession: this.#keepers > 0 })));
  }

  /** In one that an earlier link has begun, and that is not ours to end. */
  async #inSessionOf(
    mark: SessionMark,
    { id }: Message,
    act: (link: HttpLink, signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    if (id == null) return;
    const session = this.#open(mark);
    try {
      await this.#following(id, undefined, (signal) => act(session.link, signal), session);
    } finally {
      await session.link.close();
    }
  }

  /** Knows a request by its id while it is under way. */
  async #following(
    id: Id,
    signal: AbortSignal | undefined,
    act: (signal: AbortSignal) => Promise<void>,
    session = this.#current,
  ): Promise<void> {
    const stop = new AbortController();
    const signals = [stop.signal, this.#closing.signal, ...(signal === undefined ? [] : [signal])];
    const request = { session, stop };
    this.#requests.set(id, request);
    try {
      await act(AbortSignal.any(signals));
    } finally {
      if (this.#requests.get(id) === request) this.#requests.delete(id);
      this.#questions.end(id);
    }
  }

  /** Once more where the session is lost: then nothing was done. */
  async #try(message: Message, options: SendOptions & { readonly signal: AbortSignal }): Promise<void> {
    const session = this.#current;
    try {
      await this.#sendIn(session, message, options);
    } catch (error) {
      const isLost = session.isLost && error instanceof ConnectionError && error.isUnsent;
      if (!isLost || options.signal.aborted || message.method === "initialize") throw error;
      await orAborted(this.#renew(session, error), options.signal);
      await this.#sendIn(this.#current, message, options);
    }
  }

  async #sendIn(session: Session, message: Message, options: SendOptions): Promise<void> {
    // A connection that was kept open may be gone just as a request leaves, and then nobody knows whether it arrived.
    const isFresh = options.isFresh ?? (message.id != null && !isLooking(message));
    const request = this.#requests.get(message.id as Id);
    if (request !== undefined && message.method !== undefined) request.session = session;
    session.pending++;
    try {
      await session.link.send(message, { ...options, isFresh }).catch(async (error: unknown) => {
        const isGone = error instanceof ConnectionError && error.status === undefined && error.isPassing;
        if (isFresh || !isGone || options.signal?.aborted === true) throw error;
        await session.link.send(message, { ...options, isFresh: true });
      });
    } finally {
      session.pending--;
      this.#retire(session);
    }
  }

  /** A message that belongs to another one goes where that one is. */
  #sessionOf({ id, method, params }: Message): Session {
    if (method === "notifications/cancelled")
      return this.#requests.get(params?.requestId as Id)?.session ?? this.#current;
    if (method !== undefined || id == null) return this.#current;
    return this.#questions.placeOf(id) ?? this.#current;
  }

  /** Of all who find the session lost, the first begins another one, and the rest wait for it. */
  async #renew(lost: Session, why: ConnectionError): Promise<void> {
    if (this.#current !== lost) return;
    this.#renewing ??= this.#beginAgain(lost, why).finally(() => (this.#renewing = undefined));
    await this.#renewing;
  }

  async #beginAgain(lost: Session, why: ConnectionError): Promise<void> {
    const hello = this.#hello;
    if (hello === undefined) throw why;
    const answered = Promise.withResolvers<Message>();
    const fresh = this.#open(undefined, (message) => {
      const isAnswer = message.method === undefined && message.id === hello.id;
      if (isAnswer) answered.resolve(message);
      return isAnswer;
    });
    try {
      await fresh.link.send(hello, { signal: this.#closing.signal, isFresh: true });
      const { result, error } = await answered.promise;
      const revision = textOf(fieldsOf(result).protocolVersion);
      if (error !== undefined || revision === undefined)
        throw new ConnectionError(cut(error?.message ?? "it answered initialize with something that is no result"));
      await fresh.link.begin(revision);
    } catch (cause) {
      await fresh.link.close();
      const words = (cause as Error).message;
      throw new ConnectionError(`${why.message}, and a new one cannot be begun: ${words}`, { isUnsent: true, cause });
    }
    this.#current = fresh;
    this.#retire(lost);
    this.#events.onRenewed?.();
  }

  /** Closes a session that is lost once nothing is under way in it: an answer may still come. */
  #retire(session: Session): void {
    if (session !== this.#current && session.isLost && session.pending === 0) void session.link.close();
  }

  #open(known?: SessionMark, takes: (message: Message) => boolean = () => false): Session {
    const { url, headers, authorizer } = this.#address;
    const link = openHttp(
      { url, headers },
      {
        onMessage: (message, about) => {
          if (takes(message)) return;
          this.#questions.heard(message, about, session);
          this.#events.onMessage(message, about);
        },
        onMark: (id, mark) => this.#questions.marked(id, mark),
        // Which is said when a session is lost.
        onClose: () => {
          session.isLost = true;
        },
      },
      { authorizer, session: known, clock: this.#clock },
    );
    const session: Session = { link, isLost: false, pending: 0 };
    return session;
  }
}
