import type { Created, CreateOptions } from "../../task/store.ts";
import type { NewTask } from "../../task/task.ts";
import { fromEnvironment } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/**
 * What there is instead of another task. A journalled call is nobody's company, and takes nobody's place. Part of a
 * transaction.
 */
export function insteadOf(
  file: TaskFile,
  fresh: NewTask,
  { joinsEqual, maxLive, maxWaiting = Number.MAX_SAFE_INTEGER }: CreateOptions,
  now: number,
): Created | undefined {
  const { caller, project, digest, idempotencyKey } = fresh;
  if (idempotencyKey !== undefined) {
    file.run("sweepKey", { caller, project, idempotencyKey, now });
    const repeated = file.task("findByKey", { caller, project, idempotencyKey });
    if (repeated !== undefined) return { kind: "repeated", task: repeated };
  }
  if (fresh.isCall) return undefined;
  const environment = fromEnvironment(fresh.environment);
  const equal = joinsEqual ? file.task("findEqual", { caller, project, digest, environment }) : undefined;
  if (equal !== undefined) return { kind: "joined", task: equal };
  const live = file.first<{ live: number }>("countLive", { caller, maxLive })?.live ?? 0;
  if (live >= maxLive) return { kind: "full", live };
  const waiting = file.first<{ live: number }>("countWaiting", { caller, maxWaiting })?.live ?? 0;
  const oldest = waiting >= maxWaiting ? file.task("oldestWaiting", { caller }) : undefined;
  return oldest === undefined ? undefined : { kind: "full", live: waiting, oldest };
}
