import { expect, test, vi } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import type { Store } from "../../src/store/open.ts";
import { Paced } from "../../src/task/paced.ts";
import { FairQueue } from "../../src/task/shares.ts";
import type { Claim } from "../../src/task/store.ts";
import { Worker } from "../../src/task/worker.ts";
import { engineOn, stores } from "../chaos/cast.ts";
import { workerFacts } from "../helpers/engine.ts";

const command = defineCommand({ summary: "x", run: () => ({}) });
const entry = { command, toolName: "do_it", path: ["do", "it"], file: "x.ts" };
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Tasks that somebody works on, each waited for by so many; counts how often a listener was called and a task read. */
async function openWaits(store: Store, tasks: number, waitsEach: number) {
  const engine = engineOn(store);
  let listenerCalls = 0;
  const onChange = store.onChange.bind(store);
  vi.spyOn(store, "onChange").mockImplementation((listener, ...rest) =>
    onChange(
      (taskId) => {
        listenerCalls += 1;
        listener(taskId);
      },
      ...rest,
    ),
  );
  const claims: Claim[] = [];
  for (let n = 0; n < tasks; n++) {
    const claim = { worker: "w", leaseMs: 60_000 };
    const { task } = await engine.create(
      { entry, input: { n }, caller: "local:ada", reason: "test", isNew: true },
      claim,
    );
    claims.push({ taskId: task.taskId, fence: task.fence });
  }
  const heard: string[] = [];
  const stop = new AbortController();
  const waits = claims.flatMap(({ taskId }) =>
    Array.from({ length: waitsEach }, () =>
      engine.wait("local:ada", taskId, { signal: stop.signal, onTask: (task) => heard.push(task.taskId) }),
    ),
  );
  const ended = Promise.allSettled(waits);
  await vi.waitFor(() => expect(heard).toHaveLength(tasks * waitsEach), { timeout: 50_000 });
  heard.length = 0;
  listenerCalls = 0;
  const reads = vi.spyOn(store, "get");
  const end = async () => {
    stop.abort(new Error("enough"));
    await ended;
  };
  return { claims, heard, reads, listenerCalls: () => listenerCalls, end };
}

test.each(stores)(
  "with 5,000 waits for 50 tasks, a change calls one listener, not 5,000, and reads its task once (%s)",
  async (_name, open) => {
    const store = await open();
    const { claims, heard, reads, listenerCalls, end } = await openWaits(store, 50, 100);
    const [changed] = claims as [Claim];
    await store.report(changed, { statusMessage: "half way" });
    await vi.waitFor(() => expect(heard).toHaveLength(100), { timeout: 50_000 });
    expect(new Set(heard)).toEqual(new Set([changed.taskId]));
    expect(listenerCalls()).toBe(1);
    expect(reads).toHaveBeenCalledTimes(1);
    await end();
  },
);

test.each(stores)(
  "a change of one task that 5,000 wait for is read at most 50 times, and wakes at most 100 in one turn of the event loop (%s)",
  async (_name, open) => {
    const store = await open();
    const { claims, heard, reads, end } = await openWaits(store, 1, 5_000);
    const told = store.report(claims[0] as Claim, { statusMessage: "half way" });
    const heardATurn: number[] = [];
    await told;
    for (let before = 0; before < 5_000; before = heard.length) {
      await turn();
      heardATurn.push(heard.length - before);
    }
    expect(Math.max(...heardATurn)).toBeLessThanOrEqual(200);
    expect(reads.mock.calls.length).toBeLessThanOrEqual(50);
    await end();
  },
);

test.each(stores)(
  "a hundred reports of progress look for work not once: nothing was queued (%s)",
  async (_name, open) => {
    const store = await open();
    const worker = new Worker({ ...workerFacts(store, systemClock), project: "chaos", find: () => entry });
    worker.start();
    await turn();
    const { claims, end } = await openWaits(store, 1, 1);
    const looks = vi.spyOn(store, "claim");
    for (let n = 0; n < 100; n++) await store.report(claims[0] as Claim, { statusMessage: `${n}` });
    await turn();
    // Once a second it looks by itself.
    expect(looks.mock.calls.length).toBeLessThan(10);
    looks.mockClear();
    await engineOn(store).create({ entry, input: {}, caller: "local:bob", reason: "test" });
    await vi.waitFor(() => expect(looks).toHaveBeenCalled(), { timeout: 50_000 });
    await end();
    await worker.stop();
  },
);

test("5,000 who wait for a place are let in one by one without looking at the others: the caller of each is asked about once a turn", async () => {
  const queue = new FairQueue({ total: 1, anonymous: 1, guaranteed: 1 });
  const order: number[] = [];
  const leave = await queue.enter("local:ada");
  const all = Array.from({ length: 5_000 }, async (_, n) => {
    const out = await queue.enter("local:ada");
    order.push(n);
    out();
  });
  const begunAt = process.cpuUsage();
  leave();
  await Promise.all(all);
  const { user } = process.cpuUsage(begunAt);
  expect(order).toEqual(Array.from({ length: 5_000 }, (_, n) => n));
  // Looking through all of them for each took some ten seconds of processor time.
  expect(user / 1000).toBeLessThan(2_000);
});

test("of 1,000 records that are due at once at most ten are begun in a turn of the event loop, in their order, and one that is taken back never", async () => {
  const records = new Paced(10);
  const begun: number[] = [];
  const takeBack = Array.from({ length: 1_000 }, (_, n) => records.add(() => begun.push(n)));
  expect(begun).toHaveLength(10);
  takeBack[500]?.();
  const perTurn: number[] = [];
  for (let before = begun.length; before < 999; before = begun.length) {
    await turn();
    perTurn.push(begun.length - before);
  }
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(20);
  expect(begun).toEqual(Array.from({ length: 1_000 }, (_, n) => n).filter((n) => n !== 500));
});
