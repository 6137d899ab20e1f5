import assert from "node:assert/strict";
import type { Claim } from "../../../src/task/store.ts";
import type { StoreCase } from "../store-suite.ts";
import { assertTask, type Bench, done, onStore } from "./bench.ts";
import { unsafe } from "./call-bench.ts";

const endings: Record<string, (bench: Bench, claim: Claim) => Promise<unknown>> = {
  settled: (bench, claim) => bench.store.settle(claim, done),
  cancelled: (bench, claim) => bench.store.cancel(bench.scope(), claim.taskId, "No longer needed."),
  "given up": (bench) => bench.store.interrupt("w1"),
};

export const stepCases: readonly StoreCase[] = [
  onStore("steps: what is kept is there for every later attempt", async (bench) => {
    const { taskId } = await bench.make();
    assert.equal((await bench.store.steps(taskId)).size, 0);
    const ends = [
      (claim: Claim) => bench.store.giveBack(claim),
      (claim: Claim) => bench.store.retryLater(claim, 0, "Again."),
      () => bench.store.interrupt("w1"),
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

  onStore("steps: whether the task may be run again is said with one, and the last word counts", async (bench) => {
    const { taskId } = await bench.make({ rules: unsafe });
    const first = await bench.take(taskId);
    assert.equal(await bench.store.keepStep(first, "stands", "1", { isSafe: true }), true);
    await bench.store.interrupt("w1");
    assertTask(await bench.read(taskId), { status: "queued", crashes: 1, rules: { ...unsafe, isSafe: true } });
    assert.deepEqual([...(await bench.store.steps(taskId))], [["stands", "1"]]);
    const second = await bench.take(taskId);
    assert.equal(await bench.store.keepStep(second, "stands", "2", { isSafe: false }), true);
    assert.equal(await bench.store.keepStep(second, "other", "3"), true);
    await bench.store.interrupt("w1");
    assertTask(await bench.read(taskId), { status: "failed", crashes: 2, rules: unsafe });
    assert.equal((await bench.store.steps(taskId)).size, 0);
  }),

  onStore(
    "steps: whether it may be run again outlives a giving back, is no news, and is this task's alone",
    async (bench) => {
      const [claim, other] = [await bench.begin(), await bench.begin({}, "w2")];
      const { version, rules } = await bench.read(claim.taskId);
      await bench.store.keepStep(claim, "stands", "1", { isSafe: false });
      assertTask(await bench.read(claim.taskId), { version, rules: { ...rules, isSafe: false } });
      await bench.store.giveBack(claim);
      assertTask(await bench.read(claim.taskId), { status: "queued", rules: { ...rules, isSafe: false } });
      assertTask(await bench.read(other.taskId), { rules });
    },
  ),

  onStore("steps: a call is not run again, whatever is said with one; handing it out says it anew", async (bench) => {
    const [lost, handedOut] = [await bench.journal({ rules: unsafe }), await bench.journal({ rules: unsafe }, "w2")];
    for (const each of [lost, handedOut])
      assert.equal(await bench.store.keepStep(each, "stands", "1", { isSafe: true }), true);
    await bench.store.interrupt("w1");
    assertTask(await bench.read(lost.taskId), { status: "failed", isCall: true });
    await bench.store.handOut(handedOut, { reason: "slow", ttlMs: 1_000, rules: unsafe });
    assertTask(await bench.read(handedOut.taskId), { rules: unsafe });
    assert.equal((await bench.store.steps(handedOut.taskId)).size, 1);
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
