import assert from "node:assert/strict";
import { type Clock, sleep, systemClock } from "../clock.ts";
import { type Dispatcher, ticketOf } from "../task/dispatcher.ts";
import type { TaskStore } from "../task/store.ts";
import type { NewTask, Task } from "../task/task.ts";
import { leaseMs, newTask } from "./store-cases/bench.ts";

/** Opens a store, empty and nobody else's, and dispatchers on it, as two processes would. The case closes all of it. */
export interface OpenDispatchers {
  readonly openStore: (clock: Clock) => TaskStore | Promise<TaskStore>;
  readonly openDispatcher: (store: TaskStore, clock: Clock) => Dispatcher | Promise<Dispatcher>;
}

/** One thing that holds for every dispatcher. Rejects with an AssertionError where it does not. */
export interface DispatcherCase {
  readonly title: string;
  run(open: OpenDispatchers): Promise<void>;
}

/** A case guards against hanging, and for nothing else: a queue may be at the other end of a network. */
const patienceMs = 30_000;

/** A store with a dispatcher that offers and another that asks. */
class Stage {
  readonly store: TaskStore;
  readonly offers: Dispatcher;
  readonly asks: Dispatcher;
  #made = 0;
  #woken = 0;

  constructor(store: TaskStore, offers: Dispatcher, asks: Dispatcher) {
    this.store = store;
    this.offers = offers;
    this.asks = asks;
    asks.onWork(() => (this.#woken += 1));
  }

  /** A new, queued task that nobody was told of. */
  async make(facts: Partial<NewTask> = {}): Promise<Task> {
    this.#made += 1;
    const created = await this.store.create(newTask(this.#made, facts), { joinsEqual: false, maxLive: 1_000 });
    assert.equal(created.kind, "created");
    return created.task;
  }

  async next(worker = "w1", full: readonly string[] = []): Promise<Task | undefined> {
    return await this.asks.next({
      project: "home",
      worker,
      leaseMs,
      shares: { full, fullOfEndless: [], turns: [] },
    });
  }

  /** Asks as a worker does: when it is woken, and once a second. */
  async untilNext(): Promise<Task> {
    const startedAt = systemClock.monotonic();
    for (let woken = -1; systemClock.monotonic() - startedAt < patienceMs; woken = this.#woken) {
      const task = await this.next();
      if (task !== undefined) return task;
      for (let waited = 0; waited < 100 && woken === this.#woken; waited++) await sleep(systemClock, 10);
    }
    assert.fail("waited in vain for a task");
  }
}

function onStage(title: string, act: (stage: Stage) => Promise<void>): DispatcherCase {
  return {
    title,
    async run({ openStore, openDispatcher }) {
      const store = await openStore(systemClock);
      const offers = await openDispatcher(store, systemClock);
      const asks = await openDispatcher(store, systemClock);
      try {
        await act(new Stage(store, offers, asks));
      } finally {
        await offers.close();
        await asks.close();
        await store.close();
      }
    },
  };
}

/** What every dispatcher must do, as data: run them with any test runner. */
export const dispatcherCases: readonly DispatcherCase[] = [
  onStage("what is offered is given to a worker, claimed", async (stage) => {
    const made = await stage.make();
    stage.offers.offer(ticketOf(made));
    const task = await stage.untilNext();
    assert.equal(task.taskId, made.taskId);
    assert.equal(task.status, "working");
  }),

  onStage("what is offered twice is given once", async (stage) => {
    const made = await stage.make();
    for (let n = 0; n < 3; n++) stage.offers.offer(ticketOf(made));
    await stage.untilNext();
    stage.offers.offer(ticketOf(made));
    const last = await stage.make();
    stage.offers.offer(ticketOf(last));
    assert.equal((await stage.untilNext()).taskId, last.taskId);
    assert.equal(await stage.next(), undefined);
  }),

  onStage("many that are offered at once are all given, each once, to two who ask", async (stage) => {
    const made = await Promise.all(Array.from({ length: 20 }, () => stage.make()));
    for (const task of made) stage.offers.offer(ticketOf(task));
    const given: string[] = [];
    while (given.length < made.length) given.push((await stage.untilNext()).taskId);
    assert.deepEqual(given.toSorted(), made.map(({ taskId }) => taskId).toSorted());
  }),

  onStage("an offer that is lost costs time alone: who asks finds the task", async (stage) => {
    // It has looked already, and found nothing.
    assert.equal(await stage.next(), undefined);
    const made = await stage.make();
    assert.equal((await stage.untilNext()).taskId, made.taskId);
  }),

  onStage("an offer of what has ended, or never was, gives nothing", async (stage) => {
    const ended = await stage.make();
    await stage.store.cancel({ caller: ended.caller }, ended.taskId, "No longer needed.");
    stage.offers.offer(ticketOf(ended));
    stage.offers.offer("nobody-0");
    const last = await stage.make();
    stage.offers.offer(ticketOf(last));
    assert.equal((await stage.untilNext()).taskId, last.taskId);
  }),

  onStage("what waits for its next attempt is given when that is due, and not before", async (stage) => {
    const made = await stage.make();
    stage.offers.offer(ticketOf(made));
    const { taskId, fence } = await stage.untilNext();
    await stage.store.retryLater({ taskId, fence }, 300, "Trying again.");
    stage.asks.offer(ticketOf({ taskId, fence }), 300);
    assert.equal(await stage.next(), undefined);
    const again = await stage.untilNext();
    assert.equal(again.taskId, taskId);
    assert.ok(again.notBefore <= stage.store.now());
  }),

  onStage("who is full is passed over, and has its turn when it is not", async (stage) => {
    const [hers, his] = [await stage.make({ caller: "ada" }), await stage.make({ caller: "bob" })];
    for (const task of [hers, his]) stage.offers.offer(ticketOf(task));
    const first = await stage.next("w1", ["ada"]);
    assert.equal(first?.taskId, his.taskId);
    assert.equal(await stage.next("w1", ["ada"]), undefined);
    assert.equal((await stage.next("w1"))?.taskId, hers.taskId);
  }),

  onStage("who had no room is woken again when there is some", async (stage) => {
    stage.asks.setRoom(false);
    const made = await stage.make();
    stage.offers.offer(ticketOf(made));
    stage.asks.setRoom(true);
    assert.equal((await stage.untilNext()).taskId, made.taskId);
  }),

  onStage("after closing, an offer is nothing, and closing again neither", async (stage) => {
    await stage.offers.close();
    stage.offers.offer("nobody-0");
    await stage.offers.close();
  }),
];

/** Registers every case with a test runner's `test(title, run)`. */
export function exerciseDispatcher(
  test: (title: string, run: () => Promise<void>) => void,
  open: OpenDispatchers,
): void {
  for (const { title, run } of dispatcherCases) test(title, () => run(open));
}
