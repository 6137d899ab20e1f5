import type Database from "better-sqlite3";
import { earlierLocalKey } from "../../command/caller.ts";
import type { LocalOwner } from "../open.ts";
import { enterWal, isBusy } from "./connection.ts";
import { everyCaller } from "./migrate-file.ts";
import type { SqlValues } from "./rows.ts";
import { transactOn } from "./transact.ts";

const ofProject = "(:project is null or project = :project)";
const statements = {
  isRewritten: "select 1 from rewritten_callers where caller in (:key, :everyCaller)",
  noteRewritten: "insert into rewritten_callers (caller) values (:key) on conflict do nothing",
  /** By indexes: a look at every row would take long in a large file. */
  hasEarlier: `
    select 1 from tasks indexed by tasks_unfinished where caller = :earlier and finished_at is null and ${ofProject}
    union all
    select 1 from tasks indexed by tasks_ended
    where caller = :earlier and status in ('completed', 'failed', 'cancelled') and finished_at is not null and ${ofProject}
    limit 1`,
  /** A key that this caller has used already belongs to the task that has it. */
  dropRepeatedKeys: `
    update tasks set idempotency_key = null
    where caller = :earlier and ${ofProject} and idempotency_key is not null and exists (
      select 1 from tasks as own
      where own.caller = :key and own.project = tasks.project and own.idempotency_key = tasks.idempotency_key)`,
  rewriteTasks: `update tasks set caller = :key where caller = :earlier and ${ofProject}`,
  rewriteSessions: `
    update sessions set caller = substr(caller, 1, length(caller) - length(:earlier)) || :key
    where caller glob '* ' || :earlier and (:project is null or caller = :project || ' ' || :earlier)`,
};

/**
 * Brings the rows that versions before have written as `local` under the key of the local user whose file it is. True
 * when that is done. False while another process has the file open, which may be of such a version: until then the rows
 * stand as `local` for everybody, see `EarlierNames`.
 */
export function rewriteLocalRows(db: Database.Database, owner: LocalOwner): boolean {
  const values = { ...owner, project: owner.project ?? null, earlier: earlierLocalKey, everyCaller };
  if (has(db, "isRewritten", values)) {
    // An old process may have written after that all the same.
    if (has(db, "hasEarlier", values)) transactOn(db).immediate(() => rewrite(db, values));
    return true;
  }
  return whenAlone(db, () => rewrite(db, values));
}

function rewrite(db: Database.Database, values: SqlValues): void {
  for (const name of ["dropRepeatedKeys", "rewriteTasks", "rewriteSessions", "noteRewritten"] as const)
    db.prepare(statements[name]).run(values);
}

function has(db: Database.Database, name: "isRewritten" | "hasEarlier", values: SqlValues): boolean {
  return db.prepare(statements[name]).get(values) !== undefined;
}

/**
 * Does something while no other connection has the file open; false where one has. SQLite leaves WAL mode only then, and
 * outside WAL mode nobody enters during an exclusive transaction.
 */
function whenAlone(db: Database.Database, act: () => void): boolean {
  const timeout = db.pragma("busy_timeout", { simple: true }) as number;
  db.pragma("busy_timeout = 0");
  try {
    db.pragma("journal_mode = DELETE");
    return transactOn(db).exclusive(() => {
      // Another process may have come in, and entered WAL mode, before the transaction began.
      if (db.pragma("journal_mode", { simple: true }) !== "delete") return false;
      act();
      return true;
    }) as boolean;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  } finally {
    enterWal(db);
    // The files beside the database are made by the first look, and are known by then.
    db.pragma("user_version");
    db.pragma(`busy_timeout = ${timeout}`);
  }
}

/** Translates between the key of the local user and `local`, as which their rows stand in the file. */
export class EarlierNames {
  readonly #key: string;

  constructor({ key }: LocalOwner) {
    this.#key = key;
  }

  /** Values of a statement, as the file has them. */
  toStored(values: SqlValues): SqlValues {
    const { caller, full, fullOfEndless, turns } = values;
    if (typeof caller === "string") {
      // Sessions are kept under project and caller.
      const isOurs = caller === this.#key || caller.endsWith(` ${this.#key}`);
      return isOurs ? { ...values, caller: caller.slice(0, -this.#key.length) + earlierLocalKey } : values;
    }
    if (turns === undefined) return values;
    const named = (list: string | number | null | undefined) =>
      typeof list === "string" ? list.replaceAll(JSON.stringify(this.#key), JSON.stringify(earlierLocalKey)) : list;
    return {
      ...values,
      full: named(full) ?? null,
      fullOfEndless: named(fullOfEndless) ?? null,
      turns: named(turns) ?? null,
    };
  }

  /** A row of the file, as everybody else knows it. */
  fromStored(row: unknown): unknown {
    const task = row as { caller?: string };
    if (task.caller === earlierLocalKey) task.caller = this.#key;
    return task;
  }
}
