import { type FSWatcher, statSync, watch } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { isInside } from "../_pack/paths.ts";
import { fromKey, toKey } from "./_tracked.ts";

/** What one save of an editor, or one copy, sets off is taken together. */
const settleMs = 100;

/**
 * Folders that the system watches for us, one by one: a recursive watch would need a watch for every file on Linux. It
 * tells which folders changed, not what changed in them; who asks compares them with what is known.
 */
export class WatchedFolders {
  readonly #watchers = new Map<string, { readonly watcher: FSWatcher; readonly identity: string }>();
  readonly #onError: (folder: Buffer, error: unknown) => void;
  #dirty = new Set<string>();
  #wake: () => void = () => {};

  constructor(onError: (folder: Buffer, error: unknown) => void) {
    this.#onError = onError;
  }

  get count(): number {
    return this.#watchers.size;
  }

  has(folder: Buffer): boolean {
    return this.#watchers.has(toKey(folder));
  }

  add(folder: Buffer): void {
    const key = toKey(folder);
    if (this.#watchers.has(key)) return;
    try {
      const identity = identityOf(folder);
      const watcher = watch(folder, () => this.#mark(key));
      // What goes wrong with a watch shows when its folder is looked at.
      watcher.on("error", () => this.#mark(key));
      this.#watchers.set(key, { watcher, identity });
    } catch (error) {
      this.#onError(folder, error);
    }
  }

  /** True when another folder has taken the place of the one that is watched. */
  isReplaced(folder: Buffer): boolean {
    const known = this.#watchers.get(toKey(folder));
    return known !== undefined && known.identity !== identityOf(folder);
  }

  /** Lets go of a folder and all below it. */
  remove(folder: Buffer): void {
    for (const [key, { watcher }] of this.#watchers) {
      if (!isInside(fromKey(key), folder)) continue;
      watcher.close();
      this.#watchers.delete(key);
    }
  }

  /** The folders that changed since the last time, shortest first; none when nothing changed for so long. */
  async next(patienceMs: number, signal: AbortSignal): Promise<Buffer[]> {
    if (this.#dirty.size === 0) await this.#waitForChange(patienceMs, signal);
    if (this.#dirty.size > 0) await wait(settleMs, undefined, { signal });
    const dirty = [...this.#dirty].sort((a, b) => a.length - b.length);
    this.#dirty = new Set();
    return dirty.map(fromKey);
  }

  close(): void {
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  async #waitForChange(patienceMs: number, signal: AbortSignal): Promise<void> {
    const changed = new AbortController();
    this.#wake = () => changed.abort();
    const isOver = wait(patienceMs, undefined, { signal: AbortSignal.any([signal, changed.signal]) });
    await isOver.catch(() => signal.throwIfAborted());
  }

  #mark(key: string): void {
    this.#dirty.add(key);
    this.#wake();
  }
}

/** Numbers of inodes are used again, times of birth are not. */
function identityOf(folder: Buffer): string {
  const stat = statSync(folder, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.ino}-${stat.birthtimeNs}`;
}
