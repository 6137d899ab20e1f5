import assert from "node:assert/strict";
import type { Claim } from "../../../src/task/store.ts";
import type { StoreCase } from "../store-suite.ts";
import { accepted, type Bench, done, onStore, question, ttlMs } from "./bench.ts";

/** Whose change the listeners heard of while `act` ran. */
async function heard(bench: Bench, act: () => Promise<unknown>): Promise<(string | undefined)[]> {
  const changes: (string | undefined)[] = [];
  const stop = bench.store.onChange((taskId) => changes.push(taskId));
  await act();
  stop();
  return changes;
}

/** Everything that anybody can see happen, on a task that was claimed and has an open question. */
const news: Record<string, (bench: Bench, claim: Claim) => Promise<unknown>> = {
  report: (bench, claim) => bench.store.report(claim, { statusMessage: "Page 3." }),
  ask: (bench, claim) => bench.store.ask(claim, question),
  answer: (bench, claim) => bench.store.answer(bench.scope(), claim.taskId, "q1", accepted),
  settle: (bench, claim) => bench.store.settle(claim, done),
  cancel: (bench, claim) => bench.store.cancel(bench.scope(), claim.taskId, "No longer needed."),
  retryLater: (bench, claim) => bench.store.retryLater(claim, 0, "Again."),
  giveBack: (bench, claim) => bench.store.giveBack(claim),
  interrupt: (bench) => bench.store.interrupt("w1"),
};

export const changeCases: readonly StoreCase[] = [
  onStore("onChange: says when a task is made, and when it is claimed", async (bench) => {
    assert.deepEqual(await heard(bench, () => bench.make()), ["task-1"]);
    assert.deepEqual(await heard(bench, () => bench.claim()), ["task-1"]);
  }),

  ...Object.entries(news).map(([verb, act]) =>
    onStore(`onChange: says so when a task changes by ${verb}, once it has`, async (bench) => {
      const claim = await bench.begin();
      await bench.store.ask(claim, question);
      const { version } = await bench.read(claim.taskId);
      const seen: Promise<number>[] = [];
      const stop = bench.store.onChange(() => seen.push(bench.read(claim.taskId).then((task) => task.version)));
      assert.deepEqual(await heard(bench, () => act(bench, claim)), [claim.taskId]);
      assert.deepEqual(await Promise.all(seen), [version + 1]);
      stop();
    }),
  ),

  onStore("onChange: says so when a result is removed before its time", async (bench) => {
    const claim = await bench.begin();
    await bench.store.settle(claim, done);
    assert.deepEqual(await heard(bench, () => bench.store.prune(bench.scope())), [claim.taskId]);
  }),

  onStore("onChange: silent when nobody could see a difference", async (bench) => {
    const claim = await bench.begin({ digest: "same", idempotencyKey: "once" });
    const ended = await bench.begin();
    await bench.store.settle(ended, done);
    const changes = await heard(bench, async () => {
      await bench.store.keepStep(claim, "fetch", "1");
      await bench.store.recordDurations([{ command: "c", kind: "time", bucket: 1, count: 1 }]);
      await bench.create({ idempotencyKey: "once" });
      await bench.create({ digest: "same" }, { joinsEqual: true });
      await bench.create({}, { maxLive: 0 });
      await bench.claim();
      await bench.store.get(bench.scope(), claim.taskId);
      await bench.store.list(bench.scope(), { limit: 10 });
      await bench.store.settle({ ...claim, fence: 9 }, done);
      await bench.store.report(ended, { statusMessage: "Late." });
      await bench.store.cancel(bench.scope("bob"), claim.taskId, "No.");
      await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted);
      await bench.store.interrupt("nobody");
      await bench.store.prune(bench.scope("bob"));
      bench.clock.advance(ttlMs);
      await bench.store.sweep();
    });
    assert.deepEqual(changes, []);
  }),

  onStore("onChange: every listener hears, until it is stopped or the store is closed", async (bench) => {
    const changes: string[] = [];
    const stopFirst = bench.store.onChange(() => changes.push("first"));
    bench.store.onChange(() => changes.push("second"));
    await bench.make();
    stopFirst();
    stopFirst();
    await bench.make();
    assert.deepEqual(changes, ["first", "second", "second"]);
    await bench.store.close();
    bench.clock.advance(10_000);
    assert.equal(bench.clock.pendingTimers, 0);
    assert.equal(changes.length, 3);
  }),

  onStore("onChange: who listens to one task hears of that one alone", async (bench) => {
    const [mine, other] = [await bench.make(), await bench.make()];
    const changes: (string | undefined)[] = [];
    const stop = bench.store.onChange((taskId) => changes.push(taskId), mine.taskId);
    await bench.store.cancel(bench.scope(), other.taskId, "No longer needed.");
    assert.deepEqual(changes, []);
    await bench.store.cancel(bench.scope(), mine.taskId, "No longer needed.");
    assert.deepEqual(changes, [mine.taskId]);
    stop();
    stop();
    await bench.store.prune(bench.scope());
    assert.equal(changes.length, 1);
  }),

  onStore("watchClosely: wanting and no longer wanting to know leaves nothing behind", async (bench) => {
    const stop = bench.store.onChange(() => undefined);
    for (let n = 0; n < 3; n++) bench.store.watchClosely(true);
    bench.clock.advance(1_000);
    for (let n = 0; n < 3; n++) bench.store.watchClosely(false);
    stop();
    bench.clock.advance(10_000);
    assert.equal(bench.clock.pendingTimers, 0);
  }),
];
