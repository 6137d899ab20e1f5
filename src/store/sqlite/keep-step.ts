import type { Claim } from "../../task/store.ts";
import type { TaskRules } from "../../task/task.ts";
import type { TaskFile } from "./task-file.ts";

interface KeptStep {
  readonly name: string;
  readonly value: string;
}

/** A step, and with it, where that is said, whether the task may be run again: both or neither. */
export function keepStep(file: TaskFile, claim: Claim, step: KeptStep, rules?: Pick<TaskRules, "isSafe">): boolean {
  const keep = () => file.run("keepStep", { ...claim, ...step }) > 0;
  if (rules === undefined) return keep();
  const isSafe = rules.isSafe ? 1 : 0;
  return file.transaction(() => keep() && file.run("sayIfSafe", { ...claim, isSafe }) > 0);
}
