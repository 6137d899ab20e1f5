import { createId } from "../../ids.ts";
import type { ClaimRequest } from "../../task/store.ts";
import type { Task } from "../../task/task.ts";
import type { Database, Query } from "./database.ts";
import { fromEnvironment, fromShares, type PostgresRow, type PostgresValues, toTask } from "./task-rows.ts";
import { isLost } from "./trouble.ts";
import type { UnsettledClaims } from "./unsettled-claims.ts";

/** However many callers wait, so many of them are looked at for one claim. */
const callersAtOnce = 4;

interface ClaimedRow extends Omit<PostgresRow, "task_id"> {
  /** Null when nothing was taken … */
  readonly task_id: string | null;
  /** … though there was something, which others were just taking. */
  readonly seen: boolean;
}

interface FoundRow extends PostgresRow {
  readonly claim_id: string;
}

/**
 * Takes a task, in one statement; again, where others on other nodes took what was seen. Every try has an id of its
 * own: what one takes whose answer was lost is found by it, now or, when nobody can any more, by those who look later.
 * Where many callers wait, those that follow `after` are looked at.
 */
export async function claimTask(
  database: Database,
  unsettled: UnsettledClaims,
  request: ClaimRequest,
  after: string,
): Promise<Task | undefined> {
  const { project, worker, leaseMs, except = [] } = request;
  const claim = { project, worker, leaseMs, environment: fromEnvironment(request.environment), except };
  const lost = new Set<string>();
  try {
    return await database.patiently(async (query) => {
      const [found] = lost.size > 0 ? await query<FoundRow>("wasClaimed", { worker, claimIds: [...lost] }) : [];
      if (found !== undefined) {
        lost.delete(found.claim_id);
        return toTask(found);
      }
      const claimId = createId();
      return await take(query, request, { ...claim, claimId, after }).catch((error: unknown) => {
        if (isLost(error)) lost.add(claimId);
        throw error;
      });
    });
  } finally {
    unsettled.add(worker, [...lost]);
  }
}

async function take(query: Query, { taskId, shares }: ClaimRequest, values: PostgresValues): Promise<Task | undefined> {
  for (;;) {
    const [row] = await (taskId === undefined
      ? query<ClaimedRow>("claim", { ...values, ...fromShares(shares), callersAtOnce })
      : query<ClaimedRow>("claimNamed", { ...values, taskId }));
    if (row === undefined) return undefined;
    if (row.task_id !== null) return toTask(row as PostgresRow);
    if (!row.seen) return undefined;
  }
}
