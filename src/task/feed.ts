import type { CallerScope, TaskStore } from "./store.ts";
import { isTerminal, type Task } from "./task.ts";

/** What it takes to wait for a task. */
export type WatchedStore = Pick<TaskStore, "get" | "onChange" | "watchClosely">;

/**
 * Waits until a task satisfies `until`; undefined when there is no such task, or no longer. Rejects with the signal's
 * reason.
 */
export async function waitForTask(
  store: WatchedStore,
  scope: CallerScope,
  taskId: string,
  options: { until?: (task: Task) => boolean; signal?: AbortSignal; onTask?: (task: Task) => void } = {},
): Promise<Task | undefined> {
  const isDone = options.until ?? isTerminal;
  let wake = Promise.withResolvers<void>();
  const feed = feedOf(store, scope.caller, taskId);
  const onNews = () => wake.resolve();
  feed.join(onNews);
  options.signal?.addEventListener("abort", onNews, { once: true });
  store.watchClosely(true);
  let seen: Task | undefined;
  try {
    for (;;) {
      options.signal?.throwIfAborted();
      const current = wake;
      const task = await feed.read(scope);
      if (task === undefined) return undefined;
      // An end that is told from memory counts its versions as whoever ran it knew them.
      if (task.version !== seen?.version || task.status !== seen.status) options.onTask?.(task);
      seen = task;
      if (isDone(task)) return task;
      await current.promise;
      wake = Promise.withResolvers<void>();
    }
  } finally {
    store.watchClosely(false);
    feed.leave(onNews);
    options.signal?.removeEventListener("abort", onNews);
  }
}

/** Of many who wait for one task, so many are woken in one turn of the event loop. */
const wokenATurn = 100;
/** By store, then by caller and task. */
const feeds = new WeakMap<WatchedStore, Map<string, Feed>>();

function feedOf(store: WatchedStore, caller: string, taskId: string): Feed {
  const known = feeds.get(store) ?? new Map<string, Feed>();
  feeds.set(store, known);
  const key = `${caller} ${taskId}`;
  const feed = known.get(key) ?? new Feed(store, taskId, () => known.delete(key));
  known.set(key, feed);
  return feed;
}

/** What one caller hears of one task: a change is read once for all who wait for it. */
class Feed {
  readonly #store: WatchedStore;
  readonly #taskId: string;
  readonly #onEmpty: () => void;
  readonly #waiting = new Set<() => void>();
  #stopListening: (() => void) | undefined;
  #reading: Promise<Task | undefined> | undefined;

  constructor(store: WatchedStore, taskId: string, onEmpty: () => void) {
    this.#store = store;
    this.#taskId = taskId;
    this.#onEmpty = onEmpty;
  }

  join(onNews: () => void): void {
    this.#stopListening ??= this.#store.onChange(() => this.#changed(), this.#taskId);
    this.#waiting.add(onNews);
  }

  leave(onNews: () => void): void {
    this.#waiting.delete(onNews);
    if (this.#waiting.size > 0) return;
    this.#stopListening?.();
    this.#onEmpty();
  }

  /**
   * The task as it is. Only what was begun after the last change is shared: whoever waits has heard of every one that
   * comes after it.
   */
  read(scope: CallerScope): Promise<Task | undefined> {
    if (this.#reading !== undefined) return this.#reading;
    const reading = this.#store.get(scope, this.#taskId).finally(() => {
      if (this.#reading === reading) this.#reading = undefined;
    });
    this.#reading = reading;
    return reading;
  }

  #changed(): void {
    this.#reading = undefined;
    this.#wake([...this.#waiting]);
  }

  #wake(waiting: (() => void)[]): void {
    for (const onNews of waiting.splice(0, wokenATurn)) onNews();
    if (waiting.length > 0) setImmediate(() => this.#wake(waiting));
  }
}
