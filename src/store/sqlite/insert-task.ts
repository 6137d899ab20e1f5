import type { Task } from "../../task/task.ts";
import { type SqlValues, type TaskRow, toTask } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/** Puts a task on record, and what it was asked with apart from it. Part of a transaction. */
export function insertTask(file: TaskFile, values: SqlValues & { readonly input: string }): Task {
  const { input } = values;
  const row = file.first<TaskRow>("insert", values) as TaskRow;
  file.run("insertInput", { number: row.number, input });
  return toTask({ ...row, input });
}
