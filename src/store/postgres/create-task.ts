import { createId } from "../../ids.ts";
import type { Created, CreateOptions } from "../../task/store.ts";
import type { NewTask } from "../../task/task.ts";
import type { Database, Query } from "./database.ts";
import { fromNewTask, type PostgresRow, type PostgresValues, toTask } from "./task-rows.ts";
import type { UnsettledClaims } from "./unsettled-claims.ts";

/** What was made, or is there instead; and the ids of what had to go for it. */
export interface Making {
  readonly created: Created;
  readonly forgotten: readonly string[];
}

interface MadeRow extends PostgresRow {
  readonly kind: "repeated" | "joined" | "full" | null;
  readonly id: string | null;
  readonly live: number;
  readonly forgotten: readonly string[];
}

/** Makes a task, unless there is something instead of it, in one statement. */
export async function createTask(
  database: Database,
  unsettled: UnsettledClaims,
  fresh: NewTask,
  options: CreateOptions,
): Promise<Making> {
  if (fresh.isCall && options.claim === undefined)
    throw new Error("A call is journalled by whoever runs it, so it needs a claim.");
  const claimId = options.claim === undefined ? null : createId();
  const input = JSON.stringify(fresh.input ?? {});
  const values = {
    ...fromNewTask(fresh, options.claim),
    input,
    joinsEqual: options.joinsEqual,
    maxLive: toLimit(options.maxLive),
    maxWaiting: toLimit(options.maxWaiting),
    keepCount: options.keeps === undefined ? null : toLimit(options.keeps.count),
    keepBytes: options.keeps === undefined ? null : toLimit(options.keeps.bytes),
    claimId,
  };
  try {
    return await database.share({
      // Whoever makes tasks for a caller locks out others who do.
      order: `0 ${fresh.caller}`,
      bytes: input.length,
      act: async (query, isAgain) => {
        const made = isAgain ? await findMade(query, values) : undefined;
        for (let making = made; ; making = await make(query, values)) if (making !== undefined) return making;
      },
    });
  } catch (error) {
    // Whoever wanted it is told that it was not made, and would never run it.
    if (options.claim !== undefined && claimId !== null) unsettled.add(options.claim.worker, [claimId], true);
    throw error;
  }
}

/** Undefined when what was there instead went away in that instant. */
async function make(query: Query, values: PostgresValues): Promise<Making | undefined> {
  const [row] = await query<MadeRow>("create", values);
  if (row === undefined) return undefined;
  const { kind, id, live, forgotten } = row;
  if (kind === null) {
    const task = toTask({ ...row, input: values.input as string });
    return { created: { kind: "created", task }, forgotten };
  }
  if (kind === "full" && id === null) return { created: { kind, live }, forgotten };
  const [found] = await query<PostgresRow>("find", { taskId: id });
  if (found === undefined) return undefined;
  const task = toTask(found);
  return { created: kind === "full" ? { kind, live, oldest: task } : { kind, task }, forgotten };
}

/** Ids are never used twice: a task of this one is what an earlier try has made, though nobody heard of it. */
async function findMade(query: Query, { taskId, caller }: PostgresValues): Promise<Making | undefined> {
  const [row] = await query<PostgresRow>("wasCreated", { taskId: taskId as string, caller: caller as string });
  return row === undefined ? undefined : { created: { kind: "created", task: toTask(row) }, forgotten: [] };
}

function toLimit(limit = Number.MAX_SAFE_INTEGER): number {
  return Math.min(limit, Number.MAX_SAFE_INTEGER);
}
