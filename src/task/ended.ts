import { getHeapStatistics } from "node:v8";
import type { CallerScope } from "./store.ts";
import { type EndedTask, isExpired } from "./task.ts";
import { weigh } from "./weigh.ts";

/** How much of what has ended a process remembers: the last tasks, so many and so many bytes of input and outcome. */
const remembered = {
  count: 1_000,
  bytes: Math.min(16 * 1024 * 1024, getHeapStatistics().heap_size_limit / 32),
};

/**
 * Tasks that are known to have ended, for when the store can no longer be asked. An end is final, so what is remembered
 * is never wrong; it is bounded, and gone with the process.
 */
export class EndedTasks {
  readonly #tasks = new Map<string, { readonly task: EndedTask; readonly bytes: number }>();
  readonly #listeners = new Map<string, Set<(taskId: string) => void>>();
  #bytes = 0;

  keep(task: EndedTask): void {
    if (this.#tasks.has(task.taskId)) return;
    const bytes = weigh(task.input) + weigh(task.outcome);
    this.#tasks.set(task.taskId, { task, bytes });
    this.#bytes += bytes;
    for (const [taskId, oldest] of this.#tasks) {
      if (this.#tasks.size <= remembered.count && this.#bytes <= remembered.bytes) break;
      this.#tasks.delete(taskId);
      this.#bytes -= oldest.bytes;
    }
    for (const listener of this.#listeners.get(task.taskId) ?? []) listener(task.taskId);
  }

  get({ caller }: CallerScope, taskId: string, now: number): EndedTask | undefined {
    const task = this.#tasks.get(taskId)?.task;
    return task === undefined || task.caller !== caller || isExpired(task, now) ? undefined : task;
  }

  /** Calls back when this one is remembered. */
  onKeep(taskId: string, listener: (taskId: string) => void): () => void {
    const listeners = this.#listeners.get(taskId) ?? new Set();
    this.#listeners.set(taskId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(taskId) === listeners) this.#listeners.delete(taskId);
    };
  }
}
