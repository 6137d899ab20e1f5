import assert from "node:assert/strict";
import type { Claim, TaskStore } from "../../../src/task/store.ts";
import type { StoreCase } from "../store-suite.ts";
import { assertUnchanged, type Bench, done, leaseMs, onStore, question } from "./bench.ts";

/** Everything a worker can write, each answering whether it was taken. */
const writes: Record<string, (store: TaskStore, claim: Claim) => Promise<boolean>> = {
  report: (store, claim) => store.report(claim, { progress: { value: 99 }, statusMessage: "Late." }),
  ask: async (store, claim) => (await store.ask(claim, question)) !== undefined,
  settle: (store, claim) => store.settle(claim, done),
  retryLater: (store, claim) => store.retryLater(claim, 0, "Late."),
  giveBack: (store, claim) => store.giveBack(claim),
  keepStep: (store, claim) => store.keepStep(claim, "late", "1"),
  "keepStep with rules": (store, claim) => store.keepStep(claim, "late", "1", { isSafe: false }),
};

/** Every way to lose a claim. */
const losses: Record<string, (bench: Bench, claim: Claim) => Promise<unknown>> = {
  "it gave the task back": (bench, claim) => bench.store.giveBack(claim),
  "it left the task for later": (bench, claim) => bench.store.retryLater(claim, 0, "Later."),
  "it was interrupted": (bench) => bench.store.interrupt("w1"),
  "its lease ran out": async (bench) => {
    bench.clock.advance(leaseMs + 1);
    await bench.store.interrupt();
  },
  "the task was cancelled": (bench, claim) => bench.store.cancel(bench.scope(), claim.taskId, "No longer needed."),
  "the task was settled": (bench, claim) => bench.store.settle(claim, done),
};

async function assertRefused(bench: Bench, claim: Claim): Promise<void> {
  await assertUnchanged(bench, claim.taskId, async () => {
    for (const [name, write] of Object.entries(writes)) assert.equal(await write(bench.store, claim), false, name);
  });
  assert.equal((await bench.store.steps(claim.taskId)).has("late"), false);
}

export const fenceCases: readonly StoreCase[] = [
  ...Object.keys(writes).map((name) =>
    onStore(`fence: the worker that holds the task may ${name}`, async (bench) => {
      const claim = await bench.begin();
      assert.equal(await writes[name]?.(bench.store, claim), true);
    }),
  ),

  ...Object.entries(losses).map(([how, lose]) =>
    onStore(`fence: a worker writes nothing more once ${how}`, async (bench) => {
      const claim = await bench.begin();
      await lose(bench, claim);
      await assertRefused(bench, claim);
    }),
  ),

  ...Object.entries(losses)
    .slice(0, 4)
    .map(([how, lose]) =>
      onStore(`fence: a worker writes nothing more once ${how} and another has taken over`, async (bench) => {
        const late = await bench.begin();
        await lose(bench, late);
        const taken = await bench.take(late.taskId, "w2");
        assert.ok(taken.fence > late.fence);
        await assertRefused(bench, late);
        assert.equal(await bench.store.settle(taken, done), true);
      }),
    ),

  onStore("fence: the same worker, claiming again, is not its earlier self", async (bench) => {
    const late = await bench.begin();
    await bench.store.giveBack(late);
    await bench.take(late.taskId, "w1");
    await assertRefused(bench, late);
  }),

  onStore("fence: a number that was never given out is refused", async (bench) => {
    const { taskId } = await bench.make();
    await assertRefused(bench, { taskId, fence: 0 });
    await bench.take(taskId);
    for (const fence of [0, 2, -1, Number.MAX_SAFE_INTEGER]) await assertRefused(bench, { taskId, fence });
  }),

  onStore("fence: a claim on one task is none on another", async (bench) => {
    const [one, other] = [await bench.begin(), await bench.begin()];
    await bench.store.settle(one, done);
    await assertUnchanged(bench, other.taskId, async () => {
      for (const taskId of ["never-was", one.taskId]) {
        for (const [name, write] of Object.entries(writes))
          assert.equal(await write(bench.store, { taskId, fence: 1 }), false, `${name} ${taskId}`);
      }
    });
  }),
];
