import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { Bench, done, leaseMs, ttlMs } from "../../src/testing/store-cases/bench.ts";
import { exerciseStore } from "../../src/testing/store-suite.ts";

let folder = "";
let count = 0;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

exerciseStore(test, ({ clock, place = `own-${++count}` }) => openStore(path.join(folder, `${place}.db`), { clock }));

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
