import type Database from "better-sqlite3";
import { type Clock, sleep } from "../../clock.ts";
import { isStoreError, RuntimeError } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import type { Task } from "../../task/task.ts";
import type { LocalOwner } from "../open.ts";
import { isBusy, openConnection, toRuntimeError } from "./connection.ts";
import { EarlierNames, rewriteLocalRows } from "./local-rows.ts";
import { OpenFiles } from "./replaced.ts";
import { fromExactRow, type SqlValues, type TaskRow, toExactValues, toTask } from "./rows.ts";
import { sessionStatements } from "./session-statements.ts";
import { SharedWrites } from "./shared-writes.ts";
import { keyStatements } from "./sqlite-key-statements.ts";
import { statements as taskStatements } from "./statements.ts";
import { transactOn } from "./transact.ts";

/** How long a write waits for other writers before it gives up. */
const maxBusyMs = 15_000;
/**
 * How long who finds the file locked leaves it to others before it asks again. At first long: writers that seldom take
 * turns find in memory what they need. Then often, so that busy ones crowd nobody out.
 */
const pausesMs = [10, 5];
const lastPauseMs = 3;
/** How often the log is told of the same trouble. */
const tellMs = 60_000;

const statements = { ...taskStatements, ...sessionStatements, ...keyStatements };
type StatementName = keyof typeof statements;

interface Opened {
  readonly db: Database.Database;
  readonly files: OpenFiles;
}

/** One SQLite file: opened when it is first needed, its statements by name, its writes tried until it is their turn. */
export class TaskFile {
  readonly path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #owner: (() => LocalOwner) | undefined;
  readonly #prepared = new Map<string, Database.Statement<[SqlValues], unknown>>();
  #opened: Opened | undefined;
  /** Where the rows of the local user stand under the key of the versions before. */
  #earlier: EarlierNames | undefined;
  #isFull = true;
  #isClosed = false;
  #lastTold: { readonly message: string; readonly at: number } | undefined;
  readonly #shared = new SharedWrites({
    ready: (isFull) => this.#ready(isFull),
    patiently: (act) => this.read(act),
  });
  /** What SQLite counted of other connections' commits when the file was opened. */
  versionAtOpen = 0;
  /** How often somebody here has begun to write. */
  writes = 0;

  /** `owner`: the local user whose own the file is, where it is somebody's. */
  constructor(path: string, clock: Clock, log: Logger, owner?: () => LocalOwner) {
    this.path = path;
    this.#owner = owner;
    this.#clock = clock;
    this.#log = log;
  }

  get isOpen(): boolean {
    return this.#opened !== undefined;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Opens the file, unless it is open. Throws when it cannot be used; the next one who needs it tries again. */
  open(): Opened {
    if (this.#opened !== undefined) return this.#opened;
    if (this.#isClosed) throw new RuntimeError("STORE_UNAVAILABLE", `The task database ${this.path} is closed.`);
    const owner = this.#owner?.();
    const db = openConnection(this.path);
    this.#earlier = owner === undefined || this.#rewrite(db, owner) ? undefined : new EarlierNames(owner);
    this.#opened = { db, files: new OpenFiles(this.path, this.#clock) };
    this.versionAtOpen = this.readVersion();
    return this.#opened;
  }

  #rewrite(db: Database.Database, owner: LocalOwner): boolean {
    try {
      return rewriteLocalRows(db, owner);
    } catch (error) {
      db.close();
      throw toRuntimeError(error, this.path);
    }
  }

  /** What was asked for before is written first. */
  async close(): Promise<void> {
    await this.#shared.pending;
    this.#isClosed = true;
    this.#opened?.db.close();
  }

  /** Commits that must survive a power cut: on disk before they are acknowledged. */
  durably<T>(action: () => T): Promise<T> {
    return this.#shared.write(true, action);
  }

  /** Commits that survive a crash of the process; a power cut may undo them, and nobody was told otherwise. */
  quickly<T>(action: () => T): Promise<T> {
    return this.#shared.write(false, action);
  }

  #ready(isFull: boolean): Database.Database {
    const { db, files } = this.open();
    files.refuseReplaced();
    this.#synchronize(isFull);
    this.writes += 1;
    return db;
  }

  #synchronize(isFull: boolean): void {
    if (isFull === this.#isFull) return;
    // Not prepared: SQLite does what a pragma says while it compiles it.
    this.open().db.exec(isFull ? "pragma synchronous = FULL" : "pragma synchronous = NORMAL");
    this.#isFull = isFull;
  }

  /** Tries again while somebody else is writing, without blocking the event loop meanwhile. */
  async read<T>(action: () => T): Promise<T> {
    const startedAt = this.#clock.monotonic();
    for (let tries = 0; ; tries++) {
      try {
        return action();
      } catch (error) {
        if (!isBusy(error) || this.#clock.monotonic() - startedAt > maxBusyMs) {
          const trouble = toRuntimeError(error, this.path);
          if (isStoreError(trouble)) this.#tell(trouble);
          throw trouble;
        }
        await sleep(this.#clock, pausesMs[tries] ?? lastPauseMs);
      }
    }
  }

  /** The operator's word on it, with the path: once a minute, however many want something of the file meanwhile. */
  #tell({ message }: RuntimeError): void {
    const at = this.#clock.monotonic();
    if (this.#isClosed || (this.#lastTold?.message === message && at - this.#lastTold.at < tellMs)) return;
    this.#lastTold = { message, at };
    this.#log.error(message);
  }

  /** Part of a larger one where that has begun: whoever began it undoes it as a whole. */
  transaction<T>(action: () => T): T {
    const { db } = this.open();
    return db.inTransaction ? action() : (transactOn(db).immediate(action) as T);
  }

  /** Something has been asked for here that is not written yet. */
  get isWriting(): boolean {
    return this.#shared.pending !== undefined;
  }

  /** How many rows have changed. */
  run(name: StatementName, values: SqlValues): number {
    return this.#prepare(name).run(this.#toStored(values)).changes;
  }

  /** The number of the row that it adds. Not "returning": SQLite builds a table for that, which takes longer than the insert. */
  insert(name: StatementName, values: SqlValues): number {
    return Number(this.#prepare(name).run(this.#toStored(values)).lastInsertRowid);
  }

  all<T>(name: StatementName, values: SqlValues): T[] {
    const earlier = this.#earlier;
    const rows = this.#prepare(name).all(this.#toStored(values)).map(fromExactRow);
    return (earlier === undefined ? rows : rows.map((row) => earlier.fromStored(row))) as T[];
  }

  #toStored(values: SqlValues): SqlValues {
    return toExactValues(this.#earlier?.toStored(values) ?? values);
  }

  /** Not `.get()`: that stops at the first row, and when the commit that follows fails, it does not say so. */
  first<T>(name: StatementName, values: SqlValues): T | undefined {
    return this.all<T>(name, values)[0];
  }

  task(name: StatementName, values: SqlValues): Task | undefined {
    const row = this.first<TaskRow>(name, values);
    return row === undefined ? undefined : toTask(row);
  }

  ids(name: StatementName, values: SqlValues): string[] {
    return this.all<{ task_id: string }>(name, values).map((row) => row.task_id);
  }

  /** SQLite counts what other connections commit; a new number means that anything may have changed. */
  readVersion(): number {
    return this.first<{ data_version: number }>("dataVersion", {})?.data_version ?? 0;
  }

  /** Pages that nothing is on any more, and all. */
  readFree(): { readonly free: number; readonly pages: number } {
    return this.first("freePages", {}) ?? { free: 0, pages: 0 };
  }

  /** Makes the file shorter by so many free pages. Not prepared: that would step once, which is one page. */
  dropPages(count: number): void {
    this.open().db.exec(`pragma incremental_vacuum(${count})`);
  }

  #prepare(name: StatementName): Database.Statement<[SqlValues], unknown> {
    const known = this.#prepared.get(name);
    if (known !== undefined) return known;
    const prepared = this.open().db.prepare<[SqlValues], unknown>(statements[name]);
    this.#prepared.set(name, prepared);
    return prepared;
  }
}
