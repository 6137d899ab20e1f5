import { UsageError } from "../errors.ts";

/** Throws when flags that say how a call is run and how its result is printed exclude each other. */
export function refuseExclusive(options: Readonly<Record<string, unknown>>): void {
  const { json, yaml, async: isAsync, detach, taskTtl, out } = options;
  if (json === true && yaml === true) throw new UsageError("--json and --yaml exclude each other; give one of them.");
  if (detach === true && isAsync === true)
    throw new UsageError("--detach and --async exclude each other; --async stays and follows the task.");
  if (taskTtl !== undefined && isAsync !== true && detach !== true)
    throw new UsageError("--task-ttl is for a task; add --async or --detach.");
  if (out !== undefined && detach === true)
    throw new UsageError("--out and --detach exclude each other; --detach ends before there is a result to write.");
}
