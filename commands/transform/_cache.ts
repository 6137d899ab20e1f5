import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import type Database from "better-sqlite3";
import { ensureSchema, maxRowsAtOnce, withPack, writeAtOnce } from "../_pack/database.ts";
import { createPace } from "../_pack/walk.ts";
import type { Transformed } from "./_engines.ts";

/**
 * Texts that were made before. A text's key is the sha256 of the file's content, the engine, its version and its
 * options, so a file that moves keeps its text and a file that changes gets a new one. The text is a file in
 * `<home>/cache/transform`, the rest a row of the pack. Whatever of the two is missing or damaged makes the entry one
 * that is not there.
 */
const schema = [
  `create table transform_entries (
    key text primary key,
    sha256 text not null,
    engine text not null,
    title text not null,
    facts text not null,
    bytes integer not null,
    text_sha256 text not null,
    source text not null,
    created_at integer not null,
    used_at integer not null
  );
  create index transform_entries_by_use on transform_entries (used_at);
  create table transform_settings (name text primary key, value integer not null) without rowid;`,
];

export const defaultLimitBytes = 256 * 1024 * 1024;
/** A use is written down once a minute at most. */
const useGrainMs = 60_000;
/** Files without a row are left alone this long: somebody may be about to write the row. */
const orphanMs = 10 * 60_000;

export interface CacheEntry extends Transformed {
  readonly key: string;
  readonly sha256: string;
  readonly engine: string;
  /** The file it was made from, as shown. */
  readonly source: string;
}

interface Row {
  readonly title: string;
  readonly facts: string;
  readonly bytes: number;
  readonly text_sha256: string;
  readonly used_at: number;
}

const folderIn = (home: string) => path.join(home, "cache", "transform");

/** Opens the cache, and closes it whatever happens. */
export function withCache<T>(home: string, act: (cache: Cache) => T | Promise<T>): Promise<T> {
  return withPack(home, (db) => {
    ensureSchema(db, "transform", schema);
    return act(new Cache(db, folderIn(home)));
  });
}

/**
 * Removes the texts whose rows are gone, those of today included; one that is being written just now is made again when
 * it is needed.
 */
export function removeForgotten(db: Database.Database, home: string, signal: AbortSignal): Promise<number> {
  return new Cache(db, folderIn(home)).sweep(signal, 0);
}

export const sha256Of = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");

export class Cache {
  readonly #db: Database.Database;
  readonly #folder: string;

  constructor(db: Database.Database, folder: string) {
    this.#db = db;
    this.#folder = folder;
  }

  /** The key of what an engine makes of a file. */
  keyOf(sha256: string, engineKey: string): string {
    return sha256Of(`${sha256}\n${engineKey}`);
  }

  /** Where a text lies, or would. */
  fileOf(key: string): string {
    return path.join(this.#folder, key.slice(0, 2), `${key}.txt`);
  }

  /** What was made before; undefined when there is nothing, or not what was written. */
  find(key: string): Transformed | undefined {
    const row = this.#db
      .prepare("select title, facts, bytes, text_sha256, used_at from transform_entries where key = ?")
      .get(key) as Row | undefined;
    if (row === undefined) return undefined;
    const text = readQuietly(this.fileOf(key));
    if (text === undefined || sha256Of(text) !== row.text_sha256) return undefined;
    const now = Date.now();
    if (now - row.used_at > useGrainMs)
      this.#db.prepare("update transform_entries set used_at = ? where key = ?").run(now, key);
    return { text, title: row.title, facts: JSON.parse(row.facts) as Transformed["facts"] };
  }

  /** Keeps a text; false when it alone is too large. Call `shrink` when it was the last of several. */
  keep({ key, sha256, engine, source, text, title, facts }: CacheEntry): boolean {
    const bytes = Buffer.byteLength(text);
    if (bytes > this.limitBytes()) return false;
    const file = this.fileOf(key);
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const draft = `${file}.${process.pid}.draft`;
    try {
      writeFileSync(draft, text, { mode: 0o600 });
      renameSync(draft, file);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
    const now = Date.now();
    const insert = this.#db.prepare(
      `insert or replace into transform_entries (key, sha256, engine, title, facts, bytes, text_sha256, source, created_at, used_at)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    writeAtOnce(this.#db, () =>
      insert.run(key, sha256, engine, title, JSON.stringify(facts), bytes, sha256Of(text), source, now, now),
    );
    return true;
  }

  limitBytes(): number {
    const value = this.#db.prepare("select value from transform_settings where name = 'limit_bytes'").pluck().get() as
      | number
      | undefined;
    return value ?? defaultLimitBytes;
  }

  setLimit(bytes: number): void {
    this.#db.prepare("insert or replace into transform_settings (name, value) values ('limit_bytes', ?)").run(bytes);
  }

  /** How much is kept, of one engine or of all. */
  size(engine?: string): { entries: number; bytes: number } {
    const where = engine === undefined ? "" : "where engine = @engine";
    return this.#db
      .prepare(`select count(*) as entries, coalesce(sum(bytes), 0) as bytes from transform_entries ${where}`)
      .get({ engine }) as {
      entries: number;
      bytes: number;
    };
  }

  /** Removes texts, the one unused longest first, until they fit the limit. Returns how many. */
  shrink(limitBytes = this.limitBytes()): number {
    const oldest = this.#db.prepare(
      `select key, bytes from transform_entries order by used_at, rowid limit ${maxRowsAtOnce}`,
    );
    const remove = this.#db.prepare("delete from transform_entries where key = ?");
    let removed = 0;
    for (let { bytes } = this.size(); bytes > limitBytes; ) {
      const page = oldest.all() as { key: string; bytes: number }[];
      const gone: string[] = [];
      for (const entry of page) {
        if (bytes <= limitBytes) break;
        gone.push(entry.key);
        bytes -= entry.bytes;
      }
      if (gone.length === 0) break;
      writeAtOnce(this.#db, () => gone.map((key) => remove.run(key)));
      for (const key of gone) rmSync(this.fileOf(key), { force: true });
      removed += gone.length;
    }
    return removed;
  }

  /**
   * Removes files that no row knows, such as those of a run that was killed between the two, when they are older than
   * this. Returns how many.
   */
  async sweep(signal: AbortSignal, minAgeMs = orphanMs): Promise<number> {
    const pace = createPace(signal);
    const isKnown = this.#db.prepare("select 1 from transform_entries where key = ?").pluck();
    let removed = 0;
    for (const folder of namesIn(this.#folder)) {
      for (const name of namesIn(path.join(this.#folder, folder))) {
        const file = path.join(this.#folder, folder, name);
        if (pace.isOver()) await pace.giveWay();
        const isText = name.endsWith(".txt");
        const isEntry = isText && isKnown.get(name.slice(0, -".txt".length)) !== undefined;
        const age = Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY);
        // What is still being written becomes a text of its own.
        if (isEntry || age < (isText ? minAgeMs : orphanMs)) continue;
        rmSync(file, { force: true });
        removed++;
      }
    }
    return removed;
  }
}

function readQuietly(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined; // Removed, or not readable: it is made again.
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // Not there yet, or a file.
  }
}
