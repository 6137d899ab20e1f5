import { describe, expect, test } from "vitest";
import { nextPollMs, nextRetryMs } from "../../../src/client/connection/pauses.ts";

const [low, middle, high] = [() => 0, () => 0.5, () => 0.999_999];

describe("the next look", () => {
  test("comes after the server's interval while things change", () => {
    expect(nextPollMs({ intervalMs: 1000, unchanged: 0 }, middle)).toBe(1000);
  });

  test("comes later the less happens, and after five intervals at the latest", () => {
    const waits = [0, 1, 2, 3, 4, 5, 50].map((unchanged) => nextPollMs({ intervalMs: 1000, unchanged }, middle));
    expect(waits).toEqual([1000, 1500, 2250, 3375, 5000, 5000, 5000]);
  });

  test("is spread by a fifth, and never sooner than the server asks for", () => {
    expect(nextPollMs({ intervalMs: 1000, unchanged: 2 }, low)).toBe(1800);
    expect(nextPollMs({ intervalMs: 1000, unchanged: 2 }, high)).toBe(2700);
    expect(nextPollMs({ intervalMs: 1000, unchanged: 0 }, low)).toBe(1000);
    expect(nextPollMs({ intervalMs: 1000, unchanged: 0 }, high)).toBe(1200);
  });

  test("is a safety net while the server tells of changes by itself", () => {
    expect(nextPollMs({ intervalMs: 500, unchanged: 0, isTold: true }, middle)).toBe(15_000);
    expect(nextPollMs({ intervalMs: 60_000, unchanged: 0, isTold: true }, middle)).toBe(300_000);
  });

  test.each([
    ["no number", Number.NaN, 1000],
    ["zero", 0, 20],
    ["less than nothing", -5, 20],
    ["for ever", Number.POSITIVE_INFINITY, 1000],
    ["longer than anyone waits", 1e15, 3_600_000],
  ])("stays within reason when the interval is %s", (_, intervalMs, expected) => {
    expect(nextPollMs({ intervalMs, unchanged: 0 }, middle)).toBe(expected);
  });

  test("chance is really used: twenty waits are not all the same", () => {
    expect(
      new Set(Array.from({ length: 20 }, () => nextPollMs({ intervalMs: 1000, unchanged: 3 }))).size,
    ).toBeGreaterThan(1);
  });
});

describe("the next try", () => {
  test("doubles its wait, up to five seconds", () => {
    expect([0, 1, 2, 3, 10, 1000].map((tries) => nextRetryMs(tries, undefined, middle))).toEqual([
      100, 200, 400, 800, 5000, 5000,
    ]);
  });

  test("waits as long as the server asks for", () => {
    expect(nextRetryMs(0, 7000, middle)).toBe(7000);
    expect(nextRetryMs(10, 7, middle)).toBe(5000);
  });
});
