type Listener = (taskId: string | undefined) => void;

interface Watched {
  readonly listeners: Set<Listener>;
  /** The last one that was seen when something had changed elsewhere. */
  version?: number | undefined;
}

/**
 * Who wants to hear of changes: of all, of one task's, or only that there may be work. A change costs what those who
 * asked for it cost, however many others wait.
 */
export class Listeners {
  readonly #ofAll = new Set<Listener>();
  readonly #ofWork = new Set<() => void>();
  readonly #ofTasks = new Map<string, Watched>();

  get isEmpty(): boolean {
    return this.#ofAll.size === 0 && this.#ofWork.size === 0 && this.#ofTasks.size === 0;
  }

  add(listener: Listener, taskId?: string): () => void {
    if (taskId === undefined) return addTo(this.#ofAll, listener);
    const watched = this.#ofTasks.get(taskId) ?? { listeners: new Set() };
    this.#ofTasks.set(taskId, watched);
    const remove = addTo(watched.listeners, listener);
    return () => {
      remove();
      if (watched.listeners.size === 0 && this.#ofTasks.get(taskId) === watched) this.#ofTasks.delete(taskId);
    };
  }

  addForWork(listener: () => void): () => void {
    return addTo(this.#ofWork, listener);
  }

  /** A task has changed; `isWork` when somebody may run it now. */
  tell(taskId: string, isWork: boolean): void {
    for (const listener of this.#ofAll) listener(taskId);
    for (const listener of this.#ofTasks.get(taskId)?.listeners ?? []) listener(taskId);
    if (isWork) for (const listener of this.#ofWork) listener();
  }

  /** Anything may have changed. Who listens to one task is told by `tellChanged`. */
  tellElsewhere(): void {
    for (const listener of this.#ofAll) listener(undefined);
    for (const listener of this.#ofWork) listener();
  }

  /** All of it may have changed, whichever task. */
  tellAll(): void {
    this.tellElsewhere();
    this.tellChanged(this.watched, new Map());
  }

  /** The tasks that somebody listens to. */
  get watched(): string[] {
    return [...this.#ofTasks.keys()];
  }

  /**
   * These are the versions of watched tasks now, of those that are still there: who listens to one that has another is
   * told.
   */
  tellChanged(taskIds: readonly string[], versions: ReadonlyMap<string, number>): void {
    for (const taskId of taskIds) {
      const watched = this.#ofTasks.get(taskId);
      const version = versions.get(taskId);
      if (watched === undefined || (version !== undefined && version === watched.version)) continue;
      watched.version = version;
      for (const listener of watched.listeners) listener(undefined);
    }
  }

  clear(): void {
    this.#ofAll.clear();
    this.#ofWork.clear();
    this.#ofTasks.clear();
  }
}

function addTo<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
