import { createId } from "../../ids.ts";
import type { Created, CreateOptions } from "../../task/store.ts";
import type { NewTask, Task } from "../../task/task.ts";
import { begin } from "../../task/transitions.ts";
import { LiveCounts } from "../live-counts.ts";
import type { Database, Query } from "./database.ts";
import { Gathered } from "./gathered.ts";
import { fromNewTask, type NewRow, type PostgresRow, toGiven, toTask } from "./task-rows.ts";
import { isLost } from "./trouble.ts";
import type { UnsettledClaims } from "./unsettled-claims.ts";

/** What was made, or is there instead; and the ids of what had to go for it. */
export interface Making {
  readonly created: Created;
  readonly forgotten: readonly string[];
}

/** One task that is to be made, as the database takes it. */
interface Wanted extends NewRow {
  readonly input: string;
  readonly claim_id: string | null;
  readonly joins_equal: boolean;
  readonly max_live: number;
  readonly known_unfinished: number | null;
  readonly known_number: number | null;
  readonly keep_count: number | null;
  readonly keep_bytes: number | null;
}

/** What came of it: made at this time, or what there is instead. */
interface Answered {
  readonly place: number;
  /** Busy: somebody else is making one for the same caller. */
  readonly kind: "repeated" | "joined" | "full" | "busy" | null;
  readonly id: string | null;
  readonly live: number;
  readonly at: number;
  readonly forgotten: readonly string[];
  /** The caller's unfinished tasks and the highest task number; null where they were not counted. */
  readonly unfinished: number | null;
  readonly last_number: number | null;
}

/** Who makes one for the same caller elsewhere is done in a moment, mostly. */
const busyMs = 3;
const maxBusyMs = 500;

/** Makes tasks, unless there is something instead of one: those of one moment together. */
export class Creating {
  readonly #database: Database;
  readonly #unsettled: UnsettledClaims;
  readonly #liveCounts = new LiveCounts();
  readonly #gathered: Gathered<Wanted, Answered | Task>;

  constructor(database: Database, unsettled: UnsettledClaims) {
    this.#database = database;
    this.#unsettled = unsettled;
    this.#gathered = new Gathered({
      together: (wanted) => database.try((query) => make(query, wanted)),
      alone: (wanted, isAgain, since) =>
        database.insist((query, wasTried) => makeOne(query, wanted, wasTried), isAgain, since),
      monotonic: database.monotonic,
      isLost,
      // Those of one caller would only wait for each other.
      lanes: 1,
    });
  }

  async create(fresh: NewTask, options: CreateOptions): Promise<Making> {
    const { claim, keeps } = options;
    if (fresh.isCall && claim === undefined)
      throw new Error("A call is journalled by whoever runs it, so it needs a claim.");
    const claimId = claim === undefined ? null : createId();
    const known = this.#liveCounts.get(fresh.caller);
    const wanted = {
      ...fromNewTask(fresh, claim),
      input: JSON.stringify(fresh.input ?? {}),
      claim_id: claimId,
      joins_equal: options.joinsEqual,
      max_live: toLimit(options.maxLive),
      known_unfinished: known?.unfinished ?? null,
      known_number: known?.lastNumber ?? null,
      keep_count: keeps === undefined ? null : toLimit(keeps.count),
      keep_bytes: keeps === undefined ? null : toLimit(keeps.bytes),
    };
    try {
      return await this.#database.untilOver(() => this.#make(wanted, fresh, claim));
    } catch (error) {
      // Whoever wanted it is told that it was not made, and would never run it.
      if (claim !== undefined && claimId !== null) this.#unsettled.add(claim.worker, [claimId], true);
      throw error;
    }
  }

  /** Who finds its caller busy for long waits for that alone. */
  #ask(wanted: Wanted, since: number): Promise<Answered | Task> {
    const isPatient = this.#database.monotonic() - since < maxBusyMs;
    const bytes = wanted.input.length + wanted.questions.length;
    return this.#gathered.add(wanted, isPatient ? bytes : Number.POSITIVE_INFINITY);
  }

  async #make(wanted: Wanted, fresh: NewTask, claim: CreateOptions["claim"]): Promise<Making> {
    const since = this.#database.monotonic();
    for (;;) {
      const answered = await this.#ask(wanted, since);
      if ("taskId" in answered) return { created: { kind: "created", task: answered }, forgotten: [] };
      const { kind, id, live, at, forgotten, unfinished, last_number: lastNumber } = answered;
      if (unfinished !== null && lastNumber !== null) this.#liveCounts.note(fresh.caller, { unfinished, lastNumber });
      if (kind === "busy") {
        await this.#database.sleep(busyMs);
        continue;
      }
      if (kind === null) {
        const environment = wanted.environment === null ? undefined : fresh.environment;
        const task = begin({ ...fresh, environment, input: JSON.parse(wanted.input) }, at, claim);
        return { created: { kind: "created", task }, forgotten };
      }
      if (kind === "full") return { created: { kind, live }, forgotten };
      const [found] = await this.#database.insist((query) => query<PostgresRow>("find", { taskId: id }));
      // What was there instead may have gone away in that instant.
      if (found === undefined) continue;
      const task = toTask(found);
      return { created: { kind, task }, forgotten };
    }
  }
}

/** A duplicate of itself is what an earlier try has made just now. */
const duplicate = "23505";

async function make(query: Query, wanted: readonly Wanted[]): Promise<readonly Answered[]> {
  const rows = await query<Answered>("create", { given: toGiven(wanted) });
  return rows.toSorted((a, b) => a.place - b.place);
}

async function makeOne(query: Query, wanted: Wanted, wasTried: boolean): Promise<Answered | Task> {
  const find = async () => (wasTried ? await findMade(query, wanted) : undefined);
  try {
    return (await find()) ?? ((await make(query, [wanted]))[0] as Answered);
  } catch (error) {
    const made = (error as { code?: unknown }).code === duplicate ? await find() : undefined;
    if (made === undefined) throw error;
    return made;
  }
}

/** Ids are never used twice: a task of this one is what an earlier try has made, though nobody heard of it. */
async function findMade(query: Query, { task_id, caller }: Wanted): Promise<Task | undefined> {
  const [row] = await query<PostgresRow>("wasCreated", { taskId: task_id, caller });
  return row === undefined ? undefined : toTask(row);
}

function toLimit(limit = Number.MAX_SAFE_INTEGER): number {
  return Math.min(limit, Number.MAX_SAFE_INTEGER);
}
