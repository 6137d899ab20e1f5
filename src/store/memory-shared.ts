import type { KeyStore } from "../auth/key-store.ts";
import { createSecret } from "../ids.ts";
import {
  endedLetter,
  type KeptSession,
  type Letter,
  maxNoteBytes,
  type NewSession,
  nodeLivesMs,
  type SessionNotes,
  type SharedSessions,
  type SharedState,
  streamNote,
} from "../task/shared-state.ts";
import { MemoryKeys } from "./memory-keys.ts";

interface MemorySession extends KeptSession {
  usedAt: number;
  notes: SessionNotes;
}

interface Reader {
  readonly node: string;
  readonly listener: (letter: Letter) => void;
}

/** The same in the memory of one process, for as many servers as it has. */
export class MemoryShared implements SharedState, SharedSessions {
  readonly #now: () => number;
  readonly #secret = createSecret();
  readonly #used = new Map<string, number>();
  /** Those used longest ago first. */
  readonly #sessions = new Map<string, MemorySession>();
  readonly #readers = new Set<Reader>();
  /** When each has last said that it is there. */
  readonly #nodes = new Map<string, number>();
  readonly keys: KeyStore;

  constructor(now: () => number) {
    this.#now = now;
    this.keys = new MemoryKeys(now);
  }

  get sessions(): SharedSessions {
    return this;
  }

  async secret(): Promise<string> {
    return this.#secret;
  }

  async useOnce(mark: string, forMs: number): Promise<boolean> {
    this.#forgetUsed();
    if (this.#used.has(mark)) return false;
    this.#used.set(mark, this.#now() + forMs);
    return true;
  }

  /** How many marks are remembered. */
  get remembered(): number {
    return this.#used.size;
  }

  async join(node: string): Promise<void> {
    this.#nodes.set(node, this.#now());
  }

  async leave(node: string): Promise<void> {
    this.#nodes.delete(node);
  }

  async isThere(node: string): Promise<boolean> {
    return this.#now() - (this.#nodes.get(node) ?? Number.NEGATIVE_INFINITY) < nodeLivesMs;
  }

  async keep(session: NewSession, most: number, from: string): Promise<boolean> {
    const own = [...this.#sessions.values()].filter(({ caller }) => caller === session.caller);
    if (own.length >= most) {
      const idle = own.filter((one) => !isHeld(one)).slice(0, own.length + 1 - most);
      if (idle.length === 0) return false;
      for (const { sessionId } of idle) await this.end(sessionId, from);
    }
    this.#sessions.set(session.sessionId, { ...session, notes: {}, usedAt: this.#now() });
    return true;
  }

  async find(caller: string, sessionId: string): Promise<KeptSession | undefined> {
    const found = this.#sessions.get(sessionId);
    if (found === undefined || found.caller !== caller || this.#isOver(found)) return undefined;
    const { usedAt: _usedAt, ...kept } = found;
    return kept;
  }

  async note(notes: SessionNotes, letter: Letter): Promise<void> {
    const session = this.#sessions.get(letter.sessionId);
    if (session === undefined) return;
    const kept = Object.entries({ ...session.notes, ...notes }).filter(([, value]) => value != null);
    if (JSON.stringify(Object.fromEntries(kept)).length <= maxNoteBytes) session.notes = Object.fromEntries(kept);
    await this.post([letter]);
  }

  async touch(used: readonly { readonly sessionId: string; readonly agoMs: number }[]): Promise<void> {
    for (const { sessionId, agoMs } of used.toSorted((a, b) => b.agoMs - a.agoMs)) {
      const session = this.#sessions.get(sessionId);
      const usedAt = this.#now() - agoMs;
      if (session === undefined || session.usedAt >= usedAt) continue;
      session.usedAt = usedAt;
      this.#sessions.delete(sessionId);
      this.#sessions.set(sessionId, session);
    }
  }

  async end(sessionId: string, from: string): Promise<boolean> {
    if (!this.#sessions.delete(sessionId)) return false;
    await this.post([{ sessionId, from, text: endedLetter }]);
    return true;
  }

  async sweep(): Promise<void> {
    this.#forgetUsed();
    for (const node of this.#nodes.keys()) if (!(await this.isThere(node))) this.#nodes.delete(node);
    for (const session of this.#sessions.values()) if (this.#isOver(session)) this.#sessions.delete(session.sessionId);
  }

  /** Read at once, so none ever waits. */
  async post(letters: readonly Letter[]): Promise<void> {
    for (const letter of letters)
      for (const { node, listener } of this.#readers)
        if (letter.from !== node && (letter.to ?? node) === node) listener(letter);
  }

  onLetter(node: string, listener: (letter: Letter) => void): () => void {
    const reader = { node, listener };
    this.#readers.add(reader);
    return () => void this.#readers.delete(reader);
  }

  catchUp(): void {}

  watchClosely(): void {}

  #isOver({ usedAt, silenceMs }: MemorySession): boolean {
    return this.#now() - usedAt >= silenceMs;
  }

  #forgetUsed(): void {
    const now = this.#now();
    for (const [mark, until] of this.#used) if (until <= now) this.#used.delete(mark);
  }
}

function isHeld({ notes }: MemorySession): boolean {
  return Object.keys(notes).some((name) => name.startsWith(streamNote));
}
