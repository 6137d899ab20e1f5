import type { Command } from "../command/command.ts";
import type { Task, TaskOutcome, TaskRules } from "./task.ts";

const maxBackoffMs = 60 * 60 * 1000;

/** When a failed attempt is followed by another; undefined when it is the task's end. */
export function retryAt(task: Task, outcome: TaskOutcome, now: number): number | undefined {
  const mayHelp = outcome.ending === "failed" && (outcome.cause === "command" || outcome.cause === "timeout");
  if (!mayHelp || task.attempts >= task.rules.maxAttempts) return undefined;
  return now + Math.min(task.rules.backoffMs * 2 ** (task.attempts - 1), maxBackoffMs);
}

/** Safe to run again after a crash: it changes nothing, or says that twice is as good as once, or has a retry rule. */
export function rulesOf(command: Command): TaskRules {
  const isSafe = command.effects === "read" || command.idempotent || command.retry !== undefined;
  return {
    isSafe,
    maxAttempts: command.retry?.attempts ?? 1,
    backoffMs: Math.round((command.retry?.backoff ?? 1) * 1000),
  };
}
