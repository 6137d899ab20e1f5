import { type Clock, systemClock } from "../clock.ts";
import type { Catalog } from "../command/catalog.ts";
import { isStoreError } from "../errors.ts";
import type { HomelessSettings, Settings } from "../settings/settings.ts";
import { type Store, storeExists } from "../store/open.ts";
import { markKilled } from "../system/worker-name.ts";
import type { QuestionAtRisk } from "../task/attempt.ts";
import type { Calls } from "../task/calls.ts";
import type { CommandStats } from "../task/history.ts";
import type { SharedState } from "../task/shared-state.ts";
import { isTerminal, liveStatuses } from "../task/task.ts";
import type { Tasks } from "../task/tasks.ts";
import type { Worker } from "../task/worker.ts";
import type { OpenTasksOptions } from "./open-tasks.ts";
import type { SeverableStore } from "./severable-store.ts";

interface Opened {
  readonly tasks: Tasks;
  readonly worker: Worker;
}

/** The tasks of a server: opened when first needed, so that a server which is only asked who it is touches nothing. */
export class ServedTasks {
  readonly #settings: Settings | HomelessSettings;
  readonly #catalog: Catalog;
  readonly #options: OpenTasksOptions;
  #store: Promise<Store> | undefined;
  #opened: Promise<Opened> | undefined;
  #calls: Calls | undefined;
  #onClosing: (() => Promise<void>) | undefined;
  #worker: Worker | undefined;
  /** Only where the runtime can be killed. */
  #severable: SeverableStore | undefined;
  /** The clock by which tasks are told of: the store's, once that is open. */
  readonly clock: Clock;

  constructor(settings: Settings | HomelessSettings, catalog: Catalog, options: OpenTasksOptions) {
    this.#settings = settings;
    this.#catalog = catalog;
    this.#options = options;
    const { clock = systemClock } = options;
    this.clock = {
      now: () => this.#calls?.engine.now() ?? clock.now(),
      monotonic: () => clock.monotonic(),
      after: (ms, callback) => clock.after(ms, callback),
    };
  }

  /** For requests: from the first one on, this process works on what is queued. */
  calls(): Calls | Promise<Calls> {
    return this.#calls ?? this.#openCalls();
  }

  /** What all servers on the store have in common; opened when first needed, like the tasks. */
  async shared(): Promise<SharedState> {
    return (await this.#openStore()).shared;
  }

  /**
   * Begins to work on what is queued, as soon as its database can be used. Done by the first call that needs it, where
   * nobody does it before.
   */
  async start(): Promise<void> {
    await this.calls();
    await this.#work();
  }

  /** What this process works on right now: calls that somebody waits for, and tasks. */
  get running(): { readonly calls: number; readonly tasks: number } {
    return this.#worker?.running ?? { calls: 0, tasks: 0 };
  }

  /** The open questions that would be lost if this process ended now. */
  get questionsAtRisk(): readonly QuestionAtRisk[] {
    return this.#worker?.questionsAtRisk ?? [];
  }

  /** Whether tasks of this project are queued, run or wait for an answer. */
  async hasLive(): Promise<boolean> {
    if (this.running.tasks > 0) return true;
    if (!(await this.#isThere())) return false;
    const { tasks } = await this.#open();
    // Nobody stays for what cannot be read.
    return await withoutStore(
      () => tasks.engine.hasOwn(tasks.localKey, { statuses: liveStatuses, withCalls: true }),
      false,
    );
  }

  /** How long commands take; nothing is opened for a home that has no tasks yet. */
  async stats(): Promise<readonly CommandStats[]> {
    if (!(await this.#isThere())) return [];
    const { tasks } = await this.#open();
    return await tasks.history.stats();
  }

  /** Calls back when nothing is worked on any more, and the store is about to be closed. */
  onClosing(listener: () => Promise<void>): void {
    this.#onClosing = listener;
  }

  /** How many of this project's tasks wait for the next process. For `keepQuestions` and `endNow` see `Worker`. */
  async close(graceMs: number, keepQuestions?: AbortSignal, endNow?: AbortSignal): Promise<number> {
    const opened = await this.#opened?.catch(() => undefined);
    if (opened === undefined) {
      const store = await (this.#options.store ?? this.#store?.catch(() => undefined));
      if (store !== undefined) await this.#onClosing?.();
      await store?.close();
      return 0;
    }
    const { tasks, worker } = opened;
    tasks.sweeper.stop();
    await worker.stop(graceMs, keepQuestions, endNow);
    const { project } = this.#settings;
    const list = async () => (await tasks.engine.list(tasks.localKey, { project, statuses: liveStatuses })).tasks;
    const live = await withoutStore(list, []);
    await this.#onClosing?.();
    await tasks.close();
    return live.filter((task) => !isTerminal(task) && task.lease === undefined).length;
  }

  /**
   * Ends as the crash of a process does, as far as the process can go on: nothing more is written, runs are stopped,
   * leases stay. Needs `isKillable`.
   */
  async kill(): Promise<void> {
    this.#severable?.sever();
    const opened = await this.#opened?.catch(() => undefined);
    // A store that was opened meanwhile is not in use yet.
    this.#severable?.sever();
    if (opened !== undefined) {
      opened.tasks.sweeper.stop();
      await opened.worker.kill();
      markKilled(opened.worker.name);
    }
    await this.#severable?.close();
  }

  async #openCalls(): Promise<Calls> {
    const { tasks, worker } = await this.#open();
    this.#calls ??= tasks.createCalls(worker);
    this.#worker = worker;
    // Whoever has just asked comes first: a call that is done at once does not wait until the queue was looked at.
    setImmediate(() => void this.#work());
    return this.#calls;
  }

  async #work(): Promise<void> {
    const { tasks, worker } = await this.#open();
    if (worker.isStopped) return;
    worker.start();
    tasks.sweeper.start();
  }

  async #isThere(): Promise<boolean> {
    return (this.#options.store ?? this.#opened) !== undefined || (await storeExists(this.#settings.store));
  }

  #open(): Promise<Opened> {
    this.#opened ??= this.#openOnce().catch((error: unknown) => {
      // What could not be loaded, for want of file descriptors for one, may be by the next request.
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  #openStore(): Promise<Store> {
    this.#store ??= this.#openStoreOnce().catch((error: unknown) => {
      this.#store = undefined;
      throw error;
    });
    return this.#store;
  }

  async #openStoreOnce(): Promise<Store> {
    const { store, clock, log, isKillable = false } = this.#options;
    if (store !== undefined) return store;
    const { openNodeStore } = await import("./open-node-store.ts");
    const options = { ...(clock && { clock }), ...(log && { log }), isPatient: true };
    const opened = await openNodeStore(this.#settings, options);
    if (!isKillable) return opened;
    const { makeSeverable } = await import("./severable-store.ts");
    this.#severable = makeSeverable(opened);
    return this.#severable.store;
  }

  async #openOnce(): Promise<Opened> {
    const { openTasks } = await import("./open-tasks.ts");
    const tasks = await openTasks(this.#settings, { ...this.#options, store: await this.#openStore() });
    const worker = tasks.createWorker(
      (name) => this.#catalog.get(name),
      (name) => this.#catalog.load(name),
    );
    return { tasks, worker };
  }
}

/** What is the case as far as anybody can know without the database. */
async function withoutStore<T>(look: () => Promise<T>, instead: T): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (isStoreError(error)) return instead;
    throw error;
  }
}
