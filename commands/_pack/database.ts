import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { CommandError } from "meanwhile";

/** The one file in which the bundled commands keep what they know. */
export const packFile = (home: string): string => path.join(home, "pack.db");

/** How long one process waits for another that writes. Transactions of the pack are short, so this is plenty. */
const busyTimeoutMs = 5_000;

/** 32 MiB. */
const pagesInLog = 8_192;

/** A write of so many rows, or so many milliseconds, is long enough: others are waiting. */
export const maxRowsAtOnce = 500;
export const maxWriteMs = 100;

/** Opens the pack's database and makes it when it is missing. Close it in `finally`. */
export function openPack(home: string): Database.Database {
  const file = packFile(home);
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    // Readable by its user alone, whatever the umask; SQLite gives -wal and -shm the same mode.
    if (existsSync(file)) chmodSync(file, 0o600);
    else closeSync(openSync(file, "a", 0o600));
    return prepare(new Database(file, { timeout: busyTimeoutMs }));
  } catch (error) {
    throw toSentence(error, file);
  }
}

/** Opens the database, hands it over, and closes it whatever happens. */
export async function withPack<T>(home: string, act: (db: Database.Database) => T | Promise<T>): Promise<T> {
  const db = openPack(home);
  try {
    return await act(db);
  } catch (error) {
    throw toSentence(error, packFile(home));
  } finally {
    db.close();
  }
}

/**
 * Brings a domain's tables up to date. Each statement text is one step and is never edited once released; the number of
 * steps is the version. Names begin with the domain: `vault_notes`. Tables that end in `_settings` outlive a reset.
 */
export function ensureSchema(db: Database.Database, domain: string, statements: readonly string[]): void {
  if (versionOf(db, domain) === statements.length) return;
  const apply = db.transaction(() => {
    const version = versionOf(db, domain);
    if (version > statements.length) {
      throw new CommandError(
        `${db.name} was written by a newer Meanwhile (${domain} ${version}, this one knows ${statements.length}); update Meanwhile, nothing was changed.`,
      );
    }
    for (const statement of statements.slice(version)) db.exec(statement);
    db.prepare(
      "insert into pack_schema (domain, version) values (?, ?) on conflict (domain) do update set version = excluded.version",
    ).run(domain, statements.length);
  });
  apply.immediate();
}

/** Runs a write as one transaction that waits for other writers before it begins. */
export function writeAtOnce<T>(db: Database.Database, write: () => T): T {
  return db.transaction(write).immediate();
}

/** Why nothing more can be stored, or undefined when the trouble is of another kind. */
export function whyNotStored(error: unknown): string | undefined {
  const code = codeOf(error);
  return Object.entries(sentences).find(([prefix]) => code.startsWith(prefix))?.[1];
}

function prepare(db: Database.Database): Database.Database {
  try {
    db.pragma("journal_mode = WAL");
    // A process that is killed loses nothing; a machine that loses power may lose the last rows, which a next run makes
    // again.
    db.pragma("synchronous = NORMAL");
    // Moving the log into the file waits for the disk: seldom is better for runs that write much.
    db.pragma(`wal_autocheckpoint = ${pagesInLog}`);
    db.pragma("foreign_keys = ON");
    if (!hasSchemaTable(db))
      db.exec(
        "create table if not exists pack_schema (domain text primary key, version integer not null) without rowid",
      );
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function hasSchemaTable(db: Database.Database): boolean {
  return db.prepare("select 1 from sqlite_schema where type = 'table' and name = 'pack_schema'").get() !== undefined;
}

function versionOf(db: Database.Database, domain: string): number {
  return (
    (db.prepare("select version from pack_schema where domain = ?").pluck().get(domain) as number | undefined) ?? 0
  );
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "";
}

const sentences: Readonly<Record<string, string>> = {
  SQLITE_FULL: "the disk is full; make room and run it again",
  SQLITE_READONLY: "it may not be written; check its owner and mode",
  SQLITE_CANTOPEN: "it cannot be opened; check that the folder exists and may be written",
  SQLITE_BUSY: "another process keeps it locked; try again when that has finished",
  SQLITE_IOERR: "reading or writing it failed; check the disk and its free space",
  SQLITE_CORRUPT: "it is damaged; move it away, the next run makes a new one",
  SQLITE_NOTADB: "it is no database; move it away, the next run makes a new one",
  ENOSPC: "the disk is full; make room and run it again",
  EACCES: "it may not be opened; check its owner and mode",
  EROFS: "the disk is read-only",
};

/** One sentence with the cure, for trouble with the file itself; anything else stays what it is. */
function toSentence(error: unknown, file: string): unknown {
  const known = whyNotStored(error);
  return known === undefined
    ? error
    : new CommandError(`The pack's database ${file} cannot be used: ${known}.`, { cause: error });
}
