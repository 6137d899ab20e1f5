import { describe, expect, test } from "vitest";
import { addGivenUp, type GivenUp } from "../../src/host/learned-limits.ts";

const start: GivenUp = { agesMs: [] };
const now = 1_000;

/** What is known after calls were given up at these ages, in seconds. */
function after(...ages: readonly number[]): GivenUp {
  return ages.reduce((known, age) => addGivenUp(known, age * 1_000, now), start);
}

describe("a limit is learned", () => {
  test.each([
    ["three calls of the same age", [10, 10, 10], 10],
    ["three calls within one second", [10, 10.9, 10.4], 10],
    ["three calls within 3 %", [100, 102.9, 101], 100],
    ["three calls after others of another age", [7, 10, 10, 10], 10],
    ["three later calls of another age", [10, 10, 10, 20, 20, 20], 20],
  ])("from %s", (_title, ages, seconds) => {
    expect(after(...ages).learned).toEqual({ limitMs: seconds * 1_000, since: now });
  });
});

describe("nothing is learned", () => {
  test.each([
    ["from two calls", [10, 10]],
    ["from calls that are younger than 5 s", [4.9, 4.9, 4.9]],
    ["from ages that differ by more than a second and 3 %", [10, 11.1, 10]],
    ["from ages that differ by more than 3 %", [100, 103.2, 100]],
    ["if a call of another age is between them", [10, 10, 6, 10]],
    ["if a call younger than 5 s is between them", [10, 10, 1, 10]],
    ["from a person who cancels at random times", [7, 31, 12, 55, 18, 9, 40]],
  ])("%s", (_title, ages) => {
    expect(after(...ages).learned).toBeUndefined();
  });
});

test("what was learned stays until something else is", () => {
  expect(after(10, 10, 10, 7, 31).learned).toEqual({ limitMs: 10_000, since: now });
});
