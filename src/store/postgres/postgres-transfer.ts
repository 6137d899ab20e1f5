import type { Clock } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import { isKnownDead } from "../../system/worker-name.ts";
import type { TaskQuestion } from "../../task/task.ts";
import {
  allTaskColumns,
  type CopyMark,
  type LiveWorker,
  type PlainTable,
  type TransferRow,
  type TransferTarget,
  type TransferTask,
  withSteps,
} from "../transfer.ts";
import { parseAddress } from "./address.ts";
import { Database, type Query } from "./database.ts";
import { expectCurrent, migrateForCopy } from "./migrate-schema.ts";
import { fromEnvironment, fromQuestions, type PostgresValue, type PostgresValues, toEnvironment } from "./task-rows.ts";

/** One side of a copy that is a PostgreSQL schema. */
export class PostgresTransfer implements TransferTarget {
  readonly place: string;
  readonly #database: Database;

  /** A source stays as it is. */
  constructor(url: string, terms: { clock: Clock; log: Logger; role: "source" | "target" }) {
    const address = parseAddress(url);
    this.place = `PostgreSQL ${address.shown}, schema ${address.schema}`;
    const prepare = terms.role === "source" ? expectCurrent : migrateForCopy;
    this.#database = new Database(address, terms.clock, terms.log, prepare);
  }

  async open(): Promise<void> {
    await this.#database.open();
  }

  async count() {
    const [counted] = await this.#database.query<{ tasks: number; live: number }>("countTasks", {});
    return counted ?? { tasks: 0, live: 0 };
  }

  async liveWorkers(): Promise<readonly LiveWorker[]> {
    const found = await this.#database.query<LiveWorker>("liveWorkers", {});
    return found.filter(({ worker }) => !isKnownDead(worker, { isOneMachine: false }));
  }

  weigh(after: number, limit: number) {
    return this.#database.query<{ number: number; bytes: number }>("weigh", { after, limit });
  }

  async read(after: number, upTo: number): Promise<readonly TransferTask[]> {
    const rows = await this.#database.query<TransferRow>("readTasks", { after, upTo });
    const steps = await this.#database.query<{ number: number; name: string; value: string }>("readSteps", {
      after,
      upTo,
    });
    return withSteps(rows.map(toRow), steps);
  }

  readTable({ name }: PlainTable): Promise<readonly TransferRow[]> {
    return this.#database.query<TransferRow>(`read ${name}`, {});
  }

  async readUnfinished(): Promise<string | undefined> {
    return await this.#database.patiently(async (query) => (await markOf(query))?.source);
  }

  async begin({ source, copier }: CopyMark): Promise<void> {
    await this.#database.patiently(async (query) => {
      await query("makeMark", {});
      await query("writeMark", { source, copier });
    });
  }

  async write(copier: string, change: { gone: readonly number[]; tasks: readonly TransferTask[] }): Promise<boolean> {
    const numbers = [...change.gone, ...change.tasks.map(({ number }) => number)];
    return await this.#asCopier(copier, async (query) => {
      await query("removeTasks", { numbers, copier });
      if (change.tasks.length > 0) await query("writeTasks", { ...fromTasks(change.tasks), copier });
    });
  }

  async writeTable(copier: string, table: PlainTable, rows: readonly TransferRow[]): Promise<boolean> {
    const values = toLists(rows, Object.keys(table.columns));
    return await this.#asCopier(copier, async (query) => {
      await query(`clear ${table.name}`, { copier });
      await query(`write ${table.name}`, { ...values, copier });
    });
  }

  async finish(copier: string): Promise<boolean> {
    return await this.#asCopier(copier, async (query) => {
      await query("moveNumbers", {});
      await query("dropMark", {});
    });
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  /** Does something unless another run has taken over: each statement sees for itself that it has not. */
  #asCopier(copier: string, act: (query: Query) => Promise<void>): Promise<boolean> {
    return this.#database.patiently(async (query, isAgain) => {
      const mark = await markOf(query);
      // Gone after a try whose answer never came: that try has finished it.
      if (mark?.copier !== copier) return isAgain && mark === undefined;
      await act(query);
      return true;
    });
  }
}

async function markOf(query: Query): Promise<CopyMark | undefined> {
  const [mark] = await query<{ found: boolean }>("hasMark", {});
  return mark?.found === true ? (await query<CopyMark>("readMark", {}))[0] : undefined;
}

/** Only here are names and values of variables written so that they can be compared. */
function toRow(row: TransferRow): TransferRow {
  const { environment } = row;
  return typeof environment === "string" ? { ...row, environment: JSON.stringify(toEnvironment(environment)) } : row;
}

function fromRow(row: TransferRow): TransferRow {
  const { environment } = row;
  const questions = fromQuestions(JSON.parse(row.questions as string) as TaskQuestion[]);
  return {
    ...row,
    environment: typeof environment === "string" ? fromEnvironment(JSON.parse(environment)) : null,
    open_questions: questions.openQuestions as number,
    lapses_at: row.finished_at === null ? (questions.lapsesAt as number | null) : null,
  };
}

function fromTasks(tasks: readonly TransferTask[]): PostgresValues {
  const rows = tasks.map(({ columns }) => fromRow(columns));
  const steps = tasks.flatMap(({ number, steps: own }) => own.map(([name, value]) => ({ number, name, value })));
  return {
    ...toLists(rows, [...allTaskColumns, "open_questions", "lapses_at"]),
    stepOf: steps.map(({ number }) => number),
    stepNames: steps.map(({ name }) => name),
    stepValues: steps.map(({ value }) => value),
  };
}

/** One list a column, as they go in one statement. */
function toLists(rows: readonly TransferRow[], names: readonly string[]): PostgresValues {
  return Object.fromEntries(names.map((name): [string, PostgresValue] => [name, rows.map((row) => row[name] ?? null)]));
}
