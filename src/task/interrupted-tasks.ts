import type { Clock } from "../clock.ts";
import { maxPageSize } from "./limits.ts";
import type { TaskStore } from "./store.ts";
import type { Task } from "./task.ts";
import { isInterrupted } from "./transitions.ts";

/** The tasks of a caller are read again after this time. */
const freshMs = 1_000;
/** Above so many callers all are forgotten. */
const maxCallers = 1_000;
/** Above so many named tasks all are forgotten, and may be named again. */
const maxNamed = 10_000;

interface CallerTasks {
  readonly readAt: number;
  readonly tasks: Promise<readonly Task[]>;
  /** False until they have been read. */
  isEmpty: boolean;
}

/** Finds equal calls that were interrupted, among the 100 newest failed tasks of a caller. Reads them once a second. */
export class InterruptedTasks {
  readonly #store: Pick<TaskStore, "list">;
  readonly #clock: Clock;
  readonly #project: string;
  readonly #known = new Map<string, CallerTasks>();
  readonly #named = new Set<string>();

  constructor(store: Pick<TaskStore, "list">, clock: Clock, project: string) {
    this.#store = store;
    this.#clock = clock;
    this.#project = project;
  }

  /** False when the tasks of this caller were read within a second, and there were none. */
  mayHave(caller: string): boolean {
    return this.#isStale(caller) || this.#known.get(caller)?.isEmpty === false;
  }

  /** Has the tasks of this caller read again at the next call. */
  refresh(caller: string): void {
    this.#known.delete(caller);
  }

  /** The newest such task with this digest; each is returned once. */
  async take(caller: string, digest: string): Promise<Task | undefined> {
    const tasks = this.#isStale(caller) ? this.#read(caller) : this.#known.get(caller)?.tasks;
    const found = (await tasks)?.find((task) => task.digest === digest && !this.#named.has(task.taskId));
    if (found === undefined) return undefined;
    this.name(found);
    return found;
  }

  /** The caller has been told of this task. */
  name({ taskId }: Task): void {
    if (this.#named.size >= maxNamed) this.#named.clear();
    this.#named.add(taskId);
  }

  #read(caller: string): Promise<readonly Task[]> {
    const filter = { project: this.#project, statuses: ["failed"], limit: maxPageSize } as const;
    const tasks = this.#store.list({ caller }, filter).then(({ tasks: failed }) => {
      const found = failed.filter((task) => isInterrupted(task) && !this.#named.has(task.taskId));
      known.isEmpty = found.length === 0;
      return found;
    });
    const known: CallerTasks = { readAt: this.#clock.monotonic(), tasks, isEmpty: false };
    if (this.#known.size >= maxCallers) this.#known.clear();
    this.#known.set(caller, known);
    return tasks;
  }

  #isStale(caller: string): boolean {
    const known = this.#known.get(caller);
    return known === undefined || this.#clock.monotonic() - known.readAt >= freshMs;
  }
}
