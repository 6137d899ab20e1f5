import { differingNames, type EnvironmentMarks, isTerminal, type Task, type TaskOutcome } from "../task/task.ts";
import { apply } from "../task/transitions.ts";

/** So many tasks are handled in one call. */
export const maxUnclaimable = 100;

/** What becomes of a queued task that no worker may claim; undefined if nothing does. The outcome is set if it ends. */
export function unclaimable(
  task: Task,
  environment: EnvironmentMarks,
  now: number,
): { readonly statusMessage: string; readonly outcome: TaskOutcome | undefined } | undefined {
  const names = differingNames(task.environment, environment);
  const after = apply(task, { type: "unclaimable", names }, now);
  if (after?.statusMessage === undefined) return undefined;
  return { statusMessage: after.statusMessage, outcome: isTerminal(after) ? after.outcome : undefined };
}
