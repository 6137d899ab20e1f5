import assert from "node:assert/strict";
import { systemClock } from "../../../src/clock.ts";
import { isTerminal, type Task } from "../../../src/task/task.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { waitFor } from "../../helpers/wait-for.ts";
import type { StoreCase } from "../store-suite.ts";
import { assertTask, done, leaseMs, makeOneOfEach, newTask, onStore, plain, question, withStore } from "./bench.ts";

/** Until when somebody has it; 0 when nobody does. */
const untilOf = (task: Task | undefined) => (task === undefined || isTerminal(task) ? 0 : (task.lease?.until ?? 0));

/** What a worker says that runs nothing. */
const nobodyFull = { full: [], fullOfEndless: [], turns: [] };

export const claimingCases: readonly StoreCase[] = [
  onStore("claim: a queued task becomes a worker's, under a new fence", async (bench) => {
    const { taskId, createdAt } = await bench.make();
    bench.clock.advance(5);
    const claimed = await bench.claim();
    assert.ok(claimed);
    const expected = {
      taskId,
      input: { page: 1 },
      status: "working",
      fence: 1,
      attempts: 1,
      crashes: 0,
      lease: { worker: "w1", until: bench.now + leaseMs },
      startedAt: createdAt + 5,
      updatedAt: createdAt + 5,
      version: 2,
    };
    assertTask(claimed, expected);
    assert.deepEqual(plain(claimed), plain(await bench.read(taskId)));
  }),

  onStore("claim: a later attempt has a higher fence, the first start, and no old message", async (bench) => {
    const first = await bench.begin();
    const startedAt = bench.now;
    bench.clock.advance(5);
    await bench.store.retryLater(first, 0, "Attempt 1 failed.");
    bench.clock.advance(5);
    const second = await bench.take(first.taskId, "w2");
    assert.equal(second.fence, 2);
    assertTask(await bench.read(first.taskId), {
      attempts: 2,
      startedAt,
      statusMessage: undefined,
      lease: { worker: "w2", until: bench.now + leaseMs },
    });
  }),

  onStore("claim: the one that has waited longest comes first", async (bench) => {
    const late = await bench.begin();
    const soon = await bench.begin();
    const [third, fourth] = [await bench.make(), await bench.make()];
    await bench.store.retryLater(late, 200, "Later.");
    await bench.store.retryLater(soon, -1, "Sooner.");
    bench.clock.advance(200);
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 5; n++) order.push((await bench.claim())?.taskId);
    assert.deepEqual(order, [soon.taskId, third.taskId, fourth.taskId, late.taskId, undefined]);
  }),

  onStore("claim: not before its time, and then at once", async (bench) => {
    const claim = await bench.begin();
    await bench.store.retryLater(claim, 100, "Later.");
    bench.clock.advance(99);
    assert.equal(await bench.claim(), undefined);
    assert.equal(await bench.claim({ taskId: claim.taskId }), undefined);
    bench.clock.advance(1);
    assert.equal((await bench.claim())?.taskId, claim.taskId);
  }),

  onStore("claim: none that the worker does not want, by its turn or by name", async (bench) => {
    const [first, second] = [await bench.make(), await bench.make()];
    assert.equal(await bench.claim({ except: [first.taskId], taskId: first.taskId }), undefined);
    assert.equal((await bench.claim({ except: [first.taskId] }))?.taskId, second.taskId);
    assert.equal(await bench.claim({ except: [first.taskId] }), undefined);
    assert.equal((await bench.claim({ except: [] }))?.taskId, first.taskId);
  }),

  onStore("claim: only tasks of the worker's own project", async (bench) => {
    await bench.make({ project: "away" });
    assert.equal(await bench.claim({ project: "home" }), undefined);
    assert.equal((await bench.claim({ project: "away" }))?.project, "away");
  }),

  onStore("claim: not what was asked for with another value of a variable that both know", async (bench) => {
    const { taskId } = await bench.make({ environment: { KEY: "a", GONE: "x" } });
    assert.deepEqual((await bench.read(taskId)).environment, { KEY: "a", GONE: "x" });
    for (const environment of [{ KEY: "b" }, { KEY: "", GONE: "x" }, { KEY: "a", GONE: "y" }]) {
      assert.equal(await bench.claim({ environment }), undefined);
      assert.equal(await bench.claim({ environment, taskId }), undefined);
    }
    const later = await bench.make({ environment: { KEY: "b" } });
    assert.equal((await bench.claim({ environment: { KEY: "b" } }))?.taskId, later.taskId);
    assert.equal((await bench.claim({ environment: { KEY: "a", NEW: "z" } }))?.taskId, taskId);
  }),

  onStore("claim: whatever the environment, where one of the two knows none", async (bench) => {
    const [first, second] = [await bench.make(), await bench.make({ environment: { KEY: "a" } })];
    assert.equal((await bench.claim({ environment: { KEY: "b" } }))?.taskId, first.taskId);
    assert.equal((await bench.claim({ environment: {} }))?.taskId, second.taskId);
  }),

  onStore("claim: of any caller", async (bench) => {
    for (const caller of ["ada", "bob"]) await bench.make({ caller });
    assert.deepEqual([(await bench.claim())?.caller, (await bench.claim())?.caller], ["ada", "bob"]);
  }),

  onStore("claim: whose turn comes first is served first; of equals, who has waited longest", async (bench) => {
    const tasks: Record<string, string> = {};
    for (const caller of ["ada", "bob", "carl", "dora"]) tasks[caller] = (await bench.make({ caller })).taskId;
    const turns = [
      ["ada", 3],
      ["bob", 2],
      ["carl", 2],
    ] as const;
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 5; n++) order.push((await bench.claim({ shares: { ...nobodyFull, turns } }))?.caller);
    assert.deepEqual(order, ["dora", "bob", "carl", "ada", undefined]);
  }),

  onStore("claim: whose turn it is changes nothing in the order of one caller's own tasks", async (bench) => {
    const later = await bench.begin();
    const ids = [(await bench.make()).taskId, (await bench.make()).taskId];
    bench.clock.advance(10);
    await bench.store.retryLater(later, -1, "Later.");
    const turns = [["ada", 7]] as const;
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 3; n++) order.push((await bench.claim({ shares: { ...nobodyFull, turns } }))?.taskId);
    assert.deepEqual(order, [...ids, later.taskId]);
  }),

  onStore("claim: who is full is passed over, however long the queue in front", async (bench) => {
    for (let n = 0; n < 20; n++) await bench.make({ caller: "anonymous" });
    const own = await bench.make({ caller: 'token:["a","b\\"c"]' });
    const shares = { ...nobodyFull, full: ["anonymous"] };
    assert.equal((await bench.claim({ shares }))?.taskId, own.taskId);
    assert.equal(await bench.claim({ shares }), undefined);
    assert.equal(
      await bench.claim({ shares: { ...nobodyFull, full: ["somebody", own.caller, "anonymous"] } }),
      undefined,
    );
    assert.equal((await bench.claim({ shares: nobodyFull }))?.caller, "anonymous");
  }),

  onStore("claim: endless tasks are told apart, and who is full of them is full of nothing else", async (bench) => {
    const endless = await bench.make({ isEndless: true });
    const others = await bench.make({ caller: "bob", isEndless: true });
    const ordinary = await bench.make();
    assertTask(await bench.read(endless.taskId), { isEndless: true });
    assertTask(await bench.read(ordinary.taskId), { isEndless: false });
    assert.equal(
      (await bench.claim({ shares: { ...nobodyFull, fullOfEndless: ["ada", "bob"] } }))?.taskId,
      ordinary.taskId,
    );
    assert.equal(
      (await bench.claim({ shares: { ...nobodyFull, full: ["ada", "bob"], fullOfEndless: ["ada"] } }))?.taskId,
      others.taskId,
    );
    assert.equal(await bench.claim({ shares: { ...nobodyFull, fullOfEndless: "everybody" } }), undefined);
    assert.equal((await bench.claim({ shares: { ...nobodyFull, full: "everybody" } }))?.taskId, endless.taskId);
  }),

  onStore("claim: nobody is served while everybody is full, except one that is named", async (bench) => {
    const [first, second] = [await bench.make(), await bench.make({ isEndless: true })];
    const shares = { ...nobodyFull, full: "everybody", fullOfEndless: "everybody" } as const;
    assert.equal(await bench.claim({ shares }), undefined);
    for (const { taskId } of [second, first]) assert.equal((await bench.claim({ shares, taskId }))?.taskId, taskId);
  }),

  onStore("claim: with turns too, not before its time, of its own project, and never the same twice", async (bench) => {
    const shares = { ...nobodyFull, turns: [["ada", 1]] as const };
    const late = await bench.begin({ caller: "bob" });
    await bench.store.retryLater(late, 100, "Later.");
    await bench.make({ caller: "bob", project: "away" });
    const own = await bench.make();
    const claims = await Promise.all(Array.from({ length: 5 }, (_, n) => bench.claim({ worker: `w${n}`, shares })));
    assert.deepEqual(
      claims.flatMap((task) => (task === undefined ? [] : [task.taskId])),
      [own.taskId],
    );
    bench.clock.advance(100);
    assert.equal((await bench.claim({ shares }))?.taskId, late.taskId);
  }),

  onStore("claim: this one only, when it is named", async (bench) => {
    const [first, second] = [await bench.make(), await bench.make()];
    assert.equal((await bench.claim({ taskId: second.taskId }))?.taskId, second.taskId);
    assert.equal(await bench.claim({ taskId: second.taskId }), undefined);
    assert.equal(await bench.claim({ taskId: "never-was" }), undefined);
    assert.equal(await bench.claim({ taskId: first.taskId, project: "away" }), undefined);
    assert.equal((await bench.read(first.taskId)).status, "queued");
  }),

  onStore("claim: nothing that is not queued", async (bench) => {
    const ids = await makeOneOfEach(bench);
    for (const [status, taskId] of Object.entries(ids))
      assert.equal((await bench.claim({ taskId }))?.taskId, status === "queued" ? taskId : undefined, status);
    assert.equal(await bench.claim(), undefined);
  }),

  onStore("claim: no two claimants get the same task", async (bench) => {
    for (let n = 0; n < 10; n++) await bench.make();
    const claims = await Promise.all(Array.from({ length: 20 }, (_, n) => bench.claim({ worker: `w${n}` })));
    const ids = claims.flatMap((task) => (task === undefined ? [] : [task.taskId]));
    assert.equal(ids.length, 10);
    assert.equal(new Set(ids).size, 10);
  }),

  {
    title: "keepLeases: prolongs every lease of this worker, of nobody else, and changes nothing that anybody can see",
    run: (open) =>
      withStore(open, { clock: new FakeClock(systemClock.now()) }, async (bench) => {
        const [call, asking, working] = [await bench.journal(), await bench.begin(), await bench.begin()];
        await bench.store.ask(asking, question);
        const [ended, given, other] = [await bench.begin(), await bench.begin(), await bench.begin({}, "w2")];
        await bench.store.settle(ended, done);
        await bench.store.giveBack(given);
        const read = () =>
          Promise.all([call, asking, working, ended, given, other].map(({ taskId }) => bench.read(taskId)));
        const before = await read();
        const changes: unknown[] = [];
        const stopListening = bench.store.onChange((taskId) => changes.push(taskId));
        const until = bench.now + leaseMs;
        bench.clock.advance(1_000);
        const stop = bench.store.keepLeases("w1", leaseMs, 20);
        await waitFor(async () => untilOf(await bench.read(working.taskId)) > until);
        await stop();
        const after = await read();
        assert.deepEqual(
          after.map((task) => untilOf(task) > until),
          [true, true, true, false, false, false],
        );
        const visible = (task: Task) => ({ ...task, lease: undefined });
        assert.deepEqual(after.map(visible), before.map(visible));
        assert.deepEqual(changes, []);
        stopListening();
        // A renewed lease is not old.
        bench.clock.advance(until + 1 - bench.now);
        assert.deepEqual(await bench.store.interrupt(), [other.taskId]);
        assert.equal(await bench.store.settle(working, done), true);
      }),
  },

  {
    title: "keepLeases: leases are renewed until it is stopped",
    async run(open) {
      // A thread of its own may renew the leases, by the machine's clock.
      const store = await open({ clock: systemClock });
      const leaseMs = 5_000;
      const everyMs = 20;
      const untilOfTask = async (number: number) => untilOf(await store.get({ caller: "ada" }, `task-${number}`));
      /** Resolves when a lease has been renewed several times. */
      const renewed = async (number: number) => {
        const first = await untilOfTask(number);
        await waitFor(async () => (await untilOfTask(number)) > first + 5 * everyMs);
      };
      for (const number of [1, 2]) {
        await store.create(newTask(number), { joinsEqual: false, maxLive: 10 });
        await store.claim({ project: "home", worker: `w${number}`, leaseMs, taskId: `task-${number}` });
      }
      const stop = store.keepLeases("w1", leaseMs, everyMs);
      const stopOther = store.keepLeases("w2", leaseMs, everyMs);
      try {
        await renewed(1);
        await stop();
        await renewed(2);
        const last = await untilOfTask(1);
        await renewed(2);
        assert.equal(await untilOfTask(1), last);
      } finally {
        await stop();
        await stopOther();
        await store.close();
      }
    },
  },

  onStore("workers: everyone who holds a task, once", async (bench) => {
    assert.deepEqual(await bench.store.workers(), []);
    const [first, second] = [await bench.begin({}, "w1"), await bench.begin({}, "w1")];
    const asking = await bench.begin({}, "w2");
    await bench.store.ask(asking, question);
    await bench.make();
    assert.deepEqual([...(await bench.store.workers())].sort(), ["w1", "w2"]);
    await bench.store.settle(first, done);
    await bench.store.cancel(bench.scope(), asking.taskId, "No longer needed.");
    assert.deepEqual(await bench.store.workers(), ["w1"]);
    await bench.store.giveBack(second);
    assert.deepEqual(await bench.store.workers(), []);
  }),
];
