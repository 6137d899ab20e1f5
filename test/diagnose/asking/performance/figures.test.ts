import { expect, test } from "vitest";
import { toFigures } from "../../../../src/diagnose/asking/performance/figures.ts";

test("figures are the median, the 95th percentile and the longest", () => {
  expect(toFigures(Array.from({ length: 100 }, (_, at) => 100 - at))).toEqual({
    count: 100,
    p50Ms: 50,
    p95Ms: 95,
    maxMs: 100,
  });
  expect(toFigures([7])).toEqual({ count: 1, p50Ms: 7, p95Ms: 7, maxMs: 7 });
});
