import { spawn, spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { createWorkerName, isKnownDead, killGroup } from "../src/machine.ts";

const [host, boot, pid, startedAt, namespace] = createWorkerName().split("|");
const nameOf = (changes: Partial<Record<"host" | "boot" | "pid" | "startedAt" | "namespace", unknown>>) => {
  const name = { host, boot, pid, startedAt, namespace, ...changes };
  return [name.host, name.boot, name.pid, name.startedAt, name.namespace, "x"].join("|");
};
const { pid: gone } = spawnSync("true");

test.each([
  ["this process", nameOf({}), false],
  ["a process that has ended", nameOf({ pid: gone }), true],
  ["a process of an earlier boot", nameOf({ boot: "earlier" }), true],
  ["a process whose id was given out again", nameOf({ startedAt: "1" }), true],
  ["a process of another machine", nameOf({ host: "elsewhere", pid: gone }), false],
  ["a process of another container, whose ids mean nothing here", nameOf({ namespace: "pid:[1]", pid: gone }), false],
  ["somebody whose name is none of ours", "w1", false],
])("is known to be dead: %s", (_who, worker, isDead) => {
  expect(isKnownDead(worker)).toBe(isDead);
});

test("a process is killed together with all it has started; one that is gone is no error", async () => {
  const child = spawn("sh", ["-c", "sleep 60 & echo $!; wait"], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  const grandchild = await new Promise<number>((resolve) => child.stdout.once("data", (text) => resolve(Number(text))));
  const ended = new Promise((resolve) => child.once("close", resolve));
  killGroup(child.pid ?? 0);
  // The pipe closes only when the grandchild, which holds it too, has ended.
  await ended;
  expect(grandchild).toBeGreaterThan(0);
  expect(() => killGroup(child.pid ?? 0)).not.toThrow();
});
