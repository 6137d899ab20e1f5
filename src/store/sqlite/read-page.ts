import { BadCursor } from "../../task/limits.ts";
import type { ListFilter, TaskPage } from "../../task/store.ts";
import { liveStatuses, type TaskStatus } from "../../task/task.ts";
import { fromCursor, toCursor } from "../page-cursor.ts";
import { fromEnvironment, type TaskRow, toTask } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/** One page of a caller's tasks, the newest first. */
export function readPage(file: TaskFile, caller: string, filter: ListFilter, now: number): TaskPage {
  const before = filter.cursor === undefined ? Number.MAX_SAFE_INTEGER : fromCursor(caller, filter.cursor);
  if (before === undefined) throw new BadCursor();
  const wants = (...statuses: readonly TaskStatus[]) =>
    filter.statuses === undefined || statuses.some((status) => filter.statuses?.includes(status)) ? 1 : 0;
  const rows = file.all<TaskRow>("list", {
    caller,
    now,
    before,
    project: filter.project ?? null,
    environment: fromEnvironment(filter.environment),
    statuses: filter.statuses === undefined ? null : JSON.stringify(filter.statuses),
    live: wants(...liveStatuses),
    completed: wants("completed"),
    failed: wants("failed"),
    cancelled: wants("cancelled"),
    withCalls: filter.withCalls ? 1 : 0,
    limit: filter.limit + 1,
  });
  const page = rows.slice(0, filter.limit);
  const last = page.at(-1);
  return {
    tasks: page.map(toTask),
    nextCursor: rows.length > page.length && last !== undefined ? toCursor(caller, last.number) : undefined,
  };
}
