import { expect, test } from "vitest";
import { Pace } from "../../../src/transport/http/pace.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("a few messages begin in a turn of the event loop, in the order they came; others begin theirs meanwhile", async () => {
  let isIdle = false;
  const stranger = new Pace(8, () => (isIdle = true));
  const begun: number[] = [];
  for (let n = 0; n < 30; n++) {
    const wait = stranger.enter(100);
    if (wait === undefined) begun.push(n);
    else void wait.then(() => begun.push(n));
  }
  expect(begun).toHaveLength(8);
  expect(new Pace(8, () => undefined).enter(100)).toBeUndefined();
  for (const most of [16, 24, 30]) {
    await turn();
    expect(begun.length).toBeGreaterThan(most - 8);
    expect(begun.length).toBeLessThanOrEqual(most);
  }
  expect(begun).toEqual(Array.from({ length: 30 }, (_, n) => n));
  await turn();
  await turn();
  expect(isIdle).toBe(true);
});

test("a large message counts for many", async () => {
  const pace = new Pace(8, () => undefined);
  expect(pace.enter(4 * 1024 * 1024)).toBeUndefined();
  let isBegun = false;
  void pace.enter(1)?.then(() => (isBegun = true));
  await Promise.resolve();
  expect(isBegun).toBe(false);
  await turn();
  await turn();
  expect(isBegun).toBe(true);
});
