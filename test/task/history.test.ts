import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { defaultDeferral } from "../../src/task/deferral.ts";
import { History } from "../../src/task/history.ts";
import { announceTaskMode } from "../../src/task/outlook.ts";
import { bucketOf } from "../../src/task/quantiles.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const plain = defineCommand({ summary: "x", run: () => ({}) });
const said = defineCommand({ summary: "x", estimate: () => 45, run: () => ({}) });

function setUp() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const history = new History(store, clock);
  const durations = vi.spyOn(store, "durations");
  const add = (ms: number, times: number, command = "do_it") => {
    for (let run = 0; run < times; run++) history.add(command, ms, undefined);
  };
  /** Runs of another process. */
  const addElsewhere = (ms: number, count: number) =>
    store.recordDurations([{ command: "do_it", kind: "time", bucket: bucketOf(ms), count }]);
  onTestFinished(async () => {
    await history.flush();
    expect(clock.pendingTimers).toBe(0);
  });
  return { clock, store, history, durations, add, addElsewhere };
}

describe("what is known of a command", () => {
  test("is nothing below five runs, then how many there were and how long half, 95 and 99 of a hundred took", async () => {
    const { history, add } = setUp();
    add(1_000, 4);
    expect(await history.known("do_it")).toBeUndefined();
    add(1_000, 90);
    add(3_000, 4);
    add(9_000, 2);
    for (let run = 0; run < 5; run++) history.add("sized", 2_000, { work: 1_000 });
    const known = await history.known("do_it");
    expect(known?.runs).toBe(100);
    expect(known?.p50Ms).toBeCloseTo(1_000, -2);
    expect(known?.p95Ms).toBeCloseTo(3_000, -2);
    expect(known?.p99Ms).toBeCloseTo(9_000, -3);
    expect(await history.known("sized")).toMatchObject({ runs: 5 });
    expect((await history.known("sized"))?.p50Ms).toBeCloseTo(2_000, -2);
    expect(await history.known("other")).toBeUndefined();
  });

  test("is asked of the store once a second, however many calls and estimates want it", async () => {
    const { clock, history, durations, addElsewhere } = setUp();
    await addElsewhere(1_000, 5);
    for (let tenth = 0; tenth < 10; tenth++) {
      await Promise.all([
        history.known("do_it"),
        history.estimateMs("do_it", plain, {}),
        history.estimateMs("do_it", said, {}),
      ]);
      clock.advance(100);
    }
    expect(durations).toHaveBeenCalledTimes(1);
    await history.known("do_it");
    expect(durations).toHaveBeenCalledTimes(2);
    await history.known("other");
    expect(durations).toHaveBeenCalledTimes(3);
  });

  test("includes other processes' runs after a second at most", async () => {
    const { clock, history, addElsewhere } = setUp();
    await addElsewhere(1_000, 5);
    expect(await history.known("do_it")).toMatchObject({ runs: 5 });
    await addElsewhere(1_000, 1);
    clock.advance(999);
    expect(await history.known("do_it")).toMatchObject({ runs: 5 });
    clock.advance(1);
    expect(await history.known("do_it")).toMatchObject({ runs: 6 });
  });

  test("includes this process's own runs at once: before, while and after they are written", async () => {
    const { clock, store, history, durations, add, addElsewhere } = setUp();
    await addElsewhere(1_000, 5);
    const runs = async () => (await history.known("do_it"))?.runs;
    expect(await runs()).toBe(5);
    add(1_000, 2);
    expect(await runs()).toBe(7);

    const gate = Promise.withResolvers<void>();
    const record = store.recordDurations.bind(store);
    vi.spyOn(store, "recordDurations").mockImplementationOnce(async (counts) => {
      await gate.promise;
      await record(counts);
    });
    const flushed = history.flush();
    await new Promise(setImmediate);
    expect(await runs()).toBe(7);
    add(1_000, 1);
    expect(await runs()).toBe(8);
    expect(durations).toHaveBeenCalledTimes(1);
    clock.advance(1_000);
    expect(await runs()).toBe(8);
    expect((await history.stats())[0]?.runs).toBe(8);
    gate.resolve();
    await flushed;
    expect(await runs()).toBe(8);
    clock.advance(1_000);
    expect(await runs()).toBe(8);
  });

  test("includes runs that end while the store is being asked", async () => {
    const { history, durations, add } = setUp();
    const gate = Promise.withResolvers<[]>();
    durations.mockReturnValueOnce(gate.promise);
    const asked = history.known("do_it");
    add(1_000, 5);
    gate.resolve([]);
    expect(await asked).toMatchObject({ runs: 5 });
  });

  test("is at hand within that second, however many runs have ended since: no call waits for it", async () => {
    const { history, add } = setUp();
    add(1_000, 5);
    await history.known("do_it");
    add(3_000, 95);
    expect(history.look("do_it", plain, {})).toMatchObject({ estimateMs: expect.closeTo(3_000, -2) });
  });

  test("is asked again after the store could not answer", async () => {
    const { history, durations, addElsewhere } = setUp();
    await addElsewhere(1_000, 5);
    durations.mockRejectedValueOnce(new Error("disk full"));
    await expect(history.known("do_it")).rejects.toThrow("disk full");
    expect(await history.known("do_it")).toMatchObject({ runs: 5 });
  });
});

test("stats are never older than the question", async () => {
  const { history, durations, addElsewhere } = setUp();
  await addElsewhere(1_000, 1);
  expect(await history.stats()).toMatchObject([{ command: "do_it", runs: 1 }]);
  await addElsewhere(1_000, 1);
  expect(await history.stats()).toMatchObject([{ command: "do_it", runs: 2 }]);
  expect(durations).toHaveBeenCalledTimes(2);
});

describe("writing", () => {
  test("happens ten seconds after the first of several runs", async () => {
    const { clock, store, add } = setUp();
    add(1_000, 3);
    clock.advance(9_999);
    await new Promise(setImmediate);
    expect(await store.durations()).toEqual([]);
    clock.advance(1);
    await vi.waitFor(async () => expect(await store.durations()).toMatchObject([{ command: "do_it", count: 3 }]), {
      timeout: 50_000,
    });
  });

  test("is tried again when the store refuses, and counts nothing twice", async () => {
    const { clock, store, history, add } = setUp();
    vi.spyOn(store, "recordDurations").mockRejectedValueOnce(new Error("disk full"));
    add(1_000, 5);
    await expect(history.flush()).rejects.toThrow("disk full");
    expect(await history.known("do_it")).toMatchObject({ runs: 5 });
    await history.flush();
    expect(await store.durations()).toMatchObject([{ count: 5 }]);
    clock.advance(1_000);
    expect(await history.known("do_it")).toMatchObject({ runs: 5 });
  });

  test("is over when the last flush resolves, also when another was under way", async () => {
    const { store, history, add } = setUp();
    const gate = Promise.withResolvers<void>();
    const record = store.recordDurations.bind(store);
    vi.spyOn(store, "recordDurations").mockImplementationOnce(async (counts) => {
      await gate.promise;
      await record(counts);
    });
    add(1_000, 5);
    const first = history.flush();
    let isOver = false;
    const second = history.flush().then(() => {
      isOver = true;
    });
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    gate.resolve();
    await Promise.all([first, second]);
    expect(await store.durations()).toMatchObject([{ count: 5 }]);
  });
});

test("task mode is recommended for a command that is declared long, or of which 5 runs show it: p95 over 10 s", () => {
  const known = (p95Ms: number, runs = 5) => ({ runs, p50Ms: 1, p95Ms, p99Ms: p95Ms });
  expect(announced({ long: true }).taskModeRecommended).toBe(true);
  expect(announced({ long: false }).taskModeRecommended).toBe(false);
  expect(announced({ long: false }, known(10_000)).taskModeRecommended).toBe(false);
  expect(announced({ long: false }, known(10_001))).toEqual({ async: false, taskModeRecommended: true });
  expect(announced({ long: false }, known(60_000, 4)).taskModeRecommended).toBe(false);
});

test("the settings in force decide which commands are announced as long", () => {
  const known = { runs: 5, p50Ms: 1, p95Ms: 15_000, p99Ms: 15_000 };
  const both = { async: true, taskModeRecommended: true };
  const neither = { async: false, taskModeRecommended: false };
  expect(announced({ long: false }, undefined, { tools: ["do_it"] })).toEqual(both);
  expect(announced({ long: false }, undefined, { tools: ["an_alias"] })).toEqual(both);
  expect(announced({ long: true }, undefined, { tools: ["other"] })).toEqual(neither);
  expect(announced({ long: false }, known, { longFromMs: 20_000 })).toEqual(neither);
});

/** What is announced of a command with an alias. */
function announced(
  definition: { readonly long: boolean },
  known?: Parameters<typeof announceTaskMode>[1],
  rules: Partial<typeof defaultDeferral> = {},
) {
  const command = defineCommand({ ...definition, summary: "Do it", run: () => ({}) });
  const entry = { toolName: "do_it", aliases: [{ name: "an_alias", arguments: {} }], command };
  return announceTaskMode(entry, known, { ...defaultDeferral, ...rules });
}

describe("what an author says of this input", () => {
  const synced = defineCommand({
    summary: "x",
    input: z.object({ files: z.number() }),
    estimate: ({ files }) => files / 100,
    run: () => ({}),
  });
  const estimateOf = (files: number) => ({ ms: files * 10 });

  test("is never replaced by what other inputs took: after five of one file, 12,000 take what their author says, within a factor of two", async () => {
    const { history } = setUp();
    for (let run = 0; run < 5; run++) history.add("do_it", 40, estimateOf(1));
    const { estimateMs = 0, isProven } = await history.look("do_it", synced, { files: 12_000 });
    expect(estimateMs).toBeGreaterThan(60_000);
    expect(estimateMs).toBeLessThan(240_000);
    expect(isProven).toBe(true);
  });

  test("is corrected by how far off such words were", async () => {
    const { history } = setUp();
    for (let run = 0; run < 5; run++) history.add("do_it", 180_000, estimateOf(6_000));
    const { estimateMs = 0 } = await history.look("do_it", synced, { files: 12_000 });
    expect(estimateMs / 360_000).toBeCloseTo(1, 1);
  });

  test("is corrected by one long run, whatever many trivial ones were off by", async () => {
    const { history } = setUp();
    for (let run = 0; run < 6; run++) history.add("do_it", 2, estimateOf(3));
    history.add("do_it", 60, estimateOf(2_400));
    for (const [files, tookMs] of [
      [2_400, 60],
      [1_200, 30],
      [9_600, 240],
    ] as const) {
      const { estimateMs = 0 } = await history.look("do_it", synced, { files });
      expect(estimateMs / tookMs, `${files} files`).toBeGreaterThan(1 / 3);
      expect(estimateMs / tookMs, `${files} files`).toBeLessThan(3);
    }
  });

  test("counts from the first run on, and is then not proven", async () => {
    const { history } = setUp();
    expect(await history.look("do_it", synced, { files: 100 })).toEqual({
      estimateMs: 1_000,
      isProven: false,
      isEndless: false,
      p95Ms: undefined,
    });
  });

  test("that it does not end by itself stays so, whatever history knows", async () => {
    const { history, add } = setUp();
    add(1_000, 10);
    const watch = defineCommand({ summary: "x", estimate: () => Number.POSITIVE_INFINITY, run: () => ({}) });
    expect(await history.look("do_it", watch, {})).toMatchObject({ estimateMs: undefined, isEndless: true });
  });
});

test.for<[shown: string, estimate: unknown]>([
  ["NaN", Number.NaN],
  ["-1", -1],
  ["1e+300", 1e300],
  ["soon", "soon"],
  ["null", null],
  ["{ work: NaN }", { work: Number.NaN }],
  ["{ work: -1 }", { work: -1 }],
])("an estimate of %s counts for nothing and is told once, with the field and the cure", async ([shown, estimate]) => {
  const told: string[] = [];
  const clock = new FakeClock();
  const history = new History(new MemoryStore(clock), clock, "", {
    home: "",
    config: {},
    log: { warn: (text) => told.push(text) },
  });
  const odd = defineCommand({ summary: "x", estimate: () => estimate as number, run: () => ({}) });
  for (let call = 0; call < 2; call++) expect(await history.estimateMs("do_it", odd, {})).toBeUndefined();
  expect(told).toEqual([
    `do_it: \`estimate\` gave ${shown}, which is left out; it must give seconds from 0 to 31536000, or { work } with a number above 0.`,
  ]);
});

test.for<[title: string, estimate: unknown]>([
  ["a command that does not end", Number.POSITIVE_INFINITY],
  ["nothing to do", { work: 0 }],
  ["nothing known", undefined],
])("%s is no odd estimate", async ([, estimate]) => {
  const told: string[] = [];
  const clock = new FakeClock();
  const history = new History(new MemoryStore(clock), clock, "", {
    home: "",
    config: {},
    log: { warn: (text) => told.push(text) },
  });
  await history.estimateMs(
    "do_it",
    defineCommand({ summary: "x", estimate: () => estimate as number, run: () => ({}) }),
    {},
  );
  expect(told).toEqual([]);
});
