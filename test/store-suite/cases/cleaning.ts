import assert from "node:assert/strict";
import type { TaskOutcome } from "../../../src/task/task.ts";
import type { StoreCase } from "../store-suite.ts";
import { done, leaseMs, makeOneOfEach, onStore, ttlMs } from "./bench.ts";

export const cleaningCases: readonly StoreCase[] = [
  onStore("sweep: removes what has expired, of every caller, and nothing else", async (bench) => {
    for (const caller of ["ada", "bob"]) await bench.store.settle(await bench.begin({ caller }), done);
    const longer = await bench.begin({ ttlMs: ttlMs + 1 });
    await bench.store.settle(longer, done);
    const live = await bench.make();
    bench.clock.advance(ttlMs - 1);
    assert.equal(await bench.store.sweep(), 0);
    bench.clock.advance(1);
    assert.equal(await bench.store.sweep(), 2);
    assert.equal(await bench.store.sweep(), 0);
    const ids = (await bench.store.list(bench.scope(), { limit: 10 })).tasks.map(({ taskId }) => taskId);
    assert.deepEqual(ids, [live.taskId, longer.taskId]);
    assert.equal(await bench.store.get(bench.scope("bob"), "task-2"), undefined);
  }),

  onStore("prune: removes the caller's ended tasks, and nothing else", async (bench) => {
    const ids = await makeOneOfEach(bench);
    const foreign = await bench.begin({ caller: "bob" });
    await bench.store.settle(foreign, done);
    assert.equal(await bench.store.prune(bench.scope("nobody")), 0);
    assert.equal(await bench.store.prune(bench.scope()), 3);
    const left = (await bench.store.list(bench.scope(), { limit: 10 })).tasks.map(({ taskId }) => taskId);
    assert.deepEqual(left, [ids.queued, ids.working, ids.input_required]);
    assert.equal((await bench.read(foreign.taskId, "bob")).status, "completed");
    assert.equal(await bench.store.prune(bench.scope()), 0);
  }),

  onStore(
    "prune: removes one ended task of the caller's, and neither a live one nor somebody else's",
    async (bench) => {
      const ids = await makeOneOfEach(bench);
      assert.equal(await bench.store.prune(bench.scope(), ids.working), 0);
      assert.equal(await bench.store.prune(bench.scope("bob"), ids.completed), 0);
      assert.equal(await bench.store.prune(bench.scope(), ids.completed), 1);
      const left = (await bench.store.list(bench.scope(), { limit: 10 })).tasks.map(({ taskId }) => taskId);
      assert.deepEqual(new Set(left), new Set(Object.values(ids).filter((id) => id !== ids.completed)));
    },
  ),

  onStore(
    "create: of the caller's ended tasks those that ended first are forgotten beyond a number, and live ones never",
    async (bench) => {
      const ids = await makeOneOfEach(bench);
      const foreign = await bench.begin({ caller: "bob" });
      await bench.store.settle(foreign, done);
      bench.clock.advance(1);
      const last = await bench.begin();
      await bench.store.settle(last, done);
      const made = await bench.create({}, { keeps: { count: 2, bytes: 1_000_000 } });
      assert.ok(made.kind === "created");
      const left = (await bench.store.list(bench.scope(), { limit: 10 })).tasks.map(({ taskId }) => taskId);
      assert.deepEqual(
        new Set(left),
        new Set([made.task.taskId, last.taskId, ids.queued, ids.working, ids.input_required, ids.cancelled]),
      );
      assert.equal((await bench.read(foreign.taskId, "bob")).status, "completed");
    },
  ),

  onStore(
    "create: of the caller's ended tasks those that ended first are forgotten beyond so many bytes",
    async (bench) => {
      const ended: string[] = [];
      for (const text of ["a", "b", "c"]) {
        const claim = await bench.begin({ input: { text: text.repeat(1_000) } });
        await bench.store.settle(claim, { ...done, data: { text: text.repeat(1_000) } } as TaskOutcome);
        ended.unshift(claim.taskId);
        bench.clock.advance(1);
      }
      const large = await bench.make({ input: { text: "d".repeat(10_000) } });
      for (const [bytes, kept] of [
        [10_000, 3],
        [5_000, 2],
        [2_900, 1],
        [1, 0],
      ] as const) {
        const made = await bench.create(
          { isCall: true },
          { keeps: { count: 100, bytes }, claim: { worker: "w1", leaseMs } },
        );
        assert.equal(made.kind, "created");
        const left = (await bench.store.list(bench.scope(), { limit: 10 })).tasks.map(({ taskId }) => taskId);
        assert.deepEqual(left, [large.taskId, ...ended.slice(0, kept)]);
      }
    },
  ),

  onStore("sweep and prune: a removed task is as if it had never been", async (bench) => {
    const claim = await bench.begin({ idempotencyKey: "once" });
    await bench.store.settle(claim, done);
    await bench.store.prune(bench.scope());
    assert.equal(await bench.store.get(bench.scope(), claim.taskId), undefined);
    assert.equal(await bench.store.settle(claim, done), false);
    assert.equal(await bench.store.keepStep(claim, "late", "1"), false);
    assert.equal((await bench.create({ idempotencyKey: "once" })).kind, "created");
  }),

  onStore("prune: what is made afterwards is newer than what was there before", async (bench) => {
    const kept = await bench.make();
    const newest = await bench.make();
    await bench.store.cancel(bench.scope(), newest.taskId, "No longer needed.");
    await bench.store.prune(bench.scope());
    const later = [await bench.make(), await bench.make()];
    const { nextCursor, tasks } = await bench.store.list(bench.scope(), { limit: 2 });
    assert.deepEqual(
      tasks.map(({ taskId }) => taskId),
      later.map(({ taskId }) => taskId).reverse(),
    );
    assert.ok(nextCursor);
    const rest = await bench.store.list(bench.scope(), { limit: 2, cursor: nextCursor });
    assert.deepEqual(
      rest.tasks.map(({ taskId }) => taskId),
      [kept.taskId],
    );
  }),
];
