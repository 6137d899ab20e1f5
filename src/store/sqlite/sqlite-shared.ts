import type { KeyStore } from "../../auth/key-store.ts";
import { createSecret } from "../../ids.ts";
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
import { SqliteKeys } from "./sqlite-keys.ts";
import type { TaskFile } from "./task-file.ts";

interface SharedParts {
  readonly file: TaskFile;
  readonly now: () => number;
  /** Calls back when another process may have changed something. */
  readonly onChange: (listener: () => void) => () => void;
  readonly watchClosely: (isWaiting: boolean) => void;
}

interface SessionRow {
  readonly session_id: string;
  readonly caller: string;
  readonly greeting: string;
  readonly notes: string;
  readonly silence_ms: number;
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

/** What servers share beside the tasks, in the tasks' file. */
export class SqliteShared implements SharedState, SharedSessions {
  readonly #parts: SharedParts;
  readonly #file: TaskFile;
  readonly keys: KeyStore;
  readonly #readers = new Set<Reader>();
  #stopListening: (() => void) | undefined;
  #secret: string | undefined;
  /** The last letter that was read; undefined before the file is used. */
  #seen: number | undefined;
  #version: number | undefined;

  constructor(parts: SharedParts) {
    this.#parts = parts;
    this.#file = parts.file;
    this.keys = new SqliteKeys(parts.file, parts.now);
  }

  get sessions(): SharedSessions {
    return this;
  }

  async secret(): Promise<string> {
    this.#secret ??= await this.#file.durably(() => {
      this.#file.run("makeSecret", { secret: createSecret() });
      return this.#file.first<{ secret: string }>("readSecret", {})?.secret as string;
    });
    return this.#secret;
  }

  async useOnce(mark: string, forMs: number): Promise<boolean> {
    const now = this.#parts.now();
    const use = () => {
      this.#file.run("sweepMarks", { now });
      return this.#file.run("useOnce", { mark, until: now + forMs }) > 0;
    };
    return await this.#file.quickly(() => this.#file.transaction(use));
  }

  async join(node: string): Promise<void> {
    await this.#file.quickly(() => this.#file.run("joinNode", { node, now: this.#parts.now() }));
  }

  async leave(node: string): Promise<void> {
    await this.#file.quickly(() => this.#file.run("leaveNode", { node }));
  }

  async isThere(node: string): Promise<boolean> {
    const before = this.#parts.now() - nodeLivesMs;
    return (await this.#file.read(() => this.#file.first("findNode", { node, before }))) !== undefined;
  }

  async keep({ sessionId, caller, greeting, silenceMs }: NewSession, most: number, from: string): Promise<boolean> {
    await this.#begin();
    const now = this.#parts.now();
    const make = () => {
      const count = this.#file.first<{ count: number }>("countSessions", { caller })?.count ?? 0;
      if (count >= most) {
        const ended = this.#file.all<SessionRow>("endIdle", { caller, count: count + 1 - most });
        if (ended.length === 0) return false;
        for (const { session_id } of ended) this.#write({ sessionId: session_id, from, text: endedLetter });
      }
      return this.#file.run("keepSession", { sessionId, caller, greeting, silenceMs, now }) > 0;
    };
    return await this.#file.quickly(() => this.#file.transaction(make));
  }

  async find(caller: string, sessionId: string): Promise<KeptSession | undefined> {
    await this.#begin();
    // What is written after this look is told by a letter.
    this.catchUp();
    const row = await this.#file.read(() =>
      this.#file.first<SessionRow>("findSession", { caller, sessionId, now: this.#parts.now() }),
    );
    if (row === undefined) return undefined;
    const { greeting, silence_ms: silenceMs } = row;
    return { sessionId, caller, greeting, silenceMs, notes: JSON.parse(row.notes) as SessionNotes };
  }

  async note(notes: SessionNotes, letter: Letter): Promise<void> {
    const values = { sessionId: letter.sessionId, notes: JSON.stringify(notes), maxBytes: maxNoteBytes };
    const write = () => {
      this.#file.run("noteSession", values);
      this.#write(letter);
    };
    await this.#file.quickly(() => this.#file.transaction(write));
  }

  async touch(used: readonly { readonly sessionId: string; readonly agoMs: number }[]): Promise<void> {
    if (used.length === 0) return;
    const now = this.#parts.now();
    const touch = () => {
      for (const { sessionId, agoMs } of used)
        this.#file.run("touchSession", { sessionId, usedAt: Math.floor(now - agoMs) });
    };
    await this.#file.quickly(() => this.#file.transaction(touch));
  }

  async end(sessionId: string, from: string): Promise<boolean> {
    const end = () => {
      const isEnded = this.#file.run("endSession", { sessionId }) > 0;
      if (isEnded) this.#write({ sessionId, from, text: endedLetter });
      return isEnded;
    };
    return await this.#file.quickly(() => this.#file.transaction(end));
  }

  async sweep(): Promise<void> {
    const now = this.#parts.now();
    const sweep = () => {
      this.#file.run("sweepSessions", { now });
      this.#file.run("sweepLetters", { before: now - letterLivesMs });
      this.#file.run("sweepNodes", { before: now - nodeLivesMs });
    };
    await this.#file.quickly(() => this.#file.transaction(sweep));
  }

  async post(letters: readonly Letter[]): Promise<void> {
    if (letters.length === 0) return;
    await this.#file.quickly(() => this.#file.transaction(() => letters.forEach((letter) => void this.#write(letter))));
  }

  onLetter(node: string, listener: (letter: Letter) => void): () => void {
    const reader = { node, listener };
    this.#readers.add(reader);
    this.#stopListening ??= this.#parts.onChange(() => this.catchUp());
    return () => {
      this.#readers.delete(reader);
      if (this.#readers.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = undefined;
    };
  }

  /** Must not throw: it is called by timers. Whoever reads or writes next meets the same trouble. */
  catchUp(): void {
    if (this.#seen === undefined || this.#file.isClosed) return;
    try {
      const version = this.#file.readVersion();
      if (version === this.#version) return;
      this.#version = version;
      this.#read(this.#file.all<LetterRow>("lettersAfter", { after: this.#seen }));
    } catch {
      this.#version = undefined;
    }
  }

  watchClosely(isWaiting: boolean): void {
    this.#parts.watchClosely(isWaiting);
  }

  /** Nobody here has known a session before this, so earlier letters were not for us. */
  async #begin(): Promise<void> {
    this.#seen ??= await this.#file.read(() => this.#file.first<{ number: number }>("lastLetter", {})?.number ?? 0);
  }

  #read(rows: readonly LetterRow[]): void {
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
    // What was for nobody else makes room for what comes next.
    for (const node of own)
      void this.#file.quickly(() => this.#file.run("dropLetters", { node, last })).catch(noMatter);
  }

  /** Part of a transaction. */
  #write({ sessionId, from, to, text }: Letter): void {
    // That a session has ended is the last that is said of it.
    const { count: maxCount, bytes: maxBytes } = text === endedLetter ? unbounded : maxLetters;
    const now = this.#parts.now();
    this.#file.run("postLetter", { sessionId, from, to: to ?? null, text, now, maxCount, maxBytes });
  }
}

const unbounded = { count: Number.MAX_SAFE_INTEGER, bytes: Number.MAX_SAFE_INTEGER };

/** It is removed with what is too old, then. */
function noMatter(): void {}
