import assert from "node:assert/strict";
import type { StoreCase } from "../store-suite.ts";
import { assertTask, assertUnchanged, leaseMs, onStore, question, ttlMs } from "./bench.ts";

const environment = { KEY: "a", REGION: "x" };
const dueMs = 2_000;
const asker = { project: "home", environment: { KEY: "b", REGION: "x" }, dueMs };

export const unclaimableCases: readonly StoreCase[] = [
  onStore(
    "unclaimable: a due task whose variables have other values says which, until it is claimed",
    async (bench) => {
      const { taskId } = await bench.make({ environment });
      bench.clock.advance(dueMs);
      assert.deepEqual(await bench.store.markUnclaimable(asker), [taskId]);
      const statusMessage = `Waits for a worker with the \`KEY\` of its start. \`meanwhile tasks retry ${taskId}\` runs it with the present values, \`tasks cancel\` ends it.`;
      assertTask(await bench.read(taskId), { status: "queued", statusMessage, version: 2, updatedAt: bench.now });
      const claimed = await bench.claim({ environment });
      assertTask(await bench.read(taskId), { status: "working", statusMessage: undefined, fence: claimed?.fence });
    },
  ),

  onStore("unclaimable: the first message stays, whatever another process misses", async (bench) => {
    const { taskId } = await bench.make({ environment });
    bench.clock.advance(dueMs);
    await bench.store.markUnclaimable(asker);
    await assertUnchanged(bench, taskId, async () => {
      const other = { ...asker, environment: { KEY: "c", REGION: "y" } };
      assert.deepEqual(await bench.store.markUnclaimable(other), []);
    });
  }),

  onStore("unclaimable: several variables are named", async (bench) => {
    const { taskId } = await bench.make({ environment: { A: "1", B: "1", C: "1" } });
    bench.clock.advance(dueMs);
    await bench.store.markUnclaimable({ ...asker, environment: { A: "2", B: "2", C: "2" } });
    assert.match((await bench.read(taskId)).statusMessage ?? "", /with the `A`, `B` and `C` of its start\./);
  }),

  onStore("unclaimable: tasks that a worker may claim, or that are not due for long, are left alone", async (bench) => {
    const running = await bench.begin({ environment: { KEY: "r" } });
    const asking = await bench.begin({ environment });
    await bench.store.ask(asking, question);
    await bench.store.interrupt("w1");
    await bench.take(running.taskId, "w2");
    const alone = [
      await bench.make({ environment: asker.environment }),
      await bench.make({ environment: { OTHER: "a" } }),
      await bench.make(),
      await bench.make({ environment, project: "away" }),
      // Its worker has no room.
      await bench.make({ environment: { KEY: "r" } }),
      running,
      asking,
    ];
    bench.clock.advance(1);
    alone.push(await bench.make({ environment }));
    bench.clock.advance(dueMs - 1);
    for (const { taskId } of alone)
      await assertUnchanged(bench, taskId, async () => {
        assert.deepEqual(await bench.store.markUnclaimable(asker), []);
      });
    assert.deepEqual(await bench.store.markUnclaimable({ ...asker, environment: {} }), []);
  }),

  onStore("unclaimable: a task fails that has said so for as long as its result would be kept", async (bench) => {
    const { taskId } = await bench.make({ environment });
    // Nobody looked at it until now, so nobody could read what it waits for.
    bench.clock.advance(2 * ttlMs);
    assert.deepEqual(await bench.store.markUnclaimable(asker), [taskId]);
    bench.clock.advance(ttlMs - 1);
    assert.deepEqual(await bench.store.markUnclaimable(asker), []);
    assertTask(await bench.read(taskId), { status: "queued" });
    bench.clock.advance(1);
    assert.deepEqual(await bench.store.markUnclaimable(asker), [taskId]);
    const message =
      "Waits for a worker with the `KEY` of its start. Given up after 1 min; a new call runs with the present values.";
    assertTask(await bench.read(taskId), {
      status: "failed",
      statusMessage: message,
      outcome: { ending: "failed", cause: "interrupted", message, messages: [], log: [], durationMs: 0 },
      finishedAt: bench.now,
      expiresAt: bench.now + ttlMs,
    });
    assert.deepEqual(await bench.store.markUnclaimable(asker), []);
    assert.equal(await bench.claim({ environment }), undefined);
  }),

  onStore("unclaimable: a new environment makes a task due now, for workers with that one", async (bench) => {
    const { taskId } = await bench.make({ environment });
    bench.clock.advance(dueMs);
    await bench.store.markUnclaimable(asker);
    assert.equal(await bench.store.setEnvironment(bench.scope("bob"), taskId, asker.environment), false);
    assert.equal(await bench.store.setEnvironment(bench.scope(), taskId, asker.environment), true);
    assertTask(await bench.read(taskId), {
      status: "queued",
      statusMessage: undefined,
      notBefore: bench.now,
      environment: asker.environment,
    });
    assert.equal(await bench.claim({ environment }), undefined);
    assert.equal((await bench.claim({ environment: asker.environment }))?.taskId, taskId);
    // A worker holds it.
    assert.equal(await bench.store.setEnvironment(bench.scope(), taskId, environment), false);
    assertTask(await bench.read(taskId), { lease: { worker: "w1", until: bench.now + leaseMs } });
  }),
];
