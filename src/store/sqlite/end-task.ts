import type { SqlValues } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

export type EndValues = SqlValues & { readonly taskId: string; readonly outcome: string };

/** A task that has just ended, and how. */
export interface EndedRow {
  readonly number: number;
  readonly task_id: string;
  readonly outcome: string;
}

/** Ends a task; how many that was, none when somebody else was first. Part of a transaction. */
export function endTask(file: TaskFile, name: "settle" | "cancel" | "lapse", values: EndValues): number {
  const ended = file.first<{ number: number; outcome?: string }>(name, values);
  if (ended === undefined) return 0;
  keepEnd(file, { number: ended.number, task_id: values.taskId, outcome: ended.outcome ?? values.outcome });
  return 1;
}

/** What an end leaves behind: the outcome, and no steps. Part of the same transaction. */
export function keepEnd(file: TaskFile, { number, task_id: taskId, outcome }: EndedRow): void {
  file.run("keepOutcome", { number, outcome });
  file.run("dropSteps", { taskId });
}
