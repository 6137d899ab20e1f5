import assert from "node:assert/strict";
import type { StoreCase } from "../store-suite.ts";
import { accepted, assertTask, onStore, question } from "./bench.ts";

export const workingCases: readonly StoreCase[] = [
  onStore("report: progress and message are shown, and what is not said stays", async (bench) => {
    const claim = await bench.begin();
    const progress = {
      value: 3,
      total: 12,
      percentage: 25,
      message: "Page 3",
      context: { page: "three", list: [1, null] },
    };
    bench.clock.advance(5);
    assert.equal(await bench.store.report(claim, { progress }), true);
    assertTask(await bench.read(claim.taskId), {
      status: "working",
      progress,
      statusMessage: undefined,
      version: 3,
      updatedAt: bench.now,
    });
    assert.equal(await bench.store.report(claim, { statusMessage: "Reading." }), true);
    assertTask(await bench.read(claim.taskId), { progress, statusMessage: "Reading.", version: 4 });
    assert.equal(await bench.store.report(claim, { progress: { value: 4 }, statusMessage: "Still reading." }), true);
    assertTask(await bench.read(claim.taskId), { progress: { value: 4 }, statusMessage: "Still reading.", version: 5 });
    assert.equal(await bench.store.report(claim, {}), true);
    assertTask(await bench.read(claim.taskId), { progress: { value: 4 }, statusMessage: "Still reading." });
  }),

  onStore("report: a task that waits for an answer goes on waiting", async (bench) => {
    const claim = await bench.begin();
    await bench.store.ask(claim, question);
    assert.equal(await bench.store.report(claim, { statusMessage: "Meanwhile, page 4." }), true);
    assertTask(await bench.read(claim.taskId), { status: "input_required", statusMessage: "Meanwhile, page 4." });
  }),

  onStore("retryLater: the attempt counts, the task waits for its time, and says why", async (bench) => {
    const claim = await bench.begin();
    await bench.store.report(claim, { progress: { value: 3 } });
    bench.clock.advance(5);
    assert.equal(await bench.store.retryLater(claim, 1_000, "Attempt 1 failed."), true);
    assertTask(await bench.read(claim.taskId), {
      status: "queued",
      lease: undefined,
      attempts: 1,
      crashes: 0,
      fence: 1,
      notBefore: bench.now + 1_000,
      statusMessage: "Attempt 1 failed.",
      progress: { value: 3 },
      updatedAt: bench.now,
      version: 4,
    });
  }),

  onStore("retryLater: an open question is still asked, and its answer does not shorten the wait", async (bench) => {
    const claim = await bench.begin();
    await bench.store.ask(claim, question);
    const notBefore = bench.now + 1_000;
    assert.equal(await bench.store.retryLater(claim, 1_000, "Attempt 1 failed."), true);
    assertTask(await bench.read(claim.taskId), { status: "input_required", lease: undefined, attempts: 1 });
    bench.clock.advance(10);
    assert.equal(await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted), true);
    assertTask(await bench.read(claim.taskId), { status: "queued", notBefore });
    assert.equal(await bench.claim(), undefined);
    bench.clock.advance(990);
    await bench.take(claim.taskId);
  }),

  onStore("giveBack: the attempt does not count, and anybody may claim at once", async (bench) => {
    const claim = await bench.begin();
    bench.clock.advance(5);
    assert.equal(await bench.store.giveBack(claim), true);
    assertTask(await bench.read(claim.taskId), {
      status: "queued",
      lease: undefined,
      attempts: 0,
      crashes: 0,
      fence: 1,
      notBefore: bench.now,
      version: 3,
    });
    const again = await bench.take(claim.taskId, "w2");
    assert.equal(again.fence, 2);
    assertTask(await bench.read(claim.taskId), { attempts: 1 });
  }),

  onStore("giveBack: it may say why, until it is claimed again; without a word what it said stays", async (bench) => {
    const claim = await bench.begin();
    await bench.store.giveBack(claim, "Waiting for its command.");
    assertTask(await bench.read(claim.taskId), {
      status: "queued",
      attempts: 0,
      statusMessage: "Waiting for its command.",
    });
    const again = await bench.take(claim.taskId, "w2");
    assertTask(await bench.read(claim.taskId), { statusMessage: undefined });
    await bench.store.report(again, { statusMessage: "Page 3." });
    await bench.store.giveBack(again);
    assertTask(await bench.read(claim.taskId), { statusMessage: "Page 3." });
  }),

  onStore("giveBack: an open question is still asked", async (bench) => {
    const claim = await bench.begin();
    await bench.store.ask(claim, question);
    assert.equal(await bench.store.giveBack(claim), true);
    assertTask(await bench.read(claim.taskId), { status: "input_required", lease: undefined, attempts: 0 });
    assert.equal(await bench.claim(), undefined);
    await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted);
    await bench.take(claim.taskId, "w2");
  }),
];
