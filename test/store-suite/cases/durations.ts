import assert from "node:assert/strict";
import type { DurationCount, TaskStore } from "../../../src/task/store.ts";
import type { StoreCase } from "../store-suite.ts";
import { onStore } from "./bench.ts";

const count = (command: string, kind: DurationCount["kind"], bucket: number, times: number): DurationCount => ({
  command,
  kind,
  bucket,
  count: times,
});

async function read(store: TaskStore, command?: string): Promise<string[]> {
  return (await store.durations(command))
    .map((item) => `${item.command} ${item.kind} ${item.bucket}: ${item.count}`)
    .sort();
}

export const durationCases: readonly StoreCase[] = [
  onStore("durations: counts of the same bucket add up, others stay apart", async ({ store }) => {
    assert.deepEqual(await read(store), []);
    await store.recordDurations([]);
    await store.recordDurations([count("a", "time", 10, 2), count("a", "rate", 10, 3), count("b", "time", 10, 5)]);
    await store.recordDurations([count("a", "time", 10, 7), count("a", "time", -4, 1), count("a", "time", 10, 1)]);
    assert.deepEqual(await read(store), ["a rate 10: 3", "a time -4: 1", "a time 10: 10", "b time 10: 5"]);
    assert.deepEqual(await read(store, "b"), ["b time 10: 5"]);
    assert.deepEqual(await read(store, "never ran"), []);
  }),

  onStore("durations: many at once lose none", async ({ store }) => {
    await Promise.all(
      Array.from({ length: 20 }, () => store.recordDurations([count("a", "time", 1, 1), count("a", "time", 2, 2)])),
    );
    assert.deepEqual(await read(store), ["a time 1: 20", "a time 2: 40"]);
  }),

  onStore("durations: outlive the tasks they came from", async ({ store, clock }) => {
    await store.recordDurations([count("a", "time", 1, 1)]);
    clock.advance(1e12);
    await store.sweep();
    await store.prune({ caller: "ada" });
    assert.deepEqual(await read(store), ["a time 1: 1"]);
  }),
];
