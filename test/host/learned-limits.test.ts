import { describe, expect, test } from "vitest";
import { addGivenUp, type GivenUp, type GivenUpCall } from "../../src/host/learned-limits.ts";

const start: GivenUp = { agesMs: [] };
const now = 1_000;

const silent = (...ages: readonly number[]) => ages.map((age) => ({ ageMs: age * 1_000, isSilent: true }));
const withProgress = (...ages: readonly number[]) => ages.map((age) => ({ ageMs: age * 1_000, isSilent: false }));

/** What is known after silent calls were given up one after the other at these ages, in seconds. */
function after(...ages: readonly number[]): GivenUp {
  return afterGroups(...ages.map((age) => silent(age)));
}

/** What is known after these calls were given up; those of a group, together. */
function afterGroups(...groups: readonly (readonly GivenUpCall[])[]): GivenUp {
  return groups.reduce((known, calls) => addGivenUp(known, calls, now), start);
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

describe("calls that are given up together", () => {
  test("count as one", () => {
    const three = silent(10, 10, 10);
    expect(afterGroups(three, three).learned).toBeUndefined();
    expect(afterGroups(three, three, three).learned?.limitMs).toBe(10_000);
  });

  test("end the row if their ages differ", () => {
    expect(afterGroups(silent(10), silent(10), silent(10, 14), silent(10)).learned).toBeUndefined();
  });
});

describe("a call with progress", () => {
  test("ends the row if it is given up at another age", () => {
    expect(afterGroups(silent(10), silent(10), withProgress(30), silent(10)).learned).toBeUndefined();
    expect(afterGroups(silent(10), silent(10), [...silent(10), ...withProgress(30)]).learned).toBeUndefined();
  });

  test("changes nothing if it is given up at the same age", () => {
    expect(afterGroups(silent(10), silent(10), withProgress(10), silent(10)).learned?.limitMs).toBe(10_000);
    expect(afterGroups(...Array.from({ length: 3 }, () => withProgress(10))).learned).toBeUndefined();
  });
});

test("what was learned stays until something else is", () => {
  expect(after(10, 10, 10, 7, 31).learned).toEqual({ limitMs: 10_000, since: now });
});
