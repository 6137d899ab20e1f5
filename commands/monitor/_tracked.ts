import type Database from "better-sqlite3";
import { maxRowsAtOnce, writeAtOnce } from "../_pack/database.ts";
import { type HashedBatch, resultsOf } from "../_pack/hash-batch.ts";
import type { FileState } from "../_pack/hash-file.ts";
import { folderOf, nameOf } from "../_pack/paths.ts";

/** A name as the bytes it is, one character each: short, and good as a key. */
export const toKey = (name: Buffer): string => name.toString("latin1");
export const fromKey = (key: string): Buffer => Buffer.from(key, "latin1");

export interface TrackedState extends FileState {
  readonly priority: number;
}

/** So many are put in order at once. */
const maxLowest = 20_000;

/** A file that was read. */
interface ReadFile {
  readonly seen: { readonly path: Buffer };
  readonly key: string;
  readonly priority: number;
}

export interface ReadBatch {
  readonly files: readonly ReadFile[];
  readonly hashed: HashedBatch;
}

export interface TrackedFolder {
  readonly id: number;
  readonly path: Buffer;
  readonly snapshot: Buffer | null;
}

/** A folder of which all files are recorded as its snapshot says. */
export interface WholeFolder {
  readonly path: Buffer;
  readonly snapshot: Buffer;
  readonly files: number;
}

/** What goes first when there is too much: the lowest score, and of equal ones the oldest. */
export interface Lowest {
  readonly priority: number;
  readonly mtimeNs: bigint;
}

type StateRow = [name: Buffer, size: bigint, mtimeNs: bigint, inode: bigint, priority: number];

/** The files that the monitor remembers. Every write is one short transaction. */
export class Tracked {
  readonly #db: Database.Database;
  readonly #folder: Database.Statement;
  readonly #folderId: Database.Statement;
  readonly #states: Database.Statement;
  readonly #isFile: Database.Statement;
  readonly #addFolder: Database.Statement;
  readonly #put: Database.Statement;
  readonly #setPriority: Database.Statement;
  readonly #remove: Database.Statement;
  readonly #removeFolder: Database.Statement;
  readonly #names: Database.Statement;
  readonly #foldersFrom: Database.Statement;
  readonly #unmark: Database.Statement;
  readonly #mark: Database.Statement;

  constructor(db: Database.Database) {
    this.#db = db;
    this.#folder = db.prepare("select id, path, snapshot from monitor_folders where path = ?");
    this.#folderId = db.prepare("select id from monitor_folders where path = ?").pluck();
    this.#states = db
      .prepare("select name, size, mtime_ns, inode, priority from monitor_files where folder_id = ?")
      .raw()
      .safeIntegers();
    this.#isFile = db.prepare("select 1 from monitor_files where folder_id = ? and name = ?").pluck();
    this.#addFolder = db.prepare("insert into monitor_folders (path) values (?) returning id").pluck();
    this.#put = db.prepare(`
      insert into monitor_files (folder_id, name, size, mtime_ns, inode, sha256, priority, synced_at) values (?, ?, ?, ?, ?, ?, ?, ?)
      on conflict (folder_id, name) do update set size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode,
        sha256 = excluded.sha256, priority = excluded.priority, synced_at = excluded.synced_at`);
    this.#setPriority = db.prepare("update monitor_files set priority = ? where folder_id = ? and name = ?");
    this.#remove = db.prepare("delete from monitor_files where folder_id = ? and name = ?");
    this.#removeFolder = db.prepare(
      "delete from monitor_folders where id = ? and not exists (select 1 from monitor_files where folder_id = id)",
    );
    this.#names = db.prepare("select name from monitor_files where folder_id = ? limit ?").pluck();
    this.#unmark = db.prepare("update monitor_folders set snapshot = null where id = ? and snapshot is not null");
    // Guarded: another process may have forgotten some of the files in the meantime.
    this.#mark = db.prepare(
      "update monitor_folders set snapshot = ? where path = ? and (select count(*) from monitor_files where folder_id = id) = ?",
    );
    this.#foldersFrom = db.prepare(
      "select id, path from monitor_folders where path > ? and path < ? order by path limit ?",
    );
  }

  folder(folder: Buffer): TrackedFolder | undefined {
    return this.#folder.get(folder) as TrackedFolder | undefined;
  }

  folderId(folder: Buffer): number | undefined {
    return this.#folderId.get(folder) as number | undefined;
  }

  /** The files right in a folder, by key. */
  statesIn(folderId: number): Map<string, TrackedState> {
    const rows = this.#states.all(folderId) as StateRow[];
    return new Map(
      rows.map(([name, size, mtimeNs, inode, priority]) => [
        toKey(name),
        { size: Number(size), mtimeNs, inode: BigInt.asUintN(64, inode), priority },
      ]),
    );
  }

  /** True when something is recorded at a path or below it. */
  knows(path: Buffer): boolean {
    const id = this.folderId(folderOf(path));
    if (id !== undefined && this.#isFile.get(id, nameOf(path)) !== undefined) return true;
    return this.folderId(path) !== undefined || this.foldersBelow(path).length > 0;
  }

  /** All of them, or none when it throws; those that could not be read are passed over. */
  put(batches: readonly ReadBatch[], now: number): { rows: number; bytes: number } {
    return writeAtOnce(this.#db, () => {
      const ids = new Map<Buffer, number>();
      let [rows, bytes] = [0, 0];
      for (const { files, hashed } of batches) {
        let at = 0;
        for (const result of resultsOf(hashed)) {
          const { seen, key, priority } = files[at++] as ReadFile;
          if ("reason" in result) continue;
          const id = ids.get(seen.path) ?? this.#folderToWrite(seen.path);
          ids.set(seen.path, id);
          this.#put.run(
            id,
            fromKey(key),
            result.size,
            result.mtimeNs,
            BigInt.asIntN(64, result.inode),
            result.sha256,
            priority,
            now,
          );
          rows += 1;
          bytes += result.size;
        }
      }
      return { rows, bytes };
    });
  }

  /** A folder whose files change: its snapshot no longer holds. */
  #folderToWrite(folder: Buffer): number {
    const id = this.folderId(folder) ?? (this.#addFolder.get(folder) as number);
    this.#unmark.run(id);
    return id;
  }

  setPriorities(folderId: number, files: readonly { readonly name: Buffer; readonly priority: number }[]): void {
    for (const some of inSlices(files)) {
      writeAtOnce(this.#db, () => {
        this.#unmark.run(folderId);
        for (const { name, priority } of some) this.#setPriority.run(priority, folderId, name);
      });
    }
  }

  markWhole(folders: readonly WholeFolder[]): void {
    for (const some of inSlices(folders)) {
      writeAtOnce(this.#db, () => {
        for (const { path, snapshot, files } of some) this.#mark.run(snapshot, path, files);
      });
    }
  }

  /** How many were there to be removed. A folder without files is forgotten too. */
  remove(folderId: number, names: readonly Buffer[]): number {
    let removed = 0;
    for (const some of inSlices(names)) {
      writeAtOnce(this.#db, () => {
        this.#unmark.run(folderId);
        for (const name of some) removed += this.#remove.run(folderId, name).changes;
        this.#removeFolder.run(folderId);
      });
    }
    return removed;
  }

  removeFile(file: Buffer): number {
    const id = this.folderId(folderOf(file));
    return id === undefined ? 0 : this.remove(id, [nameOf(file)]);
  }

  /** Forgets some files of a folder; call it until it gives 0, which forgets the folder. */
  removeSomeOf(folderId: number): number {
    const names = this.#names.all(folderId, maxRowsAtOnce) as Buffer[];
    if (names.length === 0) writeAtOnce(this.#db, () => this.#removeFolder.run(folderId));
    return names.length === 0 ? 0 : this.remove(folderId, names);
  }

  /** The file that goes first, when no more than so many are wanted and that many are there; 0: any number. */
  lowestBeyond(most: number): Lowest | undefined {
    if (most === 0 || this.#count() < most) return undefined;
    const lowest = this.#db
      .prepare("select priority, mtime_ns as mtimeNs from monitor_files order by priority, mtime_ns limit 1")
      .safeIntegers();
    return lowest.get() as Lowest | undefined;
  }

  /** Forgets some of the files that score too little, or of which there are too many; call it until it gives 0. */
  removeLowest(minimum: number, most: number): number {
    const low = this.#lowest("where priority < ?", [minimum, maxRowsAtOnce]);
    const beyond = most === 0 ? 0 : this.#count() - low.length - most;
    const rows = low.length > 0 || beyond <= 0 ? low : this.#lowest("", [Math.min(beyond, maxLowest)]);
    const byFolder = Map.groupBy(rows, ({ folder }) => folder);
    let removed = 0;
    for (const [folder, files] of byFolder) {
      removed += this.remove(
        folder,
        files.map(({ name }) => name),
      );
    }
    return removed;
  }

  #lowest(where: string, values: readonly number[]): { readonly folder: number; readonly name: Buffer }[] {
    const rows = this.#db.prepare(
      `select folder_id as folder, name from monitor_files ${where} order by priority, mtime_ns, folder_id, name limit ?`,
    );
    return rows.all(...values) as { folder: number; name: Buffer }[];
  }

  #count(): number {
    return this.#db.prepare("select count(*) from monitor_files").pluck().get() as number;
  }

  /** The next folders below a folder, after one that was given before. */
  foldersBelow(root: Buffer, after?: Buffer): Pick<TrackedFolder, "id" | "path">[] {
    const base = root.at(-1) === 0x2f ? root.subarray(0, -1) : root;
    const [first, last] = [Buffer.concat([base, Buffer.from("/")]), Buffer.concat([base, Buffer.from("0")])];
    return this.#foldersFrom.all(after ?? first, last, maxRowsAtOnce) as Pick<TrackedFolder, "id" | "path">[];
  }
}

function* inSlices<T>(list: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < list.length; at += maxRowsAtOnce) yield list.slice(at, at + maxRowsAtOnce);
}
