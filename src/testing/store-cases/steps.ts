import assert from "node:assert/strict";
import type { Claim } from "../../task/store.ts";
import type { StoreCase } from "../store-suite.ts";
import { type Bench, done, onStore } from "./bench.ts";

const endings: Record<string, (bench: Bench, claim: Claim) => Promise<unknown>> = {
  settled: (bench, claim) => bench.store.settle(claim, done, bench.now),
  cancelled: (bench, claim) => bench.store.cancel(bench.scope(), claim.taskId, "No longer needed."),
  "given up": (bench) => bench.store.interrupt({ worker: "w1" }, bench.now),
};

export const stepCases: readonly StoreCase[] = [
  onStore("steps: what is kept is there for every later attempt", async (bench) => {
    const { taskId } = await bench.make();
    assert.equal((await bench.store.steps(taskId)).size, 0);
    const ends = [
      (claim: Claim) => bench.store.giveBack(claim, bench.now),
      (claim: Claim) => bench.store.retryLater(claim, bench.now, "Again.", bench.now),
      () => bench.store.interrupt({ worker: "w1" }, bench.now),
    ];
    for (const [n, end] of ends.entries()) {
      const claim = await bench.take(taskId);
      assert.equal(await bench.store.keepStep(claim, `step ${n}`, JSON.stringify({ n })), true);
      await end(claim);
    }
    const expected = new Map([0, 1, 2].map((n) => [`step ${n}`, JSON.stringify({ n })]));
    assert.deepEqual(await bench.store.steps(taskId), expected);
  }),

  onStore("steps: kept again under the same name, the later value counts", async (bench) => {
    const claim = await bench.begin();
    await bench.store.keepStep(claim, "fetch", "1");
    assert.equal(await bench.store.keepStep(claim, "fetch", "2"), true);
    assert.deepEqual([...(await bench.store.steps(claim.taskId))], [["fetch", "2"]]);
  }),

  onStore("steps: any name, any JSON", async (bench) => {
    const claim = await bench.begin();
    const steps = new Map(
      ["", "__proto__", "constructor", "a b", "é🙂", "O'Neil", "x".repeat(500)].map((name) => [
        name,
        JSON.stringify({ name }),
      ]),
    );
    for (const [name, json] of steps) assert.equal(await bench.store.keepStep(claim, name, json), true);
    assert.deepEqual(await bench.store.steps(claim.taskId), steps);
  }),

  onStore("steps: belong to their task, and are no news", async (bench) => {
    const claim = await bench.begin();
    const { version } = await bench.read(claim.taskId);
    await bench.store.keepStep(claim, "fetch", "1");
    assert.equal((await bench.store.steps((await bench.make()).taskId)).size, 0);
    assert.equal((await bench.store.steps("never-was")).size, 0);
    assert.equal((await bench.read(claim.taskId)).version, version);
  }),

  ...Object.entries(endings).map(([how, end]) =>
    onStore(`steps: gone when the task is ${how}; those of others stay`, async (bench) => {
      const claim = await bench.begin({ rules: { isSafe: false, maxAttempts: 1, backoffMs: 0 } });
      const other = await bench.begin({}, "w2");
      for (const each of [claim, other]) await bench.store.keepStep(each, "fetch", "1");
      await end(bench, claim);
      assert.equal((await bench.store.steps(claim.taskId)).size, 0);
      assert.equal((await bench.store.steps(other.taskId)).size, 1);
    }),
  ),
];
