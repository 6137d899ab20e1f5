import { expect, test } from "vitest";
import { showWaiting } from "../../../src/cli/screens/waiting-line.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { openTerminalHere } from "../../helpers/terminal.ts";

async function waitFor(ms: number, isLive: boolean) {
  const { terminal, said } = openTerminalHere({ isLive });
  const clock = new FakeClock();
  const { promise, resolve } = Promise.withResolvers<string>();
  const waiting = showWaiting(promise, { who: ["files", "git"], terminal, clock });
  clock.advance(ms);
  resolve("here");
  expect([await waiting, clock.pendingTimers]).toEqual(["here", 0]);
  return said();
}

test("whoever waits for a server that takes long to start is told for which, and nothing of it stays", async () => {
  expect(await waitFor(2_000, true)).toBe("Waiting for files, git to start …\r\x1b[2K");
  expect(await waitFor(1_999, true)).toBe("");
  expect(await waitFor(60_000, false)).toBe("");
});
