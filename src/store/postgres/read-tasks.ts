import type { CallerScope } from "../../task/store.ts";
import type { Task } from "../../task/task.ts";
import type { Database, Query } from "./database.ts";
import { Gathered } from "./gathered.ts";
import { type PostgresRow, toGiven, toTask } from "./task-rows.ts";

/** One task, as its caller asks for it. */
interface WantedTask {
  readonly caller: string;
  readonly task_id: string;
}

interface FoundRow extends PostgresRow {
  readonly place: number;
  readonly is_small: boolean;
}

/** Of input and outcome together; who waits for a larger one waits for that alone. */
const smallBytes = 64 * 1024;
const large = "large";

/** Reads tasks, those of one moment together. */
export class Reading {
  readonly #database: Database;
  readonly #gathered: Gathered<WantedTask, Task | typeof large | undefined>;

  constructor(database: Database) {
    this.#database = database;
    this.#gathered = new Gathered({
      together: (wanted) => database.try((query) => readSome(query, wanted)),
      alone: (wanted, _, since) => database.insist((query) => readOne(query, wanted), false, since),
      monotonic: database.monotonic,
      isLost: () => false,
      lanes: 2,
    });
  }

  get({ caller }: CallerScope, taskId: string): Promise<Task | undefined> {
    const wanted = { caller, task_id: taskId };
    return this.#database.untilOver(async () => {
      const task = await this.#gathered.add(wanted);
      return task === large ? await this.#database.insist((query) => readOne(query, wanted)) : task;
    });
  }
}

async function readOne(query: Query, { caller, task_id }: WantedTask): Promise<Task | undefined> {
  const [row] = await query<PostgresRow>("get", { caller, taskId: task_id });
  return row === undefined ? undefined : toTask(row);
}

async function readSome(
  query: Query,
  wanted: readonly WantedTask[],
): Promise<readonly (Task | typeof large | undefined)[]> {
  const [only] = wanted;
  if (wanted.length === 1 && only !== undefined) return [await readOne(query, only)];
  const rows = await query<FoundRow>("getSome", { given: toGiven(wanted), smallBytes });
  const found = new Map(rows.map((row) => [row.place, row]));
  return wanted.map((_, place) => {
    const row = found.get(place);
    return row?.is_small === false ? large : row && toTask(row);
  });
}
