import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { createWorkerName, isKnownDead } from "../../../src/system/worker-name.ts";

const [host, boot, pid, startedAt, namespace] = createWorkerName().split("|");
const nameOf = (changes: Partial<Record<"host" | "boot" | "pid" | "startedAt" | "namespace", unknown>>) => {
  const name = { host, boot, pid, startedAt, namespace, ...changes };
  return [name.host, name.boot, name.pid, name.startedAt, name.namespace, "x"].join("|");
};
const { pid: endedPid } = spawnSync("true");

test.each([
  ["this process", nameOf({}), false],
  ["a process that has ended", nameOf({ pid: endedPid }), true],
  ["a process of an earlier boot", nameOf({ boot: "earlier" }), true],
  ["a process whose id was given out again", nameOf({ startedAt: "1" }), true],
  ["a process of another machine", nameOf({ host: "elsewhere", pid: endedPid }), false],
  [
    "a process of another container, whose ids mean nothing here",
    nameOf({ namespace: "pid:[1]", pid: endedPid }),
    false,
  ],
  ["somebody whose name is none of ours", "w1", false],
])("is known to be dead: %s", (_who, worker, isDead) => {
  expect(isKnownDead(worker)).toBe(isDead);
});
