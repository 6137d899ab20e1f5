import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ProgressReport } from "../../src/command/context.ts";
import { ProgressTrack, type ProgressUpdate } from "../../src/task/progress.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { rounds } from "../helpers/rounds.ts";

function track() {
  const clock = new FakeClock();
  const sent: ProgressUpdate[] = [];
  return { clock, sent, progress: new ProgressTrack({ clock, deliver: (update) => sent.push(update) }) };
}

describe("progress", () => {
  test("the first report fixes the scale, later forms are put on it", () => {
    const { clock, sent, progress } = track();
    progress.report({ done: 1, total: 4 });
    clock.advance(100);
    progress.report({ percentage: 50 });
    clock.advance(100);
    progress.report({ done: 9, total: 12 });
    expect(sent.map(({ value, total, percentage }) => [value, total, percentage])).toEqual([
      [1, 4, 25],
      [2, 4, 50],
      [3, 4, 75],
    ]);
  });

  test("never goes back, and ignores what is not a number", () => {
    const { clock, sent, progress } = track();
    for (const percentage of [10, 10, 5, Number.NaN, Number.POSITIVE_INFINITY, -1, 20]) {
      progress.report({ percentage });
      clock.advance(100);
    }
    expect(sent.map((update) => update.value)).toEqual([10, 20]);
  });

  test("a message without a new number raises the value by a millionth of the total", () => {
    const { clock, sent, progress } = track();
    progress.report({ percentage: 10, message: "reading" });
    clock.advance(100);
    progress.report({ message: "still reading" });
    clock.advance(100);
    progress.report({ message: "still reading" });
    expect(sent).toMatchObject([{ value: 10 }, { message: "still reading", percentage: 10 }]);
    expect(sent[1]?.value).toBeCloseTo(10.0001, 6);
  });

  test("at most ten updates a second, and the last value is always delivered", () => {
    const { clock, sent, progress } = track();
    for (let done = 1; done <= 1000; done++) {
      progress.report({ done, total: 1000 });
      clock.advance(1);
    }
    progress.finish();
    expect(sent.length).toBeLessThanOrEqual(11);
    expect(sent.at(-1)).toMatchObject({ value: 1000, percentage: 100 });
  });

  test("is silent after the end and leaves no timer behind", () => {
    const { clock, sent, progress } = track();
    progress.report({ percentage: 1 });
    progress.report({ percentage: 2 });
    progress.finish();
    progress.report({ percentage: 3 });
    clock.advance(1_000);
    expect(sent.map((update) => update.value)).toEqual([1, 2]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("whatever is reported, values on the wire grow strictly and never pass the total", () => {
    const report = fc.oneof(
      fc.record({ percentage: fc.double() }),
      fc.record({ done: fc.double(), total: fc.option(fc.double(), { nil: undefined }) }),
      fc.record({ message: fc.string() }),
    ) as fc.Arbitrary<ProgressReport>;
    fc.assert(
      fc.property(fc.array(fc.tuple(report, fc.integer({ min: 0, max: 300 })), { maxLength: 60 }), (steps) => {
        const { clock, sent, progress } = track();
        for (const [step, waitMs] of steps) {
          progress.report(step);
          clock.advance(waitMs);
        }
        progress.finish();
        for (const [at, update] of sent.entries()) {
          expect(Number.isFinite(update.value)).toBe(true);
          if (at > 0) expect(update.value).toBeGreaterThan(sent[at - 1]?.value as number);
          if (update.total !== undefined) expect(update.value).toBeLessThanOrEqual(update.total);
        }
      }),
      { seed: 20260728, numRuns: 200 * rounds.propertyFactor },
    );
  });
});

test("values on the wire are clean: what calculating leaves behind is left out", () => {
  const { sent, progress, clock } = track();
  progress.report({ done: 0, total: 1_000 });
  for (const percentage of [11, 29, 57, 58]) {
    clock.advance(1_000);
    progress.report({ percentage });
  }
  expect(sent.map(({ value }) => value)).toEqual([0, 110, 290, 570, 580]);
});
