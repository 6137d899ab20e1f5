import path from "node:path";
import { expect, test, vi } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { isTerminal } from "../../src/task/task.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { passTimeQuickly } from "../helpers/quick-time.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { leaseMs, newTask } from "../store-suite/cases/bench.ts";

passTimeQuickly();

test("the lease of a living worker in SQLite does not expire on quick time", async () => {
  const store = await openStore(path.join(temporaryFolder(), "tasks.db"));
  cleanUp(() => store.close());
  const fresh = newTask(1, { taskId: "task" });
  await store.create(fresh, { joinsEqual: false, maxLive: 100, claim: { worker: "w1", leaseMs } });
  const leaseEnd = async () => {
    const task = await store.get(fresh, "task");
    return task !== undefined && !isTerminal(task) ? task.lease?.until : undefined;
  };
  const firstEnd = await leaseEnd();
  vi.advanceTimersByTime(2 * leaseMs);
  const stop = store.keepLeases("w1", leaseMs, leaseMs / 3);
  cleanUp(stop);
  await waitFor(async () => (await leaseEnd()) !== firstEnd);
  expect(await store.interrupt()).toEqual([]);
  expect(await store.interrupt("w1"), "of a worker that is known to be dead").toEqual(["task"]);
});
