import path from "node:path";
import { type Clock, nextTurn } from "../clock.ts";
import { localKeyOf } from "../command/caller.ts";
import { catalogOf } from "../command/catalog.ts";
import type { Command } from "../command/command.ts";
import type { Answer, Origin, Root } from "../command/context.ts";
import { createId } from "../ids.ts";
import { silentLog } from "../log.ts";
import { MemoryStore } from "../store/memory-store.ts";
import { StoreDispatcher } from "../task/dispatcher.ts";
import type { Engine } from "../task/engine.ts";
import type { TaskStore } from "../task/store.ts";
import { openQuestions, type Task } from "../task/task.ts";
import { createTasks } from "../task/tasks.ts";
import { FakeClock } from "./fake-clock.ts";
import { answerRoots, withRoots } from "./given-roots.ts";

/** Commands run as tasks, in memory, on a clock that stands still until it is moved. */
export interface Harness {
  readonly clock: FakeClock;
  /** Makes a task of a command, by its name. */
  create(name: string, input?: unknown): Promise<Task>;
  /** Runs everything that can run now, to its end or its next question. */
  settle(): Promise<void>;
  get(task: Task): Promise<Task>;
  answer(task: Task, answers: Readonly<Record<string, Answer>>): Promise<boolean>;
  cancel(task: Task): Promise<boolean>;
  /**
   * What a crash of the worker would do to everything that runs: safe commands run again, others end as interrupted.
   */
  crash(): Promise<void>;
  close(): Promise<void>;
}

const caller = localKeyOf("tester");

export interface HarnessOptions {
  /** What `task.home` is. */
  readonly home?: string;
  /** Where the commands are called from. Default: a terminal in the working folder. */
  readonly origin?: Origin;
  /** What `task.roots()` gives. Default: nothing. */
  readonly roots?: readonly Root[];
}

/** Opens a harness for commands by name. */
export function createHarness(commands: Readonly<Record<string, Command>>, options: HarnessOptions = {}): Harness {
  const { home = "", roots } = options;
  const origin = withRoots(options.origin ?? { door: "terminal", folder: path.resolve() }, roots);
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const catalog = catalogOf(commands);
  const tasks = createTasks({
    store,
    dispatcher: new StoreDispatcher(store),
    clock,
    log: silentLog,
    project: "test",
    home,
    config: {},
    isDebug: true,
    createWorkerName: createId,
    isDead: () => false,
  });
  const { engine } = tasks;
  const createWorker = () => tasks.createWorker((name) => catalog.get(name));
  let worker = createWorker();
  return {
    clock,
    async create(name, input) {
      const entry = catalog.get(name);
      if (entry === undefined)
        throw new Error(`The harness has no command ${name}; it has ${Object.keys(commands).join(", ")}.`);
      return (await engine.create({ entry, input, caller, origin, reason: "test", isNew: true })).task;
    },
    async settle() {
      worker.start();
      do await untilIdle(store, clock);
      while (await giveRoots(engine, roots));
    },
    get: (task) => engine.get(caller, task.taskId),
    answer: (task, answers) => engine.answer(caller, task.taskId, answers),
    cancel: (task) => engine.cancel(caller, task.taskId),
    async crash() {
      const { name } = worker;
      worker = createWorker();
      await store.interrupt(name);
    },
    async close() {
      let isStopped = false;
      const stopped = worker.stop(0).then(() => (isStopped = true));
      // What still runs is told to stop, and let go when it does not: that takes time, and time is ours to move.
      while (!isStopped) {
        clock.advance(1_000);
        await nextTurn();
      }
      await stopped;
      await tasks.close();
    },
  };
}

/** Answers as a client does that is asked for its folders; true when one was asked. */
async function giveRoots(engine: Engine, roots: readonly Root[] | undefined): Promise<boolean> {
  const { tasks } = await engine.list(caller, { statuses: ["input_required"] });
  let isGiven = false;
  for (const task of tasks)
    for (const question of openQuestions(task)) {
      const answer = answerRoots(question, roots);
      if (answer !== undefined && (await engine.answer(caller, task.taskId, { [question.key]: answer })))
        isGiven = true;
    }
  return isGiven;
}

/** Resolves once nothing runs, and nothing can begin before time is moved. */
async function untilIdle(store: TaskStore, clock: Clock): Promise<void> {
  for (;;) {
    const changed = Promise.withResolvers<void>();
    const stopListening = store.onChange(() => changed.resolve());
    const { tasks } = await store.list({ caller }, { limit: 1_000, statuses: ["queued", "working"] });
    const isBusy = tasks.some((task) => task.status === "working" || task.notBefore <= clock.now());
    if (isBusy) await changed.promise;
    stopListening();
    if (!isBusy) return;
  }
}
