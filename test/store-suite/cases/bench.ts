import assert from "node:assert/strict";
import type { Question } from "../../../src/command/context.ts";
import type { CallerScope, Claim, ClaimRequest, Created, CreateOptions, TaskStore } from "../../../src/task/store.ts";
import type { NewTask, Task, TaskOutcome, TaskStatus } from "../../../src/task/task.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { waitFor } from "../../helpers/wait-for.ts";
import type { OpenStore, StoreCase } from "../store-suite.ts";

export const leaseMs = 30_000;
export const ttlMs = 60_000;

export const done: TaskOutcome = { ending: "completed", data: { pages: 12 }, messages: [], log: [], durationMs: 40 };
export const broken: TaskOutcome = {
  ending: "failed",
  cause: "command",
  message: "No such page.",
  messages: [],
  log: [],
  durationMs: 40,
};
export const stopped: TaskOutcome = {
  ending: "cancelled",
  message: "Stopped by itself.",
  messages: [],
  log: [],
  durationMs: 40,
};

export const question: Question = {
  message: "How many pages?",
  schema: { type: "object", properties: { pages: { type: "integer" } }, required: ["pages"] },
  isConfirmation: false,
};

export const accepted = { action: "accept", content: { pages: 3 } } as const;

/** The facts of a task nobody has made yet; those of different numbers are no equal calls. */
export function newTask(number: number, facts: Partial<NewTask> = {}): NewTask {
  return {
    taskId: `task-${number}`,
    caller: "ada",
    project: "home",
    command: "text_count",
    input: { page: number },
    origin: { door: "mcp", folder: "/home/ada" },
    digest: `digest-${number}`,
    idempotencyKey: undefined,
    reason: "asked for",
    ttlMs,
    estimateMs: undefined,
    isEndless: false,
    isProven: false,
    rules: { isSafe: true, maxAttempts: 3, backoffMs: 1_000 },
    isCall: false,
    questions: [],
    progressToken: undefined,
    ...facts,
  };
}

/** A store, a clock that stands still, and short ways to say the usual. */
export class Bench {
  readonly store: TaskStore;
  readonly clock: FakeClock;
  #made = 0;

  constructor(store: TaskStore, clock: FakeClock) {
    this.store = store;
    this.clock = clock;
  }

  get now(): number {
    return this.clock.now();
  }

  scope(caller = "ada"): CallerScope {
    return { caller };
  }

  /** The facts of a task nobody has made yet; no two are equal calls. */
  fresh(facts: Partial<NewTask> = {}): NewTask {
    this.#made += 1;
    return newTask(this.#made, facts);
  }

  create(facts: Partial<NewTask> = {}, options: Partial<CreateOptions> = {}): Promise<Created> {
    return this.store.create(this.fresh(facts), { joinsEqual: false, maxLive: 100, ...options });
  }

  /** A new, queued task. */
  async make(facts: Partial<NewTask> = {}): Promise<Task> {
    const created = await this.create(facts);
    assert.equal(created.kind, "created");
    return created.task;
  }

  async claim(request: Partial<ClaimRequest> = {}): Promise<Task | undefined> {
    return await this.store.claim({ project: "home", worker: "w1", leaseMs, ...request });
  }

  /** A new task and the worker's right to write to it. */
  async begin(facts: Partial<NewTask> = {}, worker = "w1"): Promise<Claim> {
    const { taskId } = await this.make(facts);
    return await this.take(taskId, worker, facts.project);
  }

  /** A journalled call and its worker's right to write to it. */
  async journal(facts: Partial<NewTask> = {}, worker = "w1"): Promise<Claim> {
    const created = await this.create({ isCall: true, reason: "a call", ...facts }, { claim: { worker, leaseMs } });
    assert.equal(created.kind, "created");
    return { taskId: created.task.taskId, fence: created.task.fence };
  }

  /** Claims this task; fails when it is not there to be claimed. */
  async take(taskId: string, worker = "w1", project = "home"): Promise<Claim> {
    const task = await this.claim({ taskId, worker, project });
    assert.ok(task, `${taskId} was expected to be claimable`);
    return { taskId: task.taskId, fence: task.fence };
  }

  /** The task as its caller sees it. */
  async read(taskId: string, caller = "ada"): Promise<Task> {
    const task = await this.store.get(this.scope(caller), taskId);
    assert.ok(task, `${taskId} was expected to be readable by ${caller}`);
    return task;
  }
}

/** A case with one empty store, closed at its end. */
export function onStore(title: string, act: (bench: Bench) => Promise<void>): StoreCase {
  return {
    title,
    async run(open) {
      await withStore(open, {}, act);
    },
  };
}

/** Two stores at one place. */
export function onTwoStores(title: string, act: (one: Bench, other: Bench) => Promise<void>): StoreCase {
  return {
    title,
    needsPlaces: true,
    async run(open) {
      const clock = new FakeClock();
      await withStore(open, { place: "shared", clock }, (one) =>
        withStore(open, { place: "shared", clock }, (other) => act(one, other)),
      );
    },
  };
}

export async function withStore(
  open: OpenStore,
  at: { place?: string; clock?: FakeClock },
  act: (bench: Bench) => Promise<void>,
): Promise<void> {
  const { clock = new FakeClock(), place } = at;
  const store = await open({ clock, ...(place !== undefined && { place }) });
  try {
    await act(new Bench(store, clock));
  } finally {
    await store.close();
  }
}

/** One task in each status, all of one caller; their ids by status. */
export async function makeOneOfEach(bench: Bench): Promise<Record<TaskStatus, string>> {
  const completed = await bench.begin();
  await bench.store.settle(completed, done);
  const failed = await bench.begin();
  await bench.store.settle(failed, broken);
  const cancelled = await bench.make();
  await bench.store.cancel(bench.scope(), cancelled.taskId, "No longer needed.");
  const asking = await bench.begin();
  await bench.store.ask(asking, question);
  const working = await bench.begin();
  const queued = await bench.make();
  return {
    completed: completed.taskId,
    failed: failed.taskId,
    cancelled: cancelled.taskId,
    input_required: asking.taskId,
    working: working.taskId,
    queued: queued.taskId,
  };
}

/** Compares the named facts of a task, and only those. */
export function assertTask(task: Task, expected: Readonly<Record<string, unknown>>): void {
  const actual = Object.fromEntries(
    Object.keys(expected).map((name) => [name, (task as unknown as Record<string, unknown>)[name]]),
  );
  assert.deepEqual(actual, expected);
}

/** A task as JSON, in which a fact that is undefined and one that is missing are the same. */
export function plain(task: Task | undefined): unknown {
  return task === undefined ? undefined : JSON.parse(JSON.stringify(task));
}

/** Fails unless `act` leaves the task exactly as it was. */
export async function assertUnchanged(
  bench: Bench,
  taskId: string,
  act: () => Promise<void>,
  caller = "ada",
): Promise<void> {
  const before = plain(await bench.read(taskId, caller));
  await act();
  assert.deepEqual(plain(await bench.read(taskId, caller)), before);
}

/** Moves the clock until `isSo` returns true. Real time passes too: a store may poll for changes of other processes. */
export async function eventually(
  clock: FakeClock,
  isSo: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  await waitFor(
    async () => {
      if (await isSo()) return true;
      clock.advance(20);
      return false;
    },
    () => `waited in vain: ${what}`,
  );
}
