import assert from "node:assert/strict";
import type { StoreCase } from "../store-suite.ts";
import { accepted, assertUnchanged, type Bench, done, onStore, question, ttlMs } from "./bench.ts";

/** A task that ended and whose time is over. */
async function makeExpired(bench: Bench): Promise<string> {
  const claim = await bench.begin();
  await bench.store.settle(claim, done);
  bench.clock.advance(ttlMs);
  return claim.taskId;
}

async function makeAsking(bench: Bench, caller: string): Promise<string> {
  const claim = await bench.begin({ caller });
  await bench.store.ask(claim, question);
  return claim.taskId;
}

export const scopeCases: readonly StoreCase[] = [
  onStore("scope: unknown, expired and somebody else's look the same", async (bench) => {
    const expired = await makeExpired(bench);
    const foreign = await makeAsking(bench, "bob");
    await assertUnchanged(
      bench,
      foreign,
      async () => {
        for (const taskId of [expired, foreign, "never-was", "", "__proto__", "constructor", "%", "' or 1=1 --"]) {
          assert.equal(await bench.store.get(bench.scope(), taskId), undefined, `get ${taskId}`);
          assert.equal(await bench.store.answer(bench.scope(), taskId, "q1", accepted), false, `answer ${taskId}`);
          assert.equal(await bench.store.cancel(bench.scope(), taskId, "No."), false, `cancel ${taskId}`);
        }
      },
      "bob",
    );
    assert.deepEqual(await bench.store.list(bench.scope(), { limit: 10 }), { tasks: [], nextCursor: undefined });
  }),

  onStore("scope: the local users of two homes have nothing in common", async (bench) => {
    const [one, other] = ["local:the-home-of-ada", "local:the-home-of-bob"];
    const facts = { digest: "equal", idempotencyKey: "same" };
    const options = { joinsEqual: true, maxLive: 1 };
    const made = await bench.create({ ...facts, taskId: "of one", caller: one }, options);
    assert.equal(made.kind, "created");
    for (const caller of [other, "local", "anonymous", "local:", "local:the-home-of-ada "]) {
      assert.equal(await bench.store.get({ caller }, "of one"), undefined, caller);
      assert.equal(await bench.store.cancel({ caller }, "of one", "No."), false, caller);
      assert.equal(await bench.store.findEqual({ caller }, "home", "equal"), undefined, caller);
      assert.equal(await bench.store.prune({ caller }, "of one"), 0, caller);
      const { kind, task } = (await bench.create({ ...facts, taskId: `of ${caller}`, caller }, options)) as never;
      assert.deepEqual([kind, (task as { taskId: string }).taskId], ["created", `of ${caller}`]);
      assert.equal((await bench.store.list({ caller }, { limit: 10 })).tasks.length, 1, caller);
    }
    // A worker of the project runs them all.
    const callers = new Set<string | undefined>();
    for (let n = 0; n < 6; n++) callers.add((await bench.claim())?.caller);
    assert.equal(callers.size, 6);
  }),

  onStore("scope: callers that differ in case, in a space or in a wildcard are different", async (bench) => {
    const { taskId } = await bench.make({ caller: "ada" });
    for (const caller of ["Ada", "ada ", " ada", "%", "ad_", "", "__proto__"]) {
      assert.equal(await bench.store.get(bench.scope(caller), taskId), undefined, `get as «${caller}»`);
      assert.equal(await bench.store.cancel(bench.scope(caller), taskId, "No."), false, `cancel as «${caller}»`);
      assert.equal((await bench.store.list(bench.scope(caller), { limit: 10 })).tasks.length, 0, `list as «${caller}»`);
    }
  }),

  onStore("scope: a result is there until its time is over, and not a millisecond longer", async (bench) => {
    const claim = await bench.begin();
    bench.clock.advance(10 * ttlMs);
    await bench.store.settle(claim, done);
    bench.clock.advance(ttlMs - 1);
    assert.equal((await bench.read(claim.taskId)).status, "completed");
    assert.equal((await bench.store.list(bench.scope(), { limit: 10 })).tasks.length, 1);
    bench.clock.advance(1);
    assert.equal(await bench.store.get(bench.scope(), claim.taskId), undefined);
    assert.equal((await bench.store.list(bench.scope(), { limit: 10 })).tasks.length, 0);
  }),

  onStore("scope: a live task does not expire", async (bench) => {
    const waiting = await bench.make();
    const asking = await makeAsking(bench, "ada");
    bench.clock.advance(1_000 * ttlMs);
    await bench.store.sweep();
    assert.equal((await bench.read(waiting.taskId)).status, "queued");
    assert.equal((await bench.read(asking)).status, "input_required");
  }),
];
