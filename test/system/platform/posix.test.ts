import { spawn } from "node:child_process";
import { expect, test } from "vitest";
import { posix } from "../../../src/system/posix.ts";

test("killGroup: kills a process and what it has started; a process that has ended is no error", async () => {
  const child = spawn("sh", ["-c", "sleep 60 & echo $!; wait"], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const grandchild = await new Promise<number>((resolve) => child.stdout.once("data", (text) => resolve(Number(text))));
  const ended = new Promise((resolve) => child.once("close", resolve));
  posix.killGroup(child.pid ?? 0);
  // The pipe closes only when the grandchild, which holds it too, has ended.
  await ended;
  expect(grandchild).toBeGreaterThan(0);
  expect(() => posix.killGroup(child.pid ?? 0)).not.toThrow();
});
