import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { devNull } from "node:os";
import path from "node:path";
import type Database from "better-sqlite3";
import { isOutOfDescriptors, outOfDescriptors, RuntimeError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { copyingTable, unfinishedCopy } from "../unfinished.ts";
import { checkVersion, migrateFile } from "./migrate-file.ts";
import { openDatabase } from "./open-database.ts";

/** Below this, two processes that write and checkpoint at the same instant can lose committed rows. */
const minimumVersion = [3, 51, 3] as const;
/** A file of this size is read through before it is trusted; a larger one would make every start wait. */
const maxCheckedBytes = 64 * 1024 * 1024;

/** One page of the smallest kind. */
const smallestBytes = 512;

/** While opening, others may be migrating; afterwards nobody's event loop stands still for longer than a short write. */
const openingTimeoutMs = 5_000;
const busyTimeoutMs = 1;
const walTries = 100;
const walPauseMs = 10;
const stillness = new Int32Array(new SharedArrayBuffer(4));
/** A log that has grown beyond this is cut when it begins anew. */
const maxLogBytes = 16 * 1024 * 1024;

/**
 * Opens a task database, makes it when it is missing, and brings its schema up to date. Fails closed. One that is not
 * filled yet is opened by whoever fills it alone.
 */
export function openConnection(file: string, { isForCopy = false } = {}): Database.Database {
  try {
    refuseFolder(file);
    refuseCutOff(file);
    prepareFile(file);
    if (statSync(file).size > 0) inspect(file, isForCopy);
    return openChecked(file);
  } catch (error) {
    throw toRuntimeError(error, file);
  }
}

/** Readable by its user alone, whatever the umask; SQLite gives -wal and -shm the same mode. */
function prepareFile(file: string): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
}

/**
 * Refuses a file that is not a sound task database of ours, before anything can change it: a connection that may write
 * would carry the log over into a damaged file, and turn somebody else's database into ours, just by opening and
 * closing it.
 */
function inspect(file: string, isForCopy: boolean): void {
  try {
    withConnection(connect(file, { readonly: true }), (db) => check(db, file, isForCopy));
  } catch (error) {
    if (!codeOf(error).startsWith("SQLITE_READONLY")) throw error;
    // A crash in the middle of the very first write leaves a journal, and only a writer may roll that back.
    withConnection(connect(file), (db) => db.pragma("schema_version"));
    withConnection(connect(file, { readonly: true }), (db) => check(db, file, isForCopy));
  }
}

export function check(db: Database.Database, file: string, isForCopy: boolean): void {
  refuseTruncated(db, file);
  refuseForeign(db, file);
  refuseDamaged(db, file);
  if (!isForCopy && tablesOf(db).includes(copyingTable)) throw unfinishedCopy(file);
}

function openChecked(file: string): Database.Database {
  const db = connect(file);
  try {
    // Heard of while there is no page yet: then what is removed later can be given back to the disk.
    if (statSync(file).size === 0) db.pragma("auto_vacuum = INCREMENTAL");
    enterWal(db);
    db.pragma("synchronous = FULL");
    db.pragma(`journal_size_limit = ${maxLogBytes}`);
    if (migrateFile(db, file)) tidy(db, file);
    db.pragma("foreign_keys = ON");
    db.pragma(`busy_timeout = ${busyTimeoutMs}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Of several who open a new file at once SQLite refuses all but one without any waiting, so they ask again. */
export function enterWal(db: Database.Database): void {
  for (let triesLeft = walTries; ; triesLeft--) {
    try {
      db.pragma("journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || triesLeft === 0) throw error;
      Atomics.wait(stillness, 0, 0, walPauseMs);
    }
  }
}

/**
 * After a change of schema much of the file is free. A small one is packed, and gives pages back by itself from then on;
 * a large one would make everybody wait for that. The log is as long as all that was changed.
 */
function tidy(db: Database.Database, file: string): void {
  db.pragma(`busy_timeout = ${openingTimeoutMs}`);
  try {
    if (statSync(file).size <= maxCheckedBytes) db.exec("pragma auto_vacuum = INCREMENTAL; vacuum");
    db.pragma("wal_checkpoint(TRUNCATE)");
  } catch (error) {
    // Then the file is as large as before, which does no harm.
    if (!isBusy(error) && !codeOf(error).startsWith("SQLITE_FULL")) throw error;
  }
}

export function connect(file: string, options: Database.Options = {}): Database.Database {
  const db = openDatabase(file, { ...options, timeout: openingTimeoutMs });
  try {
    refuseOldSqlite(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function withConnection<T>(db: Database.Database, act: (db: Database.Database) => T): T {
  try {
    return act(db);
  } finally {
    db.close();
  }
}

function refuseOldSqlite(db: Database.Database): void {
  const version = db.prepare("select sqlite_version()").pluck().get() as string;
  if (!isAtLeast(version, minimumVersion)) {
    throw new RuntimeError(
      "STORE_UNAVAILABLE",
      `SQLite ${version} can lose rows when several processes share a file; ${minimumVersion.join(".")} or newer is needed: update better-sqlite3.`,
      { forClients: unopened },
    );
  }
}

export function isAtLeast(version: string, minimum: readonly number[]): boolean {
  const parts = version.split(".").map(Number);
  for (const [at, least] of minimum.entries()) {
    const part = parts[at] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}

/** SQLite opens a folder, and says that its disk is broken. */
export function refuseFolder(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory() !== true) return;
  throw new RuntimeError(
    "STORE_UNAVAILABLE",
    `The task database ${file} cannot be used: it is a folder; move it away, or point ${thisProgram.variable("STORE")} at a file.`,
    {
      forClients: unopened,
    },
  );
}

/** SQLite takes a file of almost nothing for a new one, and throws away the log beside it. */
export function refuseCutOff(file: string): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 && hasLog(file)) {
    const cure = "Put the database back, or move its log away too, and start again.";
    throw new RuntimeError(
      "STORE_DAMAGED",
      `The task database ${file} is gone, but its log ${file}-wal is not; nothing was changed. ${cure}`,
      {
        forClients: harmed,
      },
    );
  }
  if (size > 0 && size < smallestBytes) throw damaged(file, "it is shorter than any database");
}

/** With a log beside it, a file may be shorter than it says: the rest is in the log. */
function refuseTruncated(db: Database.Database, file: string): void {
  const pages = db.pragma("page_count", { simple: true }) as number;
  const size = db.pragma("page_size", { simple: true }) as number;
  if (!hasLog(file) && statSync(file).size < pages * size) throw damaged(file, "it is shorter than it says");
}

function hasLog(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Another program's database must not get our tables. */
export function refuseForeign(db: Database.Database, file: string): void {
  // Both as of one moment: somebody may be making them.
  const [version, tables] = db.transaction(() => [checkVersion(db, file), tablesOf(db)] as const)();
  const isOurs =
    version === 0 ? tables.length === 0 : ["tasks", "steps", "durations"].every((name) => tables.includes(name));
  if (!isOurs)
    throw new RuntimeError(
      "STORE_UNAVAILABLE",
      `${file} is a database of another program; nothing was changed. Point ${thisProgram.variable("STORE")} at another file.`,
      {
        forClients: `The task database's file belongs to another program; whoever runs the server has to point ${thisProgram.variable("STORE")} at another one.`,
      },
    );
}

function tablesOf(db: Database.Database): unknown[] {
  return db.prepare("select name from sqlite_schema where type = 'table'").pluck().all();
}

function refuseDamaged(db: Database.Database, file: string): void {
  if (statSync(file).size > maxCheckedBytes) return;
  const verdict = db.pragma("quick_check(1)", { simple: true });
  if (verdict !== "ok") throw damaged(file, String(verdict));
}

function damaged(file: string, why: string): RuntimeError {
  return new RuntimeError(
    "STORE_DAMAGED",
    `The task database ${file} is damaged (${why}); nothing was changed. Move it away, or restore it from a backup, and start again.`,
    { forClients: harmed },
  );
}

/** True for "somebody else is writing right now". */
export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith("SQLITE_BUSY");
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "";
}

export const unopened = "The task database cannot be opened; whoever runs the server finds the reason in its log.";
const harmed =
  "The task database is damaged; whoever runs the server has to restore it from a backup, or move it away.";
const full: Trouble = {
  why: "the disk is full; make room, running tasks then go on",
  forClients:
    "The disk that the task database is on is full; whoever runs the server has to make room, then call again.",
};
const readOnly: Trouble = {
  why: "it may not be written; check its owner and mode, and whether its disk is mounted read-only",
  forClients: "The task database may not be written; whoever runs the server has to make it writable, then call again.",
};
const exhausted: Trouble = {
  why: outOfDescriptors,
  forClients:
    "The server has no file descriptors left; whoever runs it has to raise their number (ulimit -n), or call again in a moment.",
};

/** The same for the operator, who hears which file it is, and for clients, who do not. */
interface Trouble {
  readonly why: string;
  readonly forClients: string;
}

const troubles: Readonly<Record<string, Trouble>> = {
  SQLITE_FULL: full,
  SQLITE_READONLY: readOnly,
  SQLITE_CANTOPEN: {
    why: "it cannot be opened; check that the folder exists and may be written",
    forClients: unopened,
  },
  SQLITE_BUSY: {
    why: "another process keeps it locked; find it with `fuser`, or wait",
    forClients: "Another process keeps the task database locked; call again in a moment.",
  },
  SQLITE_IOERR: {
    why: "reading or writing it failed; check the disk",
    forClients: "Reading or writing the task database failed; whoever runs the server has to check its disk.",
  },
  ENOSPC: full,
  EDQUOT: full,
  EROFS: readOnly,
  EMFILE: exhausted,
  ENFILE: exhausted,
};

/** What went wrong with a database, as an operator can act on it. */
export function toRuntimeError(error: unknown, file: string): unknown {
  if (error instanceof RuntimeError) return error;
  const code = codeOf(error);
  if (code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB"))
    return damaged(file, (error as Error).message);
  const isFileSystem = /^E[A-Z]+$/.test(code);
  const known = code.startsWith("SQLITE_CANTOPEN") && cannotOpenAny() ? exhausted : troubleOf(code);
  if (known === undefined && !isFileSystem) return error;
  const { why, forClients } = known ?? { why: (error as Error).message, forClients: unopened };
  return new RuntimeError("STORE_UNAVAILABLE", `The task database ${file} cannot be used: ${why}.`, {
    cause: error,
    forClients,
  });
}

function troubleOf(code: string): Trouble | undefined {
  return Object.entries(troubles).find(([prefix]) => code.startsWith(prefix))?.[1];
}

/** SQLite does not say why it cannot open a file; whoever cannot open any has no descriptor left. */
function cannotOpenAny(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return false;
  } catch (error) {
    return isOutOfDescriptors(error);
  }
}
