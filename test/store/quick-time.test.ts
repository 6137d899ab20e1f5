import path from "node:path";
import { expect, test, vi } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { passTimeQuickly } from "../helpers/quick-time.ts";
import { Bench, leaseMs } from "../store-suite/cases/bench.ts";

passTimeQuickly();

test("the lease of a living worker in SQLite does not expire on quick time", async () => {
  const store = await openStore(path.join(temporaryFolder(), "tasks.db"));
  cleanUp(() => store.close());
  await new Bench(store, new FakeClock()).create({ taskId: "task" }, { claim: { worker: "w1", leaseMs } });
  vi.advanceTimersByTime(2 * leaseMs);
  const stop = store.keepLeases("w1", leaseMs, leaseMs / 3);
  cleanUp(stop);
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  expect(await store.interrupt()).toEqual([]);
  expect(await store.interrupt("w1"), "of a worker that is known to be dead").toEqual(["task"]);
});
