import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { openStore } from "../../src/store/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { costOfLiveTasks } from "../helpers/create-cost.ts";
import { writeEmptyDatabase } from "../helpers/empty-database.ts";
import { Bench, done, leaseMs, ttlMs } from "../store-suite/cases/bench.ts";
import { exerciseKeys, withKeys } from "../store-suite/key-suite.ts";
import { exerciseStore } from "../store-suite/store-suite.ts";

let folder = "";
let count = 0;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function openFile({ clock, place = `own-${++count}` }: { readonly clock: Clock; readonly place?: string }) {
  const file = path.join(folder, `${place}.db`);
  await writeEmptyDatabase(file);
  return await openStore(file, { clock });
}

exerciseStore(test, withKeys(openFile));
exerciseKeys(test, openFile);

test.each(["sweep", "prune"] as const)(
  "%s: much is removed in pieces, and others have their turn between",
  async (verb) => {
    const clock = new FakeClock();
    const store = await openStore(path.join(folder, "long.db"), { clock });
    const bench = new Bench(store, clock);
    const options = { claim: { worker: "w1", leaseMs }, maxLive: 1_000 };
    const made = await Promise.all(Array.from({ length: 1_000 }, () => bench.create({}, options)));
    await Promise.all(
      made.map(async (created) => {
        if (created.kind !== "full") await store.settle({ taskId: created.task.taskId, fence: 1 }, done);
      }),
    );
    clock.advance(ttlMs);
    const order: string[] = [];
    const removal = (verb === "sweep" ? store.sweep() : store.prune(bench.scope())).then((removed) => {
      order.push("removed");
      return removed;
    });
    const other = bench.make().then(() => order.push("made"));
    expect(await removal).toBe(1_000);
    await other;
    expect(order).toEqual(["made", "removed"]);
    await store.close();
  },
);

test("large results are removed a few at a time, however few they are", async () => {
  const clock = new FakeClock();
  const file = path.join(folder, "large.db");
  const store = await openStore(file, { clock });
  const bench = new Bench(store, clock);
  const large = { ...done, data: { text: "x".repeat(1_500_000) } };
  for (let n = 0; n < 12; n++) {
    const created = await bench.create({}, { claim: { worker: "w1", leaseMs } });
    if (created.kind !== "full") await store.settle({ taskId: created.task.taskId, fence: 1 }, large);
  }
  clock.advance(ttlMs);
  // Each commit of the store is one that another connection notices.
  const witness = new Database(file);
  const left = witness.prepare("select count(*) from tasks").pluck();
  const seen = new Set<unknown>();
  const sweep = store.sweep();
  let isOver = false;
  void sweep.finally(() => (isOver = true));
  while (!isOver) {
    seen.add(left.get());
    await new Promise(setImmediate);
  }
  expect(await sweep).toBe(12);
  expect(seen.size).toBeGreaterThan(3);
  witness.close();
  await store.close();
});

test("create takes at most 1.5 times as long with 10,000 live tasks as with none", async () => {
  const store = await openStore(path.join(folder, "many.db"), { clock: new FakeClock() });
  expect(await costOfLiveTasks(store)).toBeLessThan(1.5);
  await store.close();
});
