import path from "node:path";
import { describe, expect, test } from "vitest";
import { openStore, type Store } from "../../src/store/open.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { Bench, done, ttlMs } from "../store-suite/cases/bench.ts";

/** Its wall clock can be set; the steady one goes on. */
class SettableClock extends FakeClock {
  setBy = 0;

  override now(): number {
    return super.now() + this.setBy;
  }
}

const hourMs = 3_600_000;

describe.each([":memory:", "tasks.db"])("the clock of this machine, %s", (name) => {
  async function setUp() {
    const clock = new SettableClock();
    const place = name === ":memory:" ? name : path.join(temporaryFolder(), name);
    const open = async (): Promise<Store> => {
      const store = await openStore(place, { clock });
      cleanUp(() => store.close());
      return store;
    };
    const store = await open();
    // Two processes, where a store is one's own for as long as it lives: both see the clock set.
    const stores = name === ":memory:" ? [store, store] : [store, await open()];
    return { clock, stores, bench: new Bench(store, clock) };
  }

  test("set an hour ahead: what had ended keeps the time it had left, once, and what ends later has its usual time", async () => {
    const { clock, stores, bench } = await setUp();
    const { store } = bench;
    const before = await bench.begin();
    await store.settle(before, done);
    clock.advance(1_000);
    clock.setBy += hourMs;
    expect(await bench.read(before.taskId), "before anybody has noticed").toMatchObject({ status: "completed" });
    const jumps = [];
    for (const process of stores) jumps.push(await process.putRight());
    expect(jumps).toEqual(name === ":memory:" ? [hourMs, 0] : [hourMs, hourMs]);
    const after = await bench.begin();
    await store.settle(after, done);
    clock.advance(ttlMs - 1_001);
    expect(await store.sweep()).toBe(0);
    clock.advance(1);
    expect(await store.sweep()).toBe(1);
    expect(await bench.read(after.taskId)).toMatchObject({ status: "completed" });
    clock.advance(1_000);
    expect(await store.sweep()).toBe(1);
  });

  test("set two hours back: nothing is kept for longer than its time from now, and what is queued is claimed", async () => {
    const { clock, stores, bench } = await setUp();
    const { store } = bench;
    const ended = await bench.begin();
    await store.settle(ended, done);
    const queued = await bench.make();
    clock.setBy -= 2 * hourMs;
    for (const process of stores) await process.putRight();
    expect(await bench.claim()).toMatchObject({ taskId: queued.taskId });
    clock.advance(ttlMs - 1);
    expect(await store.sweep()).toBe(0);
    clock.advance(1);
    expect(await store.sweep()).toBe(1);
  });

  test("led on slowly it was not set, and nothing is put right", async () => {
    const { clock, bench } = await setUp();
    for (let second = 0; second < 60; second++) {
      clock.advance(1_000);
      clock.setBy += 100;
      expect(await bench.store.putRight()).toBe(0);
    }
    expect(bench.store.now()).toBe(clock.now());
  });
});
