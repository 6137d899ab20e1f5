import type { Command } from "../command/command.ts";
import type { Outcome } from "../command/outcome.ts";
import { retryDelayMs } from "../command/retries.ts";
import type { Task, TaskOutcome, TaskRules } from "./task.ts";

/** Milliseconds until the next attempt of a task; undefined when this outcome is its end. */
export function retryDelay({ rules, attempts }: Task, outcome: TaskOutcome | Outcome): number | undefined {
  return retryDelayMs(rules, Math.max(attempts, outcome.attempts ?? 1), outcome);
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
