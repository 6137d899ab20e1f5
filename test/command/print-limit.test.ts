import { expect, test } from "vitest";
import { PrintLimit } from "../../src/command/print-limit.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";

function open() {
  const clock = new FakeClock();
  const told: string[] = [];
  let who = "one";
  const limit = new PrintLimit({ clock, who: () => who, onLeftOut: (sentence) => told.push(sentence) });
  return { clock, told, limit, as: (name: string) => (who = name) };
}

test("of a second's prints 500 lines and 64 KiB pass for each command, and one line says how many were left out", () => {
  const { clock, told, limit, as } = open();
  const passed = Array.from({ length: 1_000 }, () => limit.admit("line\n")).filter(Boolean);
  expect(passed).toHaveLength(500);
  as("other");
  expect(limit.admit("line\n")).toBe(true);
  expect(limit.admit("x".repeat(64 * 1024))).toBe(false);
  expect(told).toEqual([]);
  clock.advance(1_000);
  expect(told).toEqual([
    "one printed 500 lines more, which were left out: 500 lines and 64 KiB are kept of a second",
    "other printed 1 line more, which were left out: 500 lines and 64 KiB are kept of a second",
  ]);
  as("one");
  expect(limit.admit(Buffer.from("line\n"))).toBe(true);
  clock.advance(10_000);
  expect(told).toHaveLength(2);
  expect(clock.pendingTimers).toBe(0);
});
