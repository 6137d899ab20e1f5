import type { Clock } from "../clock.ts";
import { maxPageSize } from "./limits.ts";
import type { SharedState } from "./shared-state.ts";
import type { TaskStore } from "./store.ts";
import { isTerminal, type Task } from "./task.ts";
import { isInterrupted } from "./transitions.ts";

/** The tasks of a caller are read again after this time. */
const freshMs = 1_000;
/** Above so many callers all are forgotten. */
const maxCallers = 1_000;
/** Above so many named tasks all are forgotten, and may be named again. */
const maxNamed = 10_000;

interface InterruptedTasksOptions {
  readonly store: Pick<TaskStore, "list" | "now">;
  /** Remembers for all processes which tasks were named. Absent: each process names a task once. */
  readonly shared?: Pick<SharedState, "useOnce"> | undefined;
  readonly clock: Clock;
  readonly project: string;
  /** Interrupts the tasks of workers that are certainly dead. Called before tasks are read, at most once a second. */
  readonly interruptDead: () => Promise<void>;
}

interface CallerTasks {
  readonly readAt: number;
  readonly tasks: Promise<readonly Task[]>;
  /** False until they have been read. */
  isEmpty: boolean;
}

/** Finds equal calls that were interrupted, among the 100 newest failed tasks of a caller. Reads them once a second. */
export class InterruptedTasks {
  readonly #options: InterruptedTasksOptions;
  readonly #known = new Map<string, CallerTasks>();
  readonly #named = new Set<string>();
  #deadCheck: { readonly at: number; readonly done: Promise<void> } | undefined;

  constructor(options: InterruptedTasksOptions) {
    this.#options = options;
  }

  /** False when the tasks of this caller were read within a second, and there were none. */
  mayHave(caller: string): boolean {
    return this.#isStale(caller) || this.#known.get(caller)?.isEmpty === false;
  }

  /** Has the tasks of this caller read again at the next call. */
  refresh(caller: string): void {
    this.#known.delete(caller);
  }

  /**
   * The newest such task with this digest, but for the task `ownId`. It is returned once, whatever process asks, and
   * older ones are not returned after it.
   */
  async take(caller: string, digest: string, ownId?: string): Promise<Task | undefined> {
    const tasks = await (this.#isStale(caller) ? this.#read(caller) : this.#known.get(caller)?.tasks);
    const isFound = (task: Task) => task.digest === digest && task.taskId !== ownId && !this.#named.has(task.taskId);
    const found = tasks?.filter(isFound) ?? [];
    const [newest] = found;
    if (newest === undefined) return undefined;
    const isFirst = await this.#markNamed(newest);
    for (const task of found) this.#remember(task);
    return isFirst ? newest : undefined;
  }

  /** The caller has been told of this task. */
  async name(task: Task): Promise<void> {
    this.#remember(task);
    await this.#markNamed(task);
  }

  /** True for the first process that marks it. */
  async #markNamed(task: Task): Promise<boolean> {
    const { shared, store } = this.#options;
    const forMs = isTerminal(task) ? Math.max(0, Math.ceil(task.expiresAt - store.now())) : 0;
    return (await shared?.useOnce(`interrupted ${task.taskId}`, forMs)) ?? true;
  }

  #remember({ taskId }: Task): void {
    if (this.#named.size >= maxNamed) this.#named.clear();
    this.#named.add(taskId);
  }

  #read(caller: string): Promise<readonly Task[]> {
    const { store, clock, project } = this.#options;
    const filter = { project, statuses: ["failed"], limit: maxPageSize } as const;
    const listed = this.#interruptDead().then(() => store.list({ caller }, filter));
    const tasks = listed.then(({ tasks: failed }) => {
      const found = failed.filter((task) => isInterrupted(task) && !this.#named.has(task.taskId));
      known.isEmpty = found.length === 0;
      return found;
    });
    const known: CallerTasks = { readAt: clock.monotonic(), tasks, isEmpty: false };
    if (this.#known.size >= maxCallers) this.#known.clear();
    this.#known.set(caller, known);
    return tasks;
  }

  /**
   * An equal call may arrive before the sweeper has found that the worker of the earlier one is dead: a new daemon gets
   * its first call while its sweeper starts.
   */
  #interruptDead(): Promise<void> {
    const at = this.#options.clock.monotonic();
    if (this.#deadCheck === undefined || at - this.#deadCheck.at >= freshMs)
      this.#deadCheck = { at, done: this.#options.interruptDead() };
    return this.#deadCheck.done;
  }

  #isStale(caller: string): boolean {
    const known = this.#known.get(caller);
    return known === undefined || this.#options.clock.monotonic() - known.readAt >= freshMs;
  }
}
