import assert from "node:assert/strict";
import { type Clock, systemClock } from "../../src/clock.ts";
import { type Dispatcher, ticketOf } from "../../src/task/dispatcher.ts";
import type { TaskStore } from "../../src/task/store.ts";
import type { NewTask, Task } from "../../src/task/task.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { leaseMs, newTask } from "./cases/bench.ts";

/** Opens an empty store and two dispatchers on it, as two processes would. The case closes all three. */
export interface OpenDispatchers {
  readonly openStore: (clock: Clock) => TaskStore | Promise<TaskStore>;
  readonly openDispatcher: (store: TaskStore, clock: Clock) => Dispatcher | Promise<Dispatcher>;
}

/** A behaviour of every dispatcher. `run` rejects with an AssertionError if the dispatcher behaves differently. */
interface DispatcherCase {
  readonly title: string;
  run(open: OpenDispatchers): Promise<void>;
}

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
    const pollMs = 1_000;
    let askedAt = Number.NEGATIVE_INFINITY;
    let woken = this.#woken;
    return await waitFor(() => {
      const now = systemClock.monotonic();
      if (woken === this.#woken && now - askedAt < pollMs) return undefined;
      [woken, askedAt] = [this.#woken, now];
      return this.next();
    });
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

/** The cases that every dispatcher must pass. */
const dispatcherCases: readonly DispatcherCase[] = [
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

/** Registers every case with Vitest's `test`. */
export function exerciseDispatcher(
  test: (title: string, run: () => Promise<void>) => void,
  open: OpenDispatchers,
): void {
  for (const { title, run } of dispatcherCases) test(title, () => run(open));
}
