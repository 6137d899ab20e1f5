import { BadCursor } from "../../task/limits.ts";
import type { ListFilter, TaskPage } from "../../task/store.ts";
import { fromCursor, toCursor } from "../page-cursor.ts";
import type { Database } from "./database.ts";
import { fromEnvironment, type PostgresRow, toTask } from "./task-rows.ts";

/** One page of a caller's tasks, the newest first. */
export async function readPage(database: Database, caller: string, filter: ListFilter): Promise<TaskPage> {
  const before = filter.cursor === undefined ? Number.MAX_SAFE_INTEGER : fromCursor(caller, filter.cursor);
  if (before === undefined) throw new BadCursor();
  const rows = await database.query<PostgresRow>(filter.statuses === undefined ? "list" : "listByStatus", {
    caller,
    before,
    project: filter.project ?? null,
    environment: fromEnvironment(filter.environment),
    statuses: [...new Set(filter.statuses)],
    withCalls: filter.withCalls === true,
    limit: filter.limit + 1,
  });
  const page = rows.slice(0, filter.limit);
  const last = page.at(-1);
  return {
    tasks: page.map(toTask),
    nextCursor: rows.length > page.length && last !== undefined ? toCursor(caller, last.number) : undefined,
  };
}
