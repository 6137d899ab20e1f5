import assert from "node:assert/strict";
import type { TaskOutcome } from "../../../src/task/task.ts";
import type { StoreCase } from "../store-suite.ts";
import {
  accepted,
  assertTask,
  assertUnchanged,
  broken,
  done,
  leaseMs,
  onStore,
  question,
  stopped,
  ttlMs,
} from "./bench.ts";

const awkward = {
  ...done,
  data: JSON.parse('{"__proto__":{"x":1},"text":"🙂 \\u2028","list":[null,[],{}],"n":-0.1}') as unknown,
  content: [{ type: "text", text: "O'Neil" }],
  messages: [{ type: "warning", text: "Page 7 is empty.", timestamp: "2026-07-28T00:00:00.000Z" }],
  log: [{ level: "info", text: "Read 12 pages.", timestamp: "2026-07-28T00:00:00.000Z" }],
} as unknown as TaskOutcome;

export const endingCases: readonly StoreCase[] = [
  ...[done, broken, stopped, awkward].map((outcome, n) =>
    onStore(
      `settle: ${["completed", "failed", "cancelled", "whatever the outcome holds"][n]}, with its outcome and its time`,
      async (bench) => {
        const claim = await bench.begin();
        bench.clock.advance(70);
        assert.equal(await bench.store.settle(claim, outcome), true);
        const task = await bench.read(claim.taskId);
        assertTask(task, {
          status: outcome.ending,
          statusMessage: outcome.ending === "completed" ? undefined : outcome.message,
          finishedAt: bench.now,
          updatedAt: bench.now,
          expiresAt: bench.now + ttlMs,
          lease: undefined,
          version: 3,
          fence: 1,
          attempts: 1,
        });
        assert.equal(
          JSON.stringify(sortKeys((task as { outcome?: unknown }).outcome)),
          JSON.stringify(sortKeys(outcome)),
        );
      },
    ),
  ),

  onStore("settle: also while a question is open", async (bench) => {
    const claim = await bench.begin();
    await bench.store.ask(claim, question);
    assert.equal(await bench.store.settle(claim, done), true);
    assertTask(await bench.read(claim.taskId), { status: "completed", outcome: done });
  }),

  onStore("cancel: from every live status, with the caller's words, and not a second time", async (bench) => {
    const queued = await bench.make();
    const working = await bench.begin();
    const asking = await bench.begin();
    await bench.store.ask(asking, question);
    bench.clock.advance(5);
    for (const { taskId } of [queued, working, asking]) {
      const { version, startedAt } = await bench.read(taskId);
      const durationMs = startedAt === undefined ? 0 : bench.now - startedAt;
      assert.equal(await bench.store.cancel(bench.scope(), taskId, "No longer needed."), true);
      assertTask(await bench.read(taskId), {
        status: "cancelled",
        statusMessage: "No longer needed.",
        outcome: { ending: "cancelled", message: "No longer needed.", messages: [], log: [], durationMs },
        finishedAt: bench.now,
        updatedAt: bench.now,
        expiresAt: bench.now + ttlMs,
        lease: undefined,
        version: version + 1,
      });
      await assertUnchanged(bench, taskId, async () =>
        assert.equal(await bench.store.cancel(bench.scope(), taskId, "Again."), false),
      );
    }
  }),

  onStore("cancel: of many at once, one does it", async (bench) => {
    const claim = await bench.begin();
    const taken = await Promise.all(
      Array.from({ length: 50 }, (_, n) => bench.store.cancel(bench.scope(), claim.taskId, `By caller ${n}.`)),
    );
    assert.equal(taken.filter(Boolean).length, 1);
    assertTask(await bench.read(claim.taskId), { statusMessage: `By caller ${taken.indexOf(true)}.`, version: 3 });
  }),

  onStore("settle and cancel at once: one of them, and its outcome is the task's", async (bench) => {
    for (let round = 0; round < 20; round++) {
      const claim = await bench.begin();
      const settle = () => bench.store.settle(claim, done);
      const cancel = () => bench.store.cancel(bench.scope(), claim.taskId, "No longer needed.");
      const [first, second] = round % 2 === 0 ? [settle, cancel] : [cancel, settle];
      const [isFirst, isSecond] = await Promise.all([first(), second()]);
      assert.notEqual(isFirst, isSecond);
      const isSettled = round % 2 === 0 ? isFirst : isSecond;
      assertTask(await bench.read(claim.taskId), { status: isSettled ? "completed" : "cancelled" });
    }
  }),

  ...[done, broken, stopped].map((outcome) =>
    onStore(`terminal is final: nothing that anybody does changes a ${outcome.ending} task`, async (bench) => {
      const claim = await bench.begin();
      const { taskId } = claim;
      await bench.store.ask(claim, question);
      await bench.store.settle(claim, outcome);
      await assertUnchanged(bench, taskId, async () => {
        // Its lease would be over by now, and its time is not.
        bench.clock.advance(leaseMs + 1);
        const { store } = bench;
        assert.equal(await store.settle(claim, { ...stopped, message: "Late." } as TaskOutcome), false);
        assert.equal(await store.settle({ taskId, fence: claim.fence + 1 }, done), false);
        assert.equal(await store.report(claim, { statusMessage: "Late." }), false);
        assert.equal(await store.ask(claim, question), undefined);
        assert.equal(await store.retryLater(claim, 0, "Late."), false);
        assert.equal(await store.giveBack(claim), false);
        assert.equal(await store.keepStep(claim, "late", "1"), false);
        assert.equal(await store.answer(bench.scope(), taskId, "q1", accepted), false);
        assert.equal(await store.cancel(bench.scope(), taskId, "Late."), false);
        assert.equal(await bench.claim({ taskId }), undefined);
        assert.deepEqual(await store.interrupt("w1"), []);
        assert.deepEqual(await store.interrupt(), []);
        assert.equal(await store.sweep(), 0);
      });
    }),
  ),
];

/** JSON with its keys in one order, `__proto__` included: what was stored, whatever order the store keeps. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => [key, sortKeys(item)]);
}
