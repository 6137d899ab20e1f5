import type { KeyStore } from "../../auth/key-store.ts";
import { createId, createSecret } from "../../ids.ts";
import {
  endedLetter,
  type KeptSession,
  type Letter,
  letterLivesMs,
  maxLetters,
  maxNoteBytes,
  type NewSession,
  nodeLivesMs,
  type SessionNotes,
  type SharedSessions,
  type SharedState,
} from "../../task/shared-state.ts";
import type { Database } from "./database.ts";
import { PostgresKeys } from "./postgres-keys.ts";

/** By this name nodes tell each other that a letter was written, as by an id that a task has changed. */
const lettersTopic = "letters";

const mostUnread = { maxCount: maxLetters.count, maxBytes: maxLetters.bytes };
/** Letters may be large, and there may be many after a connection was lost. */
const readAtOnce = 200;

interface SharedParts {
  readonly database: Database;
  /** Tells the other nodes that something of this name has changed. */
  readonly tell: (name: string) => void;
  /** Calls back when it may have changed. */
  readonly onChange: (listener: () => void, name: string) => () => void;
  readonly watchClosely: (isWaiting: boolean) => void;
}

interface SessionRow {
  readonly greeting: string;
  readonly silence_ms: number;
  readonly names: readonly string[];
  readonly notes: readonly string[];
}

interface LetterRow {
  readonly number: number;
  readonly session_id: string;
  readonly from_node: string;
  readonly to_node: string | null;
  readonly text: string;
}

interface Reader {
  readonly node: string;
  readonly listener: (letter: Letter) => void;
}

/** What nodes share beside the tasks, in the tasks' schema. */
export class PostgresShared implements SharedState, SharedSessions {
  readonly #parts: SharedParts;
  readonly #database: Database;
  readonly keys: KeyStore;
  readonly #readers = new Set<Reader>();
  #stopListening: (() => void) | undefined;
  #secret: string | undefined;
  /** The last letter that was read; undefined before anybody here knows a session. */
  #seen: number | undefined;
  #reading: Promise<void> | undefined;
  #isAgain = false;

  constructor(parts: SharedParts) {
    this.#parts = parts;
    this.#database = parts.database;
    this.keys = new PostgresKeys(parts.database);
  }

  get sessions(): SharedSessions {
    return this;
  }

  async secret(): Promise<string> {
    if (this.#secret !== undefined) return this.#secret;
    await this.#database.query("makeSecret", { secret: createSecret() });
    const [row] = await this.#database.query<{ secret: string }>("readSecret", {});
    this.#secret = row?.secret as string;
    return this.#secret;
  }

  async useOnce(mark: string, forMs: number): Promise<boolean> {
    await this.#database.query("sweepMarks", {});
    return (await this.#database.query("useOnce", { mark, forMs, useId: createId() })).length > 0;
  }

  async join(node: string): Promise<void> {
    await this.#database.query("joinNode", { node });
  }

  async leave(node: string): Promise<void> {
    await this.#database.query("leaveNode", { node });
  }

  async isThere(node: string): Promise<boolean> {
    return (await this.#database.query("findNode", { node, livesMs: nodeLivesMs })).length > 0;
  }

  async keep(session: NewSession, most: number, from: string): Promise<boolean> {
    await this.#begin();
    const { sessionId, caller, greeting, silenceMs } = session;
    const values = { sessionId, caller, greeting, silenceMs, most, from, ended: endedLetter };
    const rows = await this.#database.query("keepSession", values);
    this.#parts.tell(lettersTopic);
    return rows.length > 0;
  }

  async find(caller: string, sessionId: string): Promise<KeptSession | undefined> {
    await this.#begin();
    // What is written after this look is told by a letter.
    await this.#catchUp();
    const [row] = await this.#database.query<SessionRow>("findSession", { caller, sessionId });
    if (row === undefined) return undefined;
    const notes = row.names.map((name, at) => [name, JSON.parse(row.notes[at] ?? "null") as unknown]);
    const { greeting, silence_ms: silenceMs } = row;
    return { sessionId, caller, greeting, silenceMs, notes: Object.fromEntries(notes) as SessionNotes };
  }

  async note(notes: SessionNotes, letter: Letter): Promise<void> {
    const entries = Object.entries(notes).filter(([, value]) => value !== undefined);
    const kept = entries.filter(([, value]) => value !== null).map(([name, value]) => [name, JSON.stringify(value)]);
    const { sessionId, from, to, text } = letter;
    await this.#database.query("noteSession", {
      sessionId,
      gone: entries.filter(([, value]) => value === null).map(([name]) => name),
      names: kept.map(([name]) => name as string),
      notes: kept.map(([, value]) => value as string),
      bytes: kept.reduce((sum, [name = "", value = ""]) => sum + name.length + value.length, 0),
      maxNoteBytes,
      letterId: createId(),
      from,
      to: to ?? null,
      text,
      ...mostUnread,
    });
    this.#parts.tell(lettersTopic);
  }

  async touch(used: readonly { readonly sessionId: string; readonly agoMs: number }[]): Promise<void> {
    if (used.length === 0) return;
    const sessionIds = used.map(({ sessionId }) => sessionId);
    await this.#database.query("touchSessions", { sessionIds, agos: used.map(({ agoMs }) => Math.ceil(agoMs)) });
  }

  async end(sessionId: string, from: string): Promise<boolean> {
    const rows = await this.#database.query("endSession", { sessionId, from, ended: endedLetter });
    this.#parts.tell(lettersTopic);
    return rows.length > 0;
  }

  async sweep(): Promise<void> {
    await this.#database.query("sweepSessions", {});
    await this.#database.query("sweepLetters", { livesMs: letterLivesMs });
    await this.#database.query("sweepNodes", { livesMs: nodeLivesMs });
  }

  async post(letters: readonly Letter[]): Promise<void> {
    if (letters.length === 0) return;
    await this.#database.query("postLetters", {
      ids: letters.map(() => createId()),
      sessionIds: letters.map(({ sessionId }) => sessionId),
      froms: letters.map(({ from }) => from),
      tos: letters.map(({ to = "" }) => to),
      texts: letters.map(({ text }) => text),
      ...mostUnread,
    });
    this.#parts.tell(lettersTopic);
  }

  onLetter(node: string, listener: (letter: Letter) => void): () => void {
    const reader = { node, listener };
    this.#readers.add(reader);
    this.#stopListening ??= this.#parts.onChange(() => void this.#catchUp(), lettersTopic);
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = undefined;
    };
  }

  /** Nothing can be asked without waiting: nodes tell each other at once, so what there is, is on its way. */
  catchUp(): void {}

  watchClosely(isWaiting: boolean): void {
    this.#parts.watchClosely(isWaiting);
  }

  /** One look at a time, and one more for whoever asked meanwhile. Never rejects: whoever writes next meets the trouble. */
  async #catchUp(): Promise<void> {
    if (this.#seen === undefined || this.#readers.size === 0 || this.#database.isClosed) return;
    if (this.#reading !== undefined) this.#isAgain = true;
    this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #readAll(): Promise<void> {
    do {
      this.#isAgain = false;
      const rows = await this.#database
        .query<LetterRow>("lettersAfter", { after: this.#seen ?? 0, limit: readAtOnce })
        .catch((): LetterRow[] => []);
      this.#hand(rows);
      this.#isAgain ||= rows.length === readAtOnce;
    } while (this.#isAgain);
  }

  /** Nobody here has known a session before this, so earlier letters were not for us. */
  async #begin(): Promise<void> {
    if (this.#seen !== undefined) return;
    const [row] = await this.#database.query<{ number: number }>("lastLetter", {});
    this.#seen ??= row?.number ?? 0;
  }

  #hand(rows: readonly LetterRow[]): void {
    const last = rows.at(-1)?.number;
    if (last === undefined) return;
    this.#seen = last;
    const own = new Set<string>();
    for (const { session_id: sessionId, from_node: from, to_node, text } of rows)
      for (const { node, listener } of this.#readers) {
        if (from === node || (to_node ?? node) !== node) continue;
        if (to_node !== null) own.add(node);
        listener({ sessionId, from, to: to_node ?? undefined, text });
      }
    // What was for nobody else makes room for what comes next; else it goes with what is too old.
    for (const node of own) void this.#database.query("dropLetters", { node, last }).catch(() => undefined);
  }
}
