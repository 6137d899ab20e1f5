import type { Clock } from "../../clock.ts";
import { isStoreError } from "../../errors.ts";
import { createId } from "../../ids.ts";
import type { Logger } from "../../log.ts";
import {
  endedLetter,
  type KeptSession,
  type Letter,
  type NewSession,
  type SessionNotes,
  type SharedSessions,
} from "../../mcp/shared.ts";
import type { Message } from "../../wire/message.ts";

/**
 * What servers on one store tell each other about a session.
 *
 * A client's requests reach any of them, and each goes on with the session by itself, from what is kept of it. But an
 * answer to a question, or a word that takes a request back, is for the one that asked, or works; and what is said by
 * nobody's request leaves by the one that holds the stream for it.
 */
export type News =
  /** What the client said, for whoever knows what it is about. */
  | { readonly kind: "heard"; readonly message: Message }
  /** To be sent on the session's own stream, which you hold. */
  | { readonly kind: "say"; readonly message: Message }
  /** That stream is held by `by` from now on, or no longer. */
  | { readonly kind: "stream"; readonly by: string; readonly isOpen: boolean }
  /** A client that was yours is here and wants its events, after this one, by this line. */
  | { readonly kind: "wanted"; readonly line: string; readonly lastEventId: string | undefined }
  /** Events for it; the first and the last of them are marked. */
  | { readonly kind: "events"; readonly line: string; readonly text: string; readonly isLast?: boolean }
  | { readonly kind: "refused"; readonly line: string; readonly status: number; readonly why: string }
  /** The client has hung up, or has everything. */
  | { readonly kind: "over"; readonly line: string; readonly isBroken: boolean };

interface PostOptions {
  readonly open: () => Promise<SharedSessions>;
  readonly onNews: (sessionId: string, news: News, from: string) => void;
  /** A session has ended elsewhere. */
  readonly onEnded: (sessionId: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/** No client has its answer from one server, and is at the next with another request, in less. */
const freshMs = 2;
/** How often it is said that this server is there, at least, while sessions begin. */
const joinEveryMs = 5 * 60_000;

/** One server's part of it. Where the store fails, sessions go on here alone. */
export class SessionPost {
  /** Names this server to the others; part of the ids of its streams. */
  readonly node = createId().slice(0, 13);
  readonly #options: PostOptions;
  #shared: SharedSessions | undefined;
  #stopListening: (() => void) | undefined;
  #isClosed = false;
  #caughtUpAt = Number.NEGATIVE_INFINITY;
  #joinedAt = Number.NEGATIVE_INFINITY;

  constructor(options: PostOptions) {
    this.#options = options;
  }

  /** Opened when the first session begins, or comes here. */
  async #open(): Promise<SharedSessions> {
    const shared = this.#shared ?? (await this.#options.open());
    if (this.#shared === undefined && !this.#isClosed) {
      this.#shared = shared;
      this.#stopListening = shared.onLetter(this.node, (letter) => this.#read(letter));
    }
    const now = this.#options.clock.monotonic();
    if (now - this.#joinedAt > joinEveryMs) await this.#join(shared, now);
    return shared;
  }

  async #join(shared: SharedSessions, now: number): Promise<void> {
    this.#joinedAt = now;
    await shared.join(this.node);
  }

  /** False for a server that is certainly gone. */
  async isThere(node: string): Promise<boolean> {
    return await (await this.#open()).isThere(node);
  }

  /** What others have written by now is heard. */
  catchUp(): void {
    this.#caughtUpAt = this.#options.clock.monotonic();
    this.#shared?.catchUp();
  }

  /** The same, for every request: however many there are, it costs next to nothing. */
  catchUpUnlessJustNow(): void {
    if (this.#options.clock.monotonic() - this.#caughtUpAt >= freshMs) this.catchUp();
  }

  watchClosely(isWaiting: boolean): void {
    this.#shared?.watchClosely(isWaiting);
  }

  /** Never rejects: whom it does not reach misses what a server that is gone would miss. */
  async tell(sessionId: string, news: News, to?: string): Promise<void> {
    await this.#quietly((shared) => shared.post([this.#toLetter(sessionId, news, to)]));
  }

  /** Keeps notes of a session, and tells all others. Never rejects. */
  async note(sessionId: string, notes: SessionNotes, news: News): Promise<void> {
    await this.#quietly((shared) => shared.note(notes, this.#toLetter(sessionId, news)));
  }

  /** These were used here; and this server is there. */
  async touch(used: readonly { readonly sessionId: string; readonly agoMs: number }[]): Promise<void> {
    await this.#quietly((shared) => shared.touch(used));
    await this.#quietly((shared) => this.#join(shared, this.#options.clock.monotonic()));
    await this.#quietly((shared) => shared.sweep());
  }

  /** Keeps a session that has begun here; false where its caller has too many. Throws what is wrong with the store. */
  async keep(session: NewSession, most: number): Promise<boolean> {
    return await (await this.#open()).keep(session, most, this.node);
  }

  async find(caller: string, sessionId: string): Promise<KeptSession | undefined> {
    return await (await this.#open()).find(caller, sessionId);
  }

  async end(sessionId: string): Promise<void> {
    await this.#quietly((shared) => shared.end(sessionId, this.node));
  }

  /** Others no longer count on this server. */
  async leave(): Promise<void> {
    await this.#quietly((shared) => shared.leave(this.node));
    await this.#quietly((shared) => shared.sweep());
    this.close();
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening?.();
    this.#shared = undefined;
  }

  async #quietly(act: (shared: SharedSessions) => Promise<unknown>): Promise<void> {
    try {
      if (this.#shared !== undefined) await act(this.#shared);
    } catch (error) {
      // What is wrong with the store, the store has said.
      if (!isStoreError(error)) this.#options.log.error("a session could not be shared", { error });
    }
  }

  #toLetter(sessionId: string, news: News, to?: string): Letter {
    return { sessionId, from: this.node, to, text: JSON.stringify(news) };
  }

  /** Must not throw: it is called by timers. */
  #read({ sessionId, from, text }: Letter): void {
    if (text === endedLetter) return void this.#options.onEnded(sessionId);
    try {
      this.#options.onNews(sessionId, JSON.parse(text) as News, from);
    } catch (error) {
      this.#options.log.error("what another server said of a session was not understood", { error });
    }
  }
}
