import type { Scope, TaskStore } from "./store.ts";
import { isTerminal, type Task } from "./task.ts";

/** Waits until a task satisfies `until`; undefined when there is no such task, or no longer. Rejects with the signal's reason. */
export async function waitForTask(
  store: TaskStore,
  scope: () => Scope,
  taskId: string,
  options: { until?: (task: Task) => boolean; signal?: AbortSignal; onTask?: (task: Task) => void } = {},
): Promise<Task | undefined> {
  const isDone = options.until ?? isTerminal;
  let wake = Promise.withResolvers<void>();
  const stopListening = store.onChange((changed) => {
    if (changed === undefined || changed === taskId) wake.resolve();
  });
  const onAbort = () => wake.resolve();
  options.signal?.addEventListener("abort", onAbort, { once: true });
  store.watchClosely(true);
  let seen = 0;
  try {
    for (;;) {
      options.signal?.throwIfAborted();
      const current = wake;
      const task = await store.get(scope(), taskId);
      if (task === undefined) return undefined;
      if (task.version !== seen) options.onTask?.(task);
      seen = task.version;
      if (isDone(task)) return task;
      await current.promise;
      wake = Promise.withResolvers<void>();
    }
  } finally {
    store.watchClosely(false);
    stopListening();
    options.signal?.removeEventListener("abort", onAbort);
  }
}
