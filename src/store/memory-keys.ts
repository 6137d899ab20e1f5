import type { KeyList, KeyStore, NewKey, StoredKey } from "../auth/key-store.ts";
import { hourOf } from "./key-rows.ts";

/** API keys in the memory of one process. */
export class MemoryKeys implements KeyStore {
  readonly #now: () => number;
  /** The keys of each project by name, oldest first. */
  readonly #projects = new Map<string, Map<string, StoredKey>>();

  constructor(now: () => number) {
    this.#now = now;
  }

  async add({ project, expiresInMs, ...key }: NewKey): Promise<boolean> {
    const keys = this.#keysOf(project);
    if (keys.has(key.name)) return false;
    const createdAt = this.#now();
    const { id, name, hash, scopes, commands } = key;
    keys.set(name, {
      ...{ id, name, hash, createdAt },
      ...{ scopes: [...scopes], commands: [...commands] },
      ...(expiresInMs !== undefined && { expiresAt: createdAt + expiresInMs }),
    });
    return true;
  }

  async list(project: string): Promise<KeyList> {
    return { now: this.#now(), keys: [...this.#keysOf(project).values()] };
  }

  async rotate(
    project: string,
    name: string,
    { hash, overlapMs }: { readonly hash: string; readonly overlapMs: number },
  ): Promise<StoredKey | undefined> {
    const known = this.#keysOf(project).get(name);
    if (known === undefined) return undefined;
    const { earlier: _earlier, ...key } = known;
    const earlier = overlapMs > 0 ? { hash: key.hash, until: this.#now() + overlapMs } : undefined;
    return this.#set(project, { ...key, hash, ...(earlier !== undefined && { earlier }) });
  }

  async revoke(project: string, name: string): Promise<boolean> {
    return this.#keysOf(project).delete(name);
  }

  async noteUse(project: string, id: string): Promise<void> {
    const key = [...this.#keysOf(project).values()].find((one) => one.id === id);
    if (key !== undefined) this.#set(project, { ...key, usedAt: Math.max(hourOf(this.#now()), key.usedAt ?? 0) });
  }

  #keysOf(project: string): Map<string, StoredKey> {
    const known = this.#projects.get(project) ?? new Map<string, StoredKey>();
    this.#projects.set(project, known);
    return known;
  }

  #set(project: string, key: StoredKey): StoredKey {
    this.#keysOf(project).set(key.name, key);
    return key;
  }
}
