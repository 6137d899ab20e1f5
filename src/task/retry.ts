import type { Task, TaskOutcome } from "./task.ts";

const maxBackoffMs = 60 * 60 * 1000;

/** When a failed attempt is followed by another; undefined when it is the task's end. */
export function retryAt(task: Task, outcome: TaskOutcome, now: number): number | undefined {
  const mayHelp = outcome.ending === "failed" && (outcome.cause === "command" || outcome.cause === "timeout");
  if (!mayHelp || task.attempts >= task.rules.maxAttempts) return undefined;
  return now + Math.min(task.rules.backoffMs * 2 ** (task.attempts - 1), maxBackoffMs);
}
