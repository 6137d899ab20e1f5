import type { Database, Query } from "./database.ts";
import { Gathered } from "./gathered.ts";
import { toGiven } from "./task-rows.ts";
import { isLost } from "./trouble.ts";

/** How one task ends, as the database takes it. */
export interface Settlement {
  readonly task_id: string;
  readonly fence: number;
  readonly status: "completed" | "failed" | "cancelled";
  readonly status_message: string | null;
  readonly outcome: string;
}

/** Settles tasks, those of one moment together; true for each that was held under its fence. */
export function gatherSettlements(database: Database): Gathered<Settlement, boolean> {
  return new Gathered({
    together: (settlements) => database.try((query) => settle(query, settlements)),
    alone: (settlement, isAgain, since) =>
      database.insist(
        async (query, wasTried) =>
          (await settle(query, [settlement]))[0] === true || (wasTried && (await wasSettled(query, settlement))),
        isAgain,
        since,
      ),
    monotonic: database.monotonic,
    isLost,
    lanes: 2,
  });
}

async function settle(query: Query, settlements: readonly Settlement[]): Promise<readonly boolean[]> {
  const rows = await query<{ place: number }>("settle", { given: toGiven(settlements) });
  const settled = new Set(rows.map(({ place }) => place));
  return settlements.map((_, place) => settled.has(place));
}

async function wasSettled(query: Query, { task_id, fence, status, outcome }: Settlement): Promise<boolean> {
  return (await query("wasSettled", { taskId: task_id, fence, status, outcome })).length > 0;
}
