import { createId } from "../../ids.ts";
import type { ClaimRequest } from "../../task/store.ts";
import type { Task } from "../../task/task.ts";
import type { Database } from "./database.ts";
import { fromEnvironment, fromShares, type PostgresRow, toTask } from "./task-rows.ts";

interface ClaimedRow extends Omit<PostgresRow, "task_id"> {
  /** Null when nothing was taken … */
  readonly task_id: string | null;
  /** … though there was something, which others were just taking. */
  readonly seen: boolean;
}

/** Takes a task, in one statement; again, where others on other nodes took what was seen. */
export function claimTask(database: Database, request: ClaimRequest): Promise<Task | undefined> {
  const { project, worker, leaseMs, taskId, except = [], shares } = request;
  const environment = fromEnvironment(request.environment);
  const claim = { project, worker, leaseMs, environment, except, claimId: createId() };
  return database.patiently(async (query, isAgain) => {
    // The worker keeps the leases of all that it has claimed: what it does not know of would be held for ever.
    const found = isAgain ? await query<PostgresRow>("wasClaimed", claim) : [];
    if (found[0] !== undefined) return toTask(found[0]);
    for (;;) {
      const [row] = await (taskId === undefined
        ? query<ClaimedRow>("claim", { ...claim, ...fromShares(shares) })
        : query<ClaimedRow>("claimNamed", { ...claim, taskId }));
      if (row === undefined) return undefined;
      if (row.task_id !== null) return toTask(row as PostgresRow);
      if (!row.seen) return undefined;
    }
  });
}
