import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketOf, quantile, totalOf } from "../../src/task/quantiles.ts";
import { rounds } from "../helpers/rounds.ts";

const countsOf = (values: readonly number[]) => values.map((ms) => ({ bucket: bucketOf(ms), count: 1 }));

test("a quantile is right within 0.9 %, from a billionth of a millisecond to thirty thousand years", () => {
  const durations = fc.array(
    fc.double({ min: -9, max: 15, noNaN: true }).map((power) => 10 ** power),
    { minLength: 1, maxLength: 200 },
  );
  fc.assert(
    fc.property(durations, fc.constantFrom(0.5, 0.95, 0.99), (values, part) => {
      const exact = [...values].sort((a, b) => a - b)[Math.ceil(part * values.length) - 1] as number;
      expect(Math.abs((quantile(countsOf(values), part) as number) / exact - 1)).toBeLessThan(0.009_01);
    }),
    { seed: 20260728, numRuns: 100 * rounds.propertyFactor },
  );
});

test("what lies beyond shares the first and the last bucket", () => {
  expect(bucketOf(0)).toBe(bucketOf(1e-9));
  expect(bucketOf(-1)).toBe(bucketOf(1e-9));
  expect(bucketOf(Number.POSITIVE_INFINITY)).toBe(bucketOf(1e15));
});

test("without counts there is no quantile", () => {
  expect(quantile([], 0.5)).toBeUndefined();
  expect(quantile([{ bucket: 3, count: 0 }], 0.5)).toBeUndefined();
  expect(totalOf([])).toBe(0);
});

test("counts of several processes are merged by adding them, in any order", () => {
  const one = countsOf([100, 200, 300]);
  const other = countsOf([400, 500]);
  expect(quantile([...one, ...other], 0.5)).toBe(quantile([...other, ...one], 0.5));
  expect(quantile([...one, ...other], 0.5)).toBeCloseTo(300, -1);
  expect(
    quantile(
      [
        { bucket: bucketOf(100), count: 1 },
        { bucket: bucketOf(900), count: 2 },
      ],
      0.5,
    ),
  ).toBeCloseTo(900, -2);
});
