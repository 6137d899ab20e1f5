import { lstatSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import type Database from "better-sqlite3";
import type { CommandContext } from "meanwhile";
import { maxRowsAtOnce, maxWriteMs, whyNotStored } from "../_pack/database.ts";
import { limitsOf } from "../_pack/limits.ts";
import { joinBytes, showName } from "../_pack/paths.ts";
import { openReach, type Reach } from "../_pack/reach.ts";
import { readDocument } from "../_pack/readers.ts";
import { reasonOf } from "../_pack/reason.ts";
import { Troubles } from "../_pack/trouble.ts";
import { countQuickly, createPace, pathOf, type WalkedFile, walkFolders } from "../_pack/walk.ts";
import { folderSkipper, isHidden } from "../transform/_skips.ts";
import { stampOf, withSource } from "../transform/_source.ts";
import { isNoteName, nameIn } from "./_names.ts";
import { type NotePart, toNote } from "./_note-parts.ts";
import { Resolver } from "./_resolve.ts";
import type { Vault } from "./_store.ts";
import { type ChangedFile, createWriter, type VaultWriter } from "./_write.ts";

/** Of a run, in percent; the rest is for the links. */
const readingShare = 80;

/** Between two writes: long enough for another process that waits to take its turn. */
const pauseMs = 3;

/** Longer notes are no notes. */
export const maxNoteBytes = 8 * 1024 * 1024;

export interface IndexCounts {
  readonly parsed: number;
  readonly unchanged: number;
  readonly removed: number;
  /** Files and folders that are closed to whoever asked. */
  readonly hidden: number;
  readonly troubles: Troubles;
}

interface Indexing extends Pick<CommandContext, "signal" | "progress" | "home" | "config"> {
  readonly reach: Reach;
}

/**
 * Brings what is known of a vault up to date: reads what changed, forgets what vanished, resolves what that touches.
 */
export async function indexVault(db: Database.Database, vault: Vault, task: Indexing): Promise<IndexCounts> {
  const run = new IndexRun(db, vault, task);
  await run.readChanged();
  const removed = await run.removeVanished();
  await run.resolveLinks();
  return { parsed: run.parsed, unchanged: run.unchanged, removed, hidden: run.hidden, troubles: run.troubles };
}

/**
 * Reads what has changed since the vault was indexed; undefined where whoever asked may not read it, so that what is
 * known has to do.
 */
export async function refreshVault(
  db: Database.Database,
  vault: Vault,
  task: CommandContext,
): Promise<IndexCounts | undefined> {
  const reach = openReach(task);
  const shown = showName(vault.root);
  try {
    reach.resolve(shown, "vault");
  } catch (error) {
    task.log.warn(`${reasonOf(error)} This is what was known of it when it was last indexed.`);
    return undefined;
  }
  return await indexVault(db, vault, { ...task, reach });
}

/**
 * Forgets a vault whose folder is gone, and says how many files it had. A run that is cut short leaves the rest for the
 * next.
 */
export async function forgetVault(
  db: Database.Database,
  vault: Vault,
  task: Pick<CommandContext, "signal">,
): Promise<number> {
  const ids = db.prepare("select id from vault_files where vault = ?").pluck().all(vault.id) as number[];
  await removeAll(createWriter(db, vault.id), ids, task.signal);
  db.prepare("delete from vault_vaults where id = ?").run(vault.id);
  return ids.length;
}

async function removeAll(writer: VaultWriter, ids: readonly number[], signal: AbortSignal): Promise<void> {
  for (let at = 0; at < ids.length; ) {
    at += writer.remove(ids.slice(at, at + maxRowsAtOnce));
    if (at < ids.length) await letOthersWrite(signal);
  }
}

async function letOthersWrite(signal: AbortSignal): Promise<void> {
  await wait(pauseMs);
  signal.throwIfAborted();
}

class IndexRun {
  readonly #db: Database.Database;
  readonly #vault: Vault;
  readonly #task: Indexing;
  readonly #writer;
  readonly #pace;
  /** Rows of files that are there. */
  readonly #seen = new Set<number>();
  #changed: ChangedFile[] = [];
  #changedRows = 0;
  #changedSince = performance.now();
  readonly troubles = new Troubles();
  parsed = 0;
  unchanged = 0;
  hidden = 0;

  constructor(db: Database.Database, vault: Vault, task: Indexing) {
    this.#db = db;
    this.#vault = vault;
    this.#task = task;
    this.#writer = createWriter(db, vault.id);
    this.#pace = createPace(task.signal);
  }

  async readChanged(): Promise<void> {
    const { root } = this.#vault;
    const expected = countQuickly(root, { recursive: true, budgetMs: 200 });
    let done = 0;
    const folders = walkFolders(root, {
      signal: this.#task.signal,
      reach: this.#task.reach,
      onHidden: (path) => this.#keep(path),
      skipsFolder: folderSkipper(this.#task.home),
      skipsFile: (_folder, name) => isHidden(name),
      onError: (path, error) => this.troubles.add(showName(path), error),
    });
    try {
      for await (const { files } of folders) {
        for (const file of files) {
          await this.#take(file);
          done++;
          if (!this.#pace.isOver()) continue;
          this.#tellRead(done, expected);
          await this.#pace.giveWay();
        }
      }
    } finally {
      // Also when the run is stopped: what was read need not be read again.
      this.#store();
    }
    this.#tellRead(done, done);
  }

  /** Forgets what was not met and is not there; what may only have been unreadable is kept. */
  async removeVanished(): Promise<number> {
    // The plus keeps SQLite from sorting all files of the vault anew for each page.
    const rows = this.#db.prepare(
      `select id, path from vault_files where +vault = ? and id > ? order by id limit ${maxRowsAtOnce}`,
    );
    let removed = 0;
    for (let after = 0; ; ) {
      const page = rows.all(this.#vault.id, after) as { id: number; path: Buffer }[];
      if (page.length === 0) return removed;
      after = page.at(-1)?.id ?? after;
      const gone = page
        .filter(({ id, path }) => !this.#seen.has(id) && !mayBeThere(joinBytes(this.#vault.root, path)))
        .map(({ id }) => id);
      await removeAll(this.#writer, gone, this.#task.signal);
      removed += gone.length;
      if (this.#pace.isOver()) await this.#pace.giveWay();
    }
  }

  async resolveLinks(): Promise<void> {
    const resolver = new Resolver(this.#db, this.#vault.id);
    const expected = resolver.count();
    let done = 0;
    for (let some = resolver.resolveSome(); some !== undefined; some = resolver.resolveSome()) {
      done += some;
      const part = done / Math.max(done, expected, 1);
      // Another run may have put more links in doubt: the end is when none is left.
      this.#task.progress({
        percentage: Math.min(99, readingShare + part * (100 - readingShare)),
        message: `${done} links resolved`,
      });
      await letOthersWrite(this.#task.signal);
    }
    this.#task.progress({ percentage: 100 });
  }

  #tellRead(done: number, expected: number): void {
    const part = done / Math.max(done, expected, 1);
    this.#task.progress({ percentage: part * readingShare, message: `${done} files seen, ${this.parsed} notes read` });
  }

  #below(whole: Buffer): Buffer {
    return whole.subarray(this.#vault.root.length + (this.#vault.root.at(-1) === slash ? 0 : 1));
  }

  /** What is closed to whoever asked stays as it is known. */
  #keep(hidden: Buffer): void {
    this.hidden += 1;
    const known = this.#writer.find(this.#below(hidden));
    if (known !== undefined) this.#seen.add(known.id);
  }

  async #take(file: WalkedFile): Promise<void> {
    const whole = pathOf(file);
    const path = this.#below(whole);
    const known = this.#writer.find(path);
    if (known !== undefined) this.#seen.add(known.id);
    if (known?.stamp === stampOf(file)) {
      if (isNoteName(path.toString())) this.unchanged++;
      return;
    }
    try {
      const shown = showName(path);
      const isNote = isNoteName(shown);
      const read = isNote ? await this.#read(whole, nameIn(shown)) : { stamp: stampOf(file), note: undefined };
      this.#change({ id: known?.id, path, shown, ...read });
      if (isNote) this.parsed++;
    } catch (error) {
      this.#task.signal.throwIfAborted();
      this.troubles.add(showName(whole), error);
    }
  }

  #read(file: Buffer, name: string): Promise<Pick<ChangedFile, "stamp" | "note">> {
    return withSource(file, { maxBytes: maxNoteBytes, reach: this.#task.reach }, async (source) => {
      const document = { domain: "vault", how: { name }, size: source.size, pieces: () => source.pieces() } as const;
      const { head, items } = await readDocument<{ title: string }, NotePart>(
        document,
        limitsOf(this.#task.config),
        this.#task.signal,
      );
      return { stamp: source.stamp, note: toNote(head.title, items) };
    });
  }

  #change(file: ChangedFile): void {
    if (this.#changed.length === 0) this.#changedSince = performance.now();
    this.#changed.push(file);
    this.#changedRows += 1 + (file.note?.links.length ?? 0);
    if (this.#changedRows >= maxRowsAtOnce || performance.now() - this.#changedSince > maxWriteMs) this.#store();
  }

  #store(): void {
    const files = this.#changed;
    this.#changed = [];
    this.#changedRows = 0;
    if (files.length === 0) return;
    try {
      for (const id of this.#writer.store(files)) this.#seen.add(id);
    } catch (error) {
      const why = whyNotStored(error);
      if (why === undefined) throw error;
      this.parsed -= files.filter(({ note }) => note !== undefined).length;
      for (const { path } of files)
        this.troubles.add(showName(joinBytes(this.#vault.root, path)), `it was read but not stored: ${why}`);
    }
  }
}

const slash = "/".charCodeAt(0);

function mayBeThere(file: Buffer): boolean {
  try {
    lstatSync(file);
    return false; // It is there, and was passed over all the same: it no longer belongs to the vault.
  } catch (error) {
    return !["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}
