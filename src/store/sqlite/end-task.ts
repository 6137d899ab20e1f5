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
export function endTask(
  file: TaskFile,
  name: "settle" | "cancel" | "lapse" | "giveUpUnclaimable",
  values: EndValues,
): number {
  if (name === "settle") return settleTask(file, values);
  const ended = file.first<{ number: number; outcome?: string }>(name, values);
  if (ended === undefined) return 0;
  keepEnd(file, { number: ended.number, task_id: values.taskId, outcome: ended.outcome ?? values.outcome });
  return 1;
}

/** Its outcome is known ahead, so nothing has to be given back. */
function settleTask(file: TaskFile, values: EndValues): number {
  const { taskId, outcome } = values;
  if (file.run("settle", values) === 0) return 0;
  file.run("keepOutcomeOf", { taskId, outcome });
  file.run("dropSteps", { taskId });
  return 1;
}

/** What an end leaves behind: the outcome, and no steps. Part of the same transaction. */
export function keepEnd(file: TaskFile, { number, task_id: taskId, outcome }: EndedRow): void {
  file.run("keepOutcome", { number, outcome });
  file.run("dropSteps", { taskId });
}
