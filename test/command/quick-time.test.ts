import { afterAll, expect, test } from "vitest";
import { keepBuiltins, restoreBuiltins } from "../../src/command/builtins.ts";
import { passTimeQuickly } from "../helpers/quick-time.ts";

const { setTimeout: real } = globalThis;
// As when a server of an earlier test file has run commands.
keepBuiltins();
// Cleanups run in reverse order, so this is after quick time has ended.
afterAll(() => {
  restoreBuiltins(true);
  expect(globalThis.setTimeout).toBe(real);
});
passTimeQuickly();

test("a command that ends does not take the timers of quick time for a change of its own", () => {
  restoreBuiltins(true);
  expect(globalThis.setTimeout).not.toBe(real);
});
