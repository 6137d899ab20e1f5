import type { Command } from "../command/command.ts";
import type { Task, TaskOutcome, TaskRules } from "./task.ts";

const maxBackoffMs = 60 * 60 * 1000;

/** How long after a failed attempt another follows; undefined when it is the task's end. */
export function retryDelay(task: Task, outcome: TaskOutcome): number | undefined {
  const mayHelp = outcome.ending === "failed" && (outcome.cause === "command" || outcome.cause === "timeout");
  if (!mayHelp || task.attempts >= task.rules.maxAttempts) return undefined;
  return Math.min(task.rules.backoffMs * 2 ** (task.attempts - 1), maxBackoffMs);
}

/** Twice is as good as once: it changes nothing, or says so, or has a retry rule. */
export function isRepeatable(command: Command): boolean {
  return command.effects === "read" || command.idempotent || command.retry !== undefined;
}

/** Safe to run again after a crash is what is repeatable, and what says itself when it is not: nothing was begun yet. */
export function rulesOf(command: Command): TaskRules {
  return {
    isSafe: isRepeatable(command) || command.foreign?.saysWhenSafe === true,
    maxAttempts: command.retry?.attempts ?? 1,
    backoffMs: Math.round((command.retry?.backoff ?? 1) * 1000),
  };
}
