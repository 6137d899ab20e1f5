import assert from "node:assert/strict";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import type { StoreCase } from "../store-suite.ts";
import { accepted, assertTask, done, eventually, onTwoStores, plain, question, withStore } from "./bench.ts";

export const sharingCases: readonly StoreCase[] = [
  {
    title: "place: what was acknowledged is there after closing and opening again",
    needsPlaces: true,
    async run(open) {
      const clock = new FakeClock();
      const before: unknown[] = [];
      await withStore(open, { place: "kept", clock }, async (bench) => {
        const settled = await bench.begin({ idempotencyKey: "once" });
        await bench.store.settle(settled, done);
        const asking = await bench.begin();
        await bench.store.ask(asking, question);
        await bench.store.keepStep(asking, "fetch", "1");
        await bench.make();
        await bench.store.recordDurations([{ command: "c", kind: "time", bucket: 1, count: 1 }]);
        for (const taskId of ["task-1", "task-2", "task-3"]) before.push(plain(await bench.read(taskId)));
      });
      await withStore(open, { place: "kept", clock }, async (bench) => {
        for (const [n, task] of before.entries()) assert.deepEqual(plain(await bench.read(`task-${n + 1}`)), task);
        assert.deepEqual([...(await bench.store.steps("task-2"))], [["fetch", "1"]]);
        assert.equal((await bench.store.durations()).length, 1);
        assert.equal((await bench.create({ taskId: "other", idempotencyKey: "once" })).kind, "repeated");
      });
    },
  },

  {
    title: "place: two places have nothing to do with each other",
    needsPlaces: true,
    async run(open) {
      await withStore(open, { place: "here" }, (here) =>
        withStore(open, { place: "there" }, async (there) => {
          const { taskId } = await here.make();
          assert.equal(await there.store.get(there.scope(), taskId), undefined);
        }),
      );
    },
  },

  onTwoStores("two stores: each sees at once what the other did", async (one, other) => {
    const { taskId } = await one.make();
    assertTask(await other.read(taskId), { status: "queued" });
    const claim = await other.take(taskId);
    assertTask(await one.read(taskId), { status: "working" });
    await other.store.ask(claim, question);
    assert.equal(await one.store.answer(one.scope(), taskId, "q1", accepted), true);
    assertTask(await other.read(taskId), { status: "working" });
    assert.equal(await one.store.cancel(one.scope(), taskId, "No longer needed."), true);
    assert.equal(await other.store.settle(claim, done), false);
    assert.deepEqual(plain(await other.read(taskId)), plain(await one.read(taskId)));
  }),

  onTwoStores("two stores: no task is claimed by both", async (one, other) => {
    for (let n = 0; n < 10; n++) await one.make();
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : other).claim({ worker: `w${n % 2}` })),
    );
    const ids = claims.flatMap((task) => (task === undefined ? [] : [task.taskId]));
    assert.equal(ids.length, 10);
    assert.equal(new Set(ids).size, 10);
  }),

  onTwoStores("two stores: one key, one equal call, one limit", async (one, other) => {
    const [first, second] = await Promise.all([
      one.create({ taskId: "a", idempotencyKey: "once", digest: "same" }),
      other.create({ taskId: "b", idempotencyKey: "once", digest: "same" }),
    ]);
    assert.deepEqual([first?.kind, second?.kind].sort(), ["created", "repeated"]);
    assert.equal((await other.create({ taskId: "c", digest: "same" }, { joinsEqual: true })).kind, "joined");
    assert.equal((await other.create({ taskId: "d" }, { maxLive: 1 })).kind, "full");
  }),

  onTwoStores("two stores: a fence holds across them", async (one, other) => {
    const late = await one.begin();
    await other.store.interrupt("w1");
    const taken = await other.take(late.taskId, "w2");
    assert.equal(await one.store.settle(late, done), false);
    assert.equal(await other.store.settle(taken, done), true);
  }),

  onTwoStores("two stores: each hears of the other's changes", async (one, other) => {
    let count = 0;
    const stop = one.store.onChange((taskId) => {
      if (taskId === undefined || taskId === "task-1") count += 1;
    });
    await other.make();
    await eventually(one.clock, () => count > 0, "a change made in another store");
    one.store.watchClosely(true);
    count = 0;
    await other.store.cancel(other.scope(), "task-1", "No longer needed.");
    await eventually(one.clock, () => count > 0, "a change made in another store, watched closely");
    one.store.watchClosely(false);
    stop();
  }),

  onTwoStores(
    "two stores: who listens to one task hears of the other's changes of that one, also of its removal",
    async (one, other) => {
      const [mine, theirs] = [await other.make(), await other.make()];
      const counts = { mine: 0, theirs: 0 };
      const stops = [
        one.store.onChange(() => (counts.mine += 1), mine.taskId),
        one.store.onChange(() => (counts.theirs += 1), theirs.taskId),
      ];
      one.store.watchClosely(true);
      // What they were when first looked at is not known: both may have changed.
      await other.make();
      await eventually(
        one.clock,
        () => counts.mine > 0 && counts.theirs > 0,
        "a first look at the other store's changes",
      );
      counts.theirs = 0;
      for (const change of [
        () => other.store.cancel(other.scope(), mine.taskId, "No longer needed."),
        () => other.store.prune(other.scope()),
      ]) {
        counts.mine = 0;
        await change();
        await eventually(one.clock, () => counts.mine > 0, "a change of one's own task in another store");
      }
      assert.equal(counts.theirs, 0);
      one.store.watchClosely(false);
      for (const stop of stops) stop();
    },
  ),

  onTwoStores("two stores: closing one leaves the other at work", async (one, other) => {
    const claim = await one.begin();
    await other.store.close();
    assert.equal(await one.store.settle(claim, done), true);
    assertTask(await one.read(claim.taskId), { status: "completed" });
  }),

  onTwoStores("two stores: durations of both add up", async (one, other) => {
    const count = { command: "c", kind: "time", bucket: 1, count: 1 } as const;
    await Promise.all([one, other, one, other].map(({ store }) => store.recordDurations([count])));
    assert.deepEqual(await one.store.durations(), [{ ...count, count: 4 }]);
  }),
];
