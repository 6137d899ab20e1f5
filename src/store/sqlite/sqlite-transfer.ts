import type Database from "better-sqlite3";
import type { Clock } from "../../clock.ts";
import { isKnownDead } from "../../system/worker-name.ts";
import {
  type CopyMark,
  type LiveWorker,
  type PlainTable,
  type TransferRow,
  type TransferTarget,
  type TransferTask,
  taskColumns,
  withSteps,
} from "../transfer.ts";
import { readNotes, writeNotes } from "./carried-notes.ts";
import { openConnection, toRuntimeError } from "./connection.ts";
import { openForReading } from "./open-for-reading.ts";
import { plainStatements, transferStatements } from "./sqlite-transfer-statements.ts";
import { transactOn } from "./transact.ts";

/** Nobody here has anything else to do meanwhile. */
const busyTimeoutMs = 15_000;

type Name = keyof typeof transferStatements;
type Values = Record<string, string | number | null>;

/** One side of a copy that is an SQLite file. */
export class SqliteTransfer implements TransferTarget {
  readonly place: string;
  readonly #db: Database.Database;
  readonly #clock: Clock;

  /** A source is opened for reading alone, and stays as it is. */
  constructor(file: string, clock: Clock, role: "source" | "target") {
    this.place = file;
    this.#clock = clock;
    this.#db = role === "source" ? openForReading(file) : openConnection(file, { isForCopy: true });
    this.#db.pragma(`busy_timeout = ${busyTimeoutMs}`);
  }

  async count() {
    return this.#first<{ tasks: number; live: number }>("countTasks") ?? { tasks: 0, live: 0 };
  }

  async liveWorkers(): Promise<readonly LiveWorker[]> {
    const found = this.#all<LiveWorker>("liveWorkers", { now: this.#clock.now() });
    return found.filter(({ worker }) => !isKnownDead(worker, { isOneMachine: true }));
  }

  async weigh(after: number, limit: number) {
    return this.#all<{ number: number; bytes: number }>("weigh", { after, limit });
  }

  /** Both in one look, so that steps are those of the tasks. */
  async read(after: number, upTo: number): Promise<readonly TransferTask[]> {
    return this.#transact(() => {
      const rows = this.#all<Values>("readTasks", { after, upTo }).map(toRow);
      return withSteps(rows, this.#all("readSteps", { after, upTo }));
    });
  }

  async readTable(table: PlainTable): Promise<readonly TransferRow[]> {
    return this.#try(() =>
      table.name === "session_notes"
        ? readNotes(this.#db)
        : (this.#db.prepare(plainStatements(table).read).all() as TransferRow[]),
    );
  }

  async readUnfinished(): Promise<string | undefined> {
    return this.#transact(() => this.#mark()?.source);
  }

  async begin(mark: CopyMark): Promise<void> {
    this.#transact(() => {
      this.#run("makeMark");
      this.#run("clearMark");
      this.#run("writeMark", { ...mark });
    });
  }

  async write(copier: string, change: { gone: readonly number[]; tasks: readonly TransferTask[] }): Promise<boolean> {
    return this.#asCopier(copier, () => {
      for (const number of [...change.gone, ...change.tasks.map((task) => task.number)])
        this.#run("removeTask", { number, copier });
      for (const task of change.tasks) this.#writeTask(task, copier);
    });
  }

  #writeTask({ number, columns, steps }: TransferTask, copier: string): void {
    const values = fromRow(columns);
    this.#run("writeTask", { ...values, copier });
    const { input = null, outcome = null, task_id: taskId = null } = values;
    if (input !== null) this.#run("writeInput", { number, input });
    if (outcome !== null) this.#run("writeOutcome", { number, outcome });
    for (const [name, value] of steps) this.#run("writeStep", { taskId, name, value });
  }

  async writeTable(copier: string, table: PlainTable, rows: readonly TransferRow[]): Promise<boolean> {
    return this.#asCopier(copier, () => {
      if (table.name === "session_notes") return writeNotes(this.#db, rows);
      const { clear, write } = plainStatements(table);
      this.#db.prepare(clear).run({ copier });
      const insert = this.#db.prepare(write);
      for (const row of rows) insert.run(row);
    });
  }

  async finish(copier: string): Promise<boolean> {
    return this.#asCopier(copier, () => this.#run("dropMark"));
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  /** Does something, as a whole or not at all, unless another run has taken over. */
  #asCopier(copier: string, act: () => void): boolean {
    return this.#transact(() => {
      if (this.#mark()?.copier !== copier) return false;
      act();
      return true;
    });
  }

  #mark(): CopyMark | undefined {
    return this.#first("hasMark") === undefined ? undefined : this.#first<CopyMark>("readMark");
  }

  #transact<T>(act: () => T): T {
    const transact = transactOn(this.#db);
    return this.#try(() => (this.#db.readonly ? transact.deferred(act) : transact.immediate(act)) as T);
  }

  #first<T>(name: Name, values: Values = {}): T | undefined {
    return this.#all<T>(name, values)[0];
  }

  #all<T>(name: Name, values: Values): T[] {
    return this.#try(() => this.#db.prepare<[Values], T>(transferStatements[name]).all(values));
  }

  #run(name: Name, values: Values = {}): void {
    this.#db.prepare<[Values]>(transferStatements[name]).run(values);
  }

  #try<T>(act: () => T): T {
    try {
      return act();
    } catch (error) {
      throw toRuntimeError(error, this.place);
    }
  }
}

function toRow(row: Values): TransferRow {
  return { ...row, ...Object.fromEntries(taskColumns.flags.map((name) => [name, row[name] === 1])) };
}

function fromRow(row: TransferRow): Values {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === "boolean" ? Number(value) : value]),
  );
}
