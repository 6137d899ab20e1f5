import { expect, test } from "vitest";
import { PollLimit } from "../../src/mcp/poll-limit.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

test("a task that nobody has looked at for 4 s takes no room: of 10,000 looked at once, none is remembered after the next look", async () => {
  const clock = new FakeClock();
  const polls = new PollLimit(clock);
  for (let n = 0; n < 10_000; n++) await polls.admit("ada", `task ${n}`);
  expect(polls.remembered).toBe(10_000);
  clock.advance(4_000);
  await polls.admit("ada", "another");
  expect(polls.remembered).toBe(1);
});

test("who looks at one task again and again is remembered and slowed, however many others are forgotten meanwhile", async () => {
  const clock = new FakeClock();
  const polls = new PollLimit(clock);
  for (let n = 0; n < 50; n++) await polls.admit("ada", "busy");
  let isIn = false;
  const slowed = polls.admit("ada", "busy").then(() => (isIn = true));
  for (let n = 0; n < 1_000; n++) await polls.admit("bob", `task ${n}`);
  expect(isIn).toBe(false);
  clock.advance(50);
  await slowed;
  clock.advance(2_450);
  await polls.admit("bob", "last");
  // Its bucket is not full again, so it is still known.
  expect(polls.remembered).toBeGreaterThan(1);
  clock.advance(4_000);
  await polls.admit("bob", "last");
  expect(polls.remembered).toBe(1);
});
