import type { Created, CreateOptions } from "../../task/store.ts";
import type { NewTask } from "../../task/task.ts";
import type { LiveCount, LiveCounts } from "../live-counts.ts";
import { fromEnvironment } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

interface InsteadOptions {
  readonly now: number;
  readonly counts: LiveCounts;
  /** The caller's tasks were counted. */
  readonly onCount: (count: LiveCount) => void;
}

/**
 * What there is instead of another task. A journalled call is nobody's company, and takes nobody's place. Part of a
 * transaction.
 */
export function insteadOf(
  file: TaskFile,
  fresh: NewTask,
  { joinsEqual, maxLive }: CreateOptions,
  { now, counts, onCount }: InsteadOptions,
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
  const lastNumber = file.first<{ number: number | null }>("lastNumber", {})?.number ?? 0;
  if (counts.isBelow(caller, maxLive, lastNumber)) return undefined;
  const { unfinished = 0, live = 0 } = file.first<{ unfinished: number; live: number }>("countLive", { caller }) ?? {};
  onCount({ unfinished, lastNumber });
  return live >= maxLive ? { kind: "full", live: maxLive } : undefined;
}
