import assert from "node:assert/strict";
import { maxCrashes, openQuestions } from "../../../src/task/task.ts";
import type { StoreCase } from "../store-suite.ts";
import { accepted, assertTask, assertUnchanged, done, leaseMs, onStore, question, ttlMs } from "./bench.ts";

const unsafe = { isSafe: false, maxAttempts: 3, backoffMs: 0 };

export const interruptingCases: readonly StoreCase[] = [
  onStore(
    "interrupt: a task that may run again is queued at once, and the crash is counted apart from attempts",
    async (bench) => {
      const claim = await bench.begin();
      await bench.store.report(claim, { progress: { value: 3 }, statusMessage: "Page 3." });
      bench.clock.advance(5);
      assert.deepEqual(await bench.store.interrupt("w1"), [claim.taskId]);
      assertTask(await bench.read(claim.taskId), {
        status: "queued",
        lease: undefined,
        fence: 1,
        attempts: 0,
        crashes: 1,
        notBefore: bench.now,
        statusMessage: "Interrupted once; it will run again.",
        progress: { value: 3 },
        updatedAt: bench.now,
        version: 4,
      });
      await bench.take(claim.taskId, "w2");
      assertTask(await bench.read(claim.taskId), { attempts: 1, crashes: 1, fence: 2 });
    },
  ),

  onStore("interrupt: a task that may not run again has failed, outcome unknown", async (bench) => {
    const claim = await bench.begin({ rules: unsafe });
    bench.clock.advance(5);
    assert.deepEqual(await bench.store.interrupt("w1"), [claim.taskId]);
    const task = await bench.read(claim.taskId);
    assertTask(task, {
      status: "failed",
      crashes: 1,
      attempts: 0,
      finishedAt: bench.now,
      updatedAt: bench.now,
      expiresAt: bench.now + ttlMs,
      lease: undefined,
    });
    assert.match(task.statusMessage ?? "", /^Interrupted; outcome unknown\./);
    const expected = {
      ending: "failed",
      cause: "interrupted",
      message: task.statusMessage,
      messages: [],
      log: [],
      durationMs: 0,
    };
    assertTask(task, { outcome: expected, version: 3 });
  }),

  onStore(`interrupt: after ${maxCrashes} crashes a task is given up`, async (bench) => {
    const { taskId } = await bench.make();
    for (let crash = 1; crash < maxCrashes; crash++) {
      await bench.take(taskId);
      await bench.store.interrupt("w1");
      assertTask(await bench.read(taskId), {
        status: "queued",
        crashes: crash,
        statusMessage: `Interrupted ${crash === 1 ? "once" : `${crash} times`}; it will run again.`,
      });
    }
    await bench.take(taskId);
    assert.deepEqual(await bench.store.interrupt("w1"), [taskId]);
    const task = await bench.read(taskId);
    assertTask(task, { status: "failed", crashes: maxCrashes });
    assert.match(task.statusMessage ?? "", new RegExp(`^Interrupted ${maxCrashes} times; given up`));
    const expected = {
      ending: "failed",
      cause: "interrupted",
      message: task.statusMessage,
      messages: [],
      log: [],
      durationMs: 0,
    };
    assertTask(task, { outcome: expected });
    assert.equal(await bench.claim(), undefined);
  }),

  onStore("interrupt: a giving back or a retry in between is no crash", async (bench) => {
    const { taskId } = await bench.make();
    for (let n = 0; n < maxCrashes + 2; n++) await bench.store.giveBack(await bench.take(taskId));
    for (let n = 0; n < maxCrashes + 2; n++) await bench.store.retryLater(await bench.take(taskId), 0, "Again.");
    assertTask(await bench.read(taskId), { crashes: 0, attempts: maxCrashes + 2, status: "queued" });
  }),

  onStore("interrupt: what was asked stays asked, while nobody works on it", async (bench) => {
    const claim = await bench.begin();
    for (const message of ["First?", "Second?"]) await bench.store.ask(claim, { ...question, message });
    await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted);
    const { questions } = await bench.read(claim.taskId);
    await bench.store.interrupt("w1");
    const task = await bench.read(claim.taskId);
    assertTask(task, { status: "input_required", lease: undefined, crashes: 1, questions });
    assert.equal(openQuestions(task).length, 1);
    assert.deepEqual(await bench.store.interrupt("w1"), []);
  }),

  onStore("interrupt: a task that asked, and may not run again, has failed", async (bench) => {
    const claim = await bench.begin({ rules: unsafe });
    await bench.store.ask(claim, question);
    await bench.store.interrupt("w1");
    assertTask(await bench.read(claim.taskId), { status: "failed" });
    assert.equal(await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted), false);
  }),

  onStore("interrupt: by worker, only what that one holds", async (bench) => {
    const mine = [
      await bench.begin({}, "w1"),
      await bench.begin({ caller: "bob", project: "away" }, "w1"),
      await bench.begin({ rules: unsafe }, "w1"),
    ];
    const [others, queued, ended] = [await bench.begin({}, "w2"), await bench.make(), await bench.begin({}, "w1")];
    await bench.store.settle(ended, done);
    for (const { taskId } of [others, queued, ended]) {
      await assertUnchanged(bench, taskId, async () => {
        await bench.store.interrupt("nobody");
        await bench.store.interrupt("");
      });
    }
    const interrupted = await bench.store.interrupt("w1");
    assert.deepEqual([...interrupted].sort(), mine.map(({ taskId }) => taskId).sort());
    assertTask(await bench.read(others.taskId), { status: "working", fence: 1, version: 2 });
    assertTask(await bench.read(queued.taskId), { status: "queued", version: 1 });
    assertTask(await bench.read(ended.taskId), { status: "completed", version: 3 });
  }),

  onStore("interrupt: by lease, only what ran out before", async (bench) => {
    const old = await bench.begin({}, "w1");
    bench.clock.advance(1);
    const young = await bench.begin({}, "w2");
    const queued = await bench.make();
    const until = bench.now - 1 + leaseMs;
    bench.clock.advance(until - bench.now);
    assert.deepEqual(await bench.store.interrupt(), []);
    bench.clock.advance(1);
    assert.deepEqual(await bench.store.interrupt(), [old.taskId]);
    assert.deepEqual(await bench.store.interrupt(), []);
    assertTask(await bench.read(young.taskId), { status: "working" });
    assertTask(await bench.read(queued.taskId), { status: "queued", crashes: 0 });
  }),

  onStore("interrupt: by lease, compared with the given time, however late the store is asked", async (bench) => {
    const task = await bench.begin({}, "w1");
    const leaseUntil = bench.now + leaseMs;
    bench.clock.advance(2 * leaseMs);
    assert.deepEqual(await bench.store.interrupt(undefined, leaseUntil), []);
    assert.deepEqual(await bench.store.interrupt(undefined, leaseUntil + 1), [task.taskId]);
  }),

  onStore("interrupt: by lease, never compared with a time after the store's own", async (bench) => {
    const task = await bench.begin({}, "w1");
    assert.deepEqual(await bench.store.interrupt(undefined, bench.now + 10 * leaseMs), []);
    assertTask(await bench.read(task.taskId), { status: "working" });
  }),

  onStore("interrupt: by many at once, each task once", async (bench) => {
    for (let n = 0; n < 6; n++) await bench.begin();
    const found = await Promise.all([1, 2, 3].map(() => bench.store.interrupt("w1")));
    assert.equal(found.flat().length, 6);
    assert.equal(new Set(found.flat()).size, 6);
  }),
];
