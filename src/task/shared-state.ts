import type { KeyStore } from "../auth/key-store.ts";

/**
 * What all servers on one store have in common beside the tasks, so that a request may reach any of them: a secret, what
 * may be used once, and the sessions of clients before 2026-07-28. A third seam, next to the store's and the
 * dispatcher's. Time is the store's own here too.
 */
export interface SharedState {
  /** Signs what clients carry from one server to another; made once, by whoever needs it first. */
  secret(): Promise<string>;
  /** True for the first who asks, wherever; it is remembered for this long. */
  useOnce(mark: string, forMs: number): Promise<boolean>;
  readonly sessions: SharedSessions;
  readonly keys: KeyStore;
}

/** A session that has begun. */
export interface NewSession {
  readonly sessionId: string;
  /** Whose it is, and of which server: nobody else finds it. */
  readonly caller: string;
  /** What its client said of itself at the handshake, as JSON. */
  readonly greeting: string;
  /** How long it lasts without being used. */
  readonly silenceMs: number;
}

/** What else is known of a session; a name without a value is forgotten. */
export type SessionNotes = Readonly<Record<string, unknown>>;

export interface KeptSession extends NewSession {
  readonly notes: SessionNotes;
}

/** Notes of this kind say that a server holds the session's own stream: such a session is in use. */
export const streamNote = "stream:";
/** More than this many bytes of notes are not kept. */
export const maxNoteBytes = 64 * 1024;
/** What waits to be read, of one session: whoever writes more is not heard by other servers. */
export const maxLetters = { count: 1_000, bytes: 16 * 1024 * 1024 };
/** Nobody reads a letter that has lain for so long. */
export const letterLivesMs = 10 * 60_000;
/** Who has not said for so long that it is there is not. */
export const nodeLivesMs = 10 * 60_000;

/** From one server to another, or to all others, about a session. */
export interface Letter {
  readonly sessionId: string;
  readonly from: string;
  /** Absent: to all others. */
  readonly to?: string | undefined;
  readonly text: string;
}

/** What ends a session is told to all servers by a letter with this text. */
export const endedLetter = "ended";

/**
 * Sessions that any server on the store can go on with. Who knows a session already is not made to read it again: what
 * changes is told by letters.
 */
export interface SharedSessions {
  /** This server knows sessions. To be said again now and then: who is silent for `nodeLivesMs` is taken for gone. */
  join(node: string): Promise<void>;
  /** It does not any more. */
  leave(node: string): Promise<void>;
  /** Whether it may be of use to write to this one. */
  isThere(node: string): Promise<boolean>;
  /**
   * Keeps a session that has begun. Where its caller has so many, the one that was used longest ago ends for it, unless
   * a server holds its stream; false when that is the case of all.
   */
  keep(session: NewSession, most: number, from: string): Promise<boolean>;
  /** Unknown, ended, expired and somebody else's look the same. */
  find(caller: string, sessionId: string): Promise<KeptSession | undefined>;
  /** Notes and the letter that tells of them, in one write. */
  note(notes: SessionNotes, letter: Letter): Promise<void>;
  /** These were used so long ago. */
  touch(used: readonly { readonly sessionId: string; readonly agoMs: number }[]): Promise<void>;
  /** Ends one, and tells all others. False when it had ended. */
  end(sessionId: string, from: string): Promise<boolean>;
  /** Removes what has expired. */
  sweep(): Promise<void>;
  /** What is too much is left out: see `maxLetters`. */
  post(letters: readonly Letter[]): Promise<void>;
  /** Calls back with every letter to this server, or to all, that another has written from now on. */
  onLetter(node: string, listener: (letter: Letter) => void): () => void;
  /**
   * Has every listener hear what was written by now, as far as that is found out without waiting. Called before a
   * request of a session that is known, so it has to be cheap: nothing is read where nothing has changed.
   */
  catchUp(): void;
  /** Letters are looked for closely, while somebody waits for one. */
  watchClosely(isWaiting: boolean): void;
}
