import { spawn, spawnSync } from "node:child_process";
import { expect, onTestFinished, test } from "vitest";
import { childEnvironment, createWorkerName, endStrays, isKnownDead, killGroup } from "../../src/system/machine.ts";
import { isRunning } from "../helpers/daemon.ts";
import { waitFor } from "../helpers/meanwhile.ts";

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

test("a process is killed together with all it has started; one that is gone is no error", async () => {
  const child = spawn("sh", ["-c", "sleep 60 & echo $!; wait"], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const grandchild = await new Promise<number>((resolve) => child.stdout.once("data", (text) => resolve(Number(text))));
  const ended = new Promise((resolve) => child.once("close", resolve));
  killGroup(child.pid ?? 0);
  // The pipe closes only when the grandchild, which holds it too, has ended.
  await ended;
  expect(grandchild).toBeGreaterThan(0);
  expect(() => killGroup(child.pid ?? 0)).not.toThrow();
});

/** A process that leads a group and says which others it has started. */
async function startLeader(script: string, count: number, env: Record<string, string>) {
  const leader = spawn("sh", ["-c", script], {
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: process.env.PATH, ...env },
  });
  const started = await new Promise<number[]>((resolve) => {
    let text = "";
    leader.stdout.on("data", (part) => {
      text += String(part);
      const pids = text.split("\n").slice(0, -1).map(Number);
      if (pids.length === count) resolve(pids);
    });
  });
  onTestFinished(() => {
    for (const pid of [leader.pid ?? 0, ...started]) killGroup(pid);
  });
  return { pid: leader.pid ?? 0, started };
}

const gone = async (pids: readonly number[]) =>
  await waitFor(
    () => pids.every((each) => !isRunning(each)),
    () => `still there: ${pids.filter(isRunning).join(", ")}`,
  );

test("what has left its parent's group is found by its parent, or by its mark, and ended; nobody else is", async () => {
  const own = "setsid sh -c 'echo $$; exec sleep 60' &";
  const marked = await startLeader(
    `${own} env -i ${own} (setsid sh -c 'echo $$; sleep 61; sleep 60' &) ; sleep 60`,
    3,
    { MEANWHILE_RUN: "one" },
  );
  const other = await startLeader(`${own} sleep 60`, 1, { MEANWHILE_RUN: "one more" });
  const ended = endStrays(marked.pid, "MEANWHILE_RUN=one");
  expect(ended).toEqual(expect.arrayContaining(marked.started));
  await gone(ended);
  expect([marked.pid, other.pid, ...other.started].filter(isRunning)).toHaveLength(3);
  expect(endStrays(marked.pid, "MEANWHILE_RUN=one").filter((each) => !ended.includes(each))).toEqual([]);
});

test("what a process has left behind is found when it has ended itself", async () => {
  const { pid: leader, started } = await startLeader("setsid sh -c 'echo $$; exec sleep 60' &", 1, {
    MEANWHILE_RUN: "two",
  });
  await gone([leader]);
  expect(endStrays(leader, "MEANWHILE_RUN=two")).toEqual(started);
  await gone(started);
});

test("a child gets the environment that it needs, and nothing that is between our own processes", () => {
  Object.assign(process.env, {
    MEANWHILE_DAEMON_KEY: "k",
    MEANWHILE_SECRET: "s",
    MEANWHILE_HOME: "/h",
    AUTHORS_API_KEY: "a",
  });
  onTestFinished(() => {
    for (const name of ["MEANWHILE_DAEMON_KEY", "MEANWHILE_SECRET", "MEANWHILE_HOME", "AUTHORS_API_KEY"])
      delete process.env[name];
  });
  const env = childEnvironment();
  expect(Object.keys(env).filter((name) => name.startsWith("MEANWHILE_"))).toEqual(["MEANWHILE_HOME"]);
  expect(env).toMatchObject({ AUTHORS_API_KEY: "a", PATH: process.env.PATH });
});
