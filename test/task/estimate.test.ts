import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { secondsLeft } from "../../src/task/estimate.ts";
import { History } from "../../src/task/history.ts";
import { ProgressTrack, type ProgressUpdate } from "../../src/task/progress.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { rounds } from "../helpers/rounds.ts";

/** Numbers from 0 to 1, the same ones for the same seed (mulberry32). */
function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One run to come: its size, how long each unit takes, and how long it is silent before the first. */
interface Run {
  readonly units: number;
  readonly unitMs: number;
  readonly startMs?: number;
}

const msOf = ({ units, unitMs, startMs = 0 }: Run) => startMs + units * unitMs;
const noisy = (value: number, chance: () => number) => value * (0.9 + 0.2 * chance());
/** From 30 to 3,000, each order of magnitude as likely as the other. */
const anySize = (chance: () => number) => Math.round(30 * 100 ** chance());

const kinds = {
  steady: (chance: () => number): Run => ({ units: 100, unitMs: noisy(200, chance) }),
  "size-dependent": (chance: () => number): Run => ({ units: anySize(chance), unitMs: noisy(300, chance) }),
  bimodal: (chance: () => number): Run => ({ units: 100, unitMs: noisy(chance() < 0.5 ? 20 : 1_000, chance) }),
};

const plain = defineCommand({ summary: "x", run: () => ({}) });
const sized = defineCommand({
  summary: "x",
  estimate: (input: { units?: number }) => ({ work: input.units ?? 1 }),
  run: () => ({}),
});

/** Thirty runs on record, and thirty more with what history says of each beforehand. */
async function foresee(draw: (chance: () => number) => Run, options: { isSized: boolean; seed: number }) {
  const { isSized, seed } = options;
  const chance = createChance(seed);
  const clock = new FakeClock();
  const history = new History(new MemoryStore(clock), clock);
  const past = Array.from({ length: 30 }, () => draw(chance));
  for (const run of past) history.add("do_it", msOf(run), isSized ? { work: run.units } : undefined);
  const ahead = Array.from({ length: 30 }, () => draw(chance));
  const foreseen = await Promise.all(
    ahead.map(async (run) => ({
      run,
      estimateMs: (await history.estimateMs("do_it", isSized ? sized : plain, { units: run.units })) as number,
    })),
  );
  await history.flush();
  return { past, foreseen };
}

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return (
    ((sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN) +
      (sorted[Math.ceil((sorted.length - 1) / 2)] ?? Number.NaN)) /
    2
  );
}

const seeds = Array.from({ length: 20 }, (_, at) => 20260728 + at);

/** The median relative error of the estimates, in each of twenty histories; the largest. */
async function medianError(draw: (chance: () => number) => Run, options: { isSized: boolean }): Promise<number> {
  const errors = seeds.map(async (seed) => {
    const { foreseen } = await foresee(draw, { ...options, seed });
    return medianOf(foreseen.map(({ run, estimateMs }) => Math.abs(estimateMs - msOf(run)) / msOf(run)));
  });
  return Math.max(...(await Promise.all(errors)));
}

describe("after 30 runs the median error of the estimate is under 20 %", () => {
  test("for steady runs", async () => {
    expect(await medianError(kinds.steady, { isSized: false })).toBeLessThan(0.2);
  });

  test("for runs whose length depends on their size", async () => {
    expect(await medianError(kinds["size-dependent"], { isSized: true })).toBeLessThan(0.2);
  });

  test("also when the size is in bytes, each a tiny part of a microsecond", async () => {
    const bytes = (chance: () => number): Run => ({ units: anySize(chance) * 1e6, unitMs: noisy(1e-5, chance) });
    expect(await medianError(bytes, { isSized: true })).toBeLessThan(0.2);
  });

  const starting = (startMs: number) => (chance: () => number) => ({ ...kinds["size-dependent"](chance), startMs });

  test("also when starting costs as much as a tenth of the usual work", async () => {
    expect(await medianError(starting(9_000), { isSized: true })).toBeLessThan(0.2);
  });

  // History keeps how long a unit takes, not how long starting does: of a run far smaller or larger than usual the
  // start is scaled along.
  test.fails("not when starting costs as much as the usual work", async () => {
    expect(await medianError(starting(90_000), { isSized: true })).toBeLessThan(0.2);
  });
});

test("of runs that are either short or long the estimate is the median, and nothing beyond them", async () => {
  for (const seed of seeds) {
    const { past, foreseen } = await foresee(kinds.bimodal, { isSized: false, seed });
    const sorted = past.map(msOf).sort((a, b) => a - b);
    for (const { estimateMs } of foreseen) {
      // The lower of the two in the middle, within the width of a bucket.
      expect(Math.abs(estimateMs / (sorted[14] as number) - 1)).toBeLessThan(0.01);
      expect(estimateMs).toBeGreaterThanOrEqual((sorted[0] as number) * 0.99);
      expect(estimateMs).toBeLessThanOrEqual((sorted[29] as number) * 1.01);
    }
  }
});

/**
 * Runs until half of its time is over, reporting each unit truthfully; the last thing that was heard of it, and when.
 */
function runHalf(run: Run, chance: () => number) {
  const clock = new FakeClock();
  const startedAt = clock.monotonic();
  let heard: ProgressUpdate | undefined;
  let reportedMs = 0;
  const track = new ProgressTrack({
    clock,
    deliver: (update) => {
      heard = update;
      reportedMs = clock.monotonic() - startedAt;
    },
  });
  const units = Array.from({ length: run.units }, () => noisy(run.unitMs, chance));
  const totalMs = units.reduce((sum, ms) => sum + ms, 0);
  let done = 0;
  for (const ms of units) {
    const restMs = totalMs / 2 - (clock.monotonic() - startedAt);
    clock.advance(Math.min(ms, restMs));
    if (ms > restMs) break;
    done += 1;
    track.report({ done, total: run.units });
  }
  const half = {
    elapsedMs: clock.monotonic() - startedAt,
    percentage: heard?.percentage,
    reportedMs,
    leftSeconds: totalMs / 2 / 1000,
  };
  track.finish();
  return half;
}

describe("halfway through a run that reports truthfully, the time left is right within 10 %", () => {
  test.each(Object.entries(kinds))("for %s runs, after 30 of them", async (kind, draw) => {
    for (const seed of seeds) {
      const chance = createChance(seed);
      const { foreseen } = await foresee(draw, { isSized: kind === "size-dependent", seed });
      for (const { run, estimateMs } of foreseen) {
        const { leftSeconds, ...half } = runHalf(run, chance);
        const left = secondsLeft({ ...half, estimateSeconds: estimateMs / 1000 }) as number;
        expect(
          Math.abs(left - leftSeconds) / leftSeconds,
          `${JSON.stringify(half)} said ${left}, was ${leftSeconds}`,
        ).toBeLessThan(0.1);
      }
    }
  });

  test("also without knowing when it was reported, if it is reported in a hundred steps", () => {
    const chance = createChance(20260728);
    for (let at = 0; at < 100; at++) {
      const { leftSeconds, reportedMs: _, ...half } = runHalf(kinds.steady(chance), chance);
      const left = secondsLeft({ ...half, estimateSeconds: 500 }) as number;
      expect(Math.abs(left - leftSeconds) / leftSeconds).toBeLessThan(0.1);
    }
  });
});

describe("time left", () => {
  test("without progress it is the estimate less what has elapsed", () => {
    expect(secondsLeft({ elapsedMs: 15_000, percentage: undefined, estimateSeconds: 45 })).toBe(30);
    expect(secondsLeft({ elapsedMs: 15_000, percentage: 0, estimateSeconds: 45 })).toBe(30);
    expect(secondsLeft({ elapsedMs: 15_000, percentage: undefined, estimateSeconds: undefined })).toBeUndefined();
  });

  test("once the estimate is overrun nobody can say, which is not the same as none", () => {
    expect(secondsLeft({ elapsedMs: 45_000, percentage: undefined, estimateSeconds: 45 })).toBeUndefined();
    expect(secondsLeft({ elapsedMs: 60_000, percentage: 0, estimateSeconds: 45 })).toBeUndefined();
  });

  test("from a quarter on it is the run's own speed alone, whatever the estimate", () => {
    for (const estimateSeconds of [1, 40, 4_000, undefined])
      expect(secondsLeft({ elapsedMs: 10_000, percentage: 25, estimateSeconds })).toBe(30);
  });

  test("before that it lies between the two, ever closer to the run's own speed", () => {
    const at = (percentage: number) =>
      secondsLeft({ elapsedMs: percentage * 100, percentage, estimateSeconds: 100 }) as number;
    for (const percentage of [5, 10, 15, 20]) {
      const bySpeed = 10 - percentage / 10;
      expect(at(percentage)).toBeGreaterThan(bySpeed);
      expect(at(percentage)).toBeLessThan(100 - percentage / 10);
      expect(at(percentage + 5) - (bySpeed - 0.5)).toBeLessThan(at(percentage) - bySpeed);
    }
  });

  test("an estimate that is overrun has been proved wrong: the run's own speed counts, however little is done", () => {
    expect(secondsLeft({ elapsedMs: 10_000, percentage: 1, estimateSeconds: 10 })).toBeCloseTo(990);
    expect(secondsLeft({ elapsedMs: 9_990, percentage: 1, estimateSeconds: 10 })).toBeGreaterThan(950);
  });

  test("the first half second says nothing about speed", () => {
    expect(secondsLeft({ elapsedMs: 100, percentage: 1, estimateSeconds: 45 })).toBeCloseTo(44.9);
    expect(secondsLeft({ elapsedMs: 100, percentage: 1, estimateSeconds: undefined })).toBeUndefined();
    expect(
      secondsLeft({ elapsedMs: 60_000, reportedMs: 100, percentage: 1, estimateSeconds: undefined }),
    ).toBeUndefined();
  });

  test("between two reports it counts down", () => {
    const at = (elapsedMs: number) =>
      secondsLeft({ elapsedMs, reportedMs: 40_000, percentage: 40, estimateSeconds: undefined });
    expect([40_000, 45_000, 50_000].map(at)).toEqual([60, 55, 50]);
  });

  test("when progress stalls it grows with the silence, instead of staying at nothing", () => {
    const at = (elapsedMs: number) =>
      secondsLeft({ elapsedMs, reportedMs: 40_000, percentage: 40, estimateSeconds: 90 });
    expect([70_000, 100_000, 400_000].map(at)).toEqual([30, 60, 360]);
  });

  test("when progress jumps it shrinks at once, and at the end it is none", () => {
    const at = (percentage: number) => secondsLeft({ elapsedMs: 10_000, percentage, estimateSeconds: 100 }) as number;
    expect(at(95)).toBeLessThan(1);
    expect(at(20)).toBeGreaterThan(at(95));
    expect(at(100)).toBe(0);
    expect(secondsLeft({ elapsedMs: 100, percentage: 100, estimateSeconds: 45 })).toBe(0);
  });

  test("is never negative, never NaN, never endless, whatever it is told", () => {
    const anything = fc.oneof(fc.double(), fc.double({ min: 0, max: 1e6 }), fc.constant(undefined));
    const part = fc.oneof(fc.double(), fc.double({ min: 0, max: 100 }), fc.constant(undefined));
    const elapsed = fc.oneof(fc.double(), fc.double({ min: 0, max: 1e9 }));
    fc.assert(
      fc.property(elapsed, part, anything, anything, (elapsedMs, percentage, estimateSeconds, reportedMs) => {
        const left = secondsLeft({ elapsedMs, percentage, estimateSeconds, reportedMs });
        expect(left === undefined || (Number.isFinite(left) && left >= 0), String(left)).toBe(true);
      }),
      { seed: 20260728, numRuns: 1_000 * rounds.propertyFactor },
    );
  });
});
