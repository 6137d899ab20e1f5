import { spawn } from "node:child_process";
import { expect, onTestFinished, test } from "vitest";
import { endStrays } from "../../../src/system/strays.ts";
import { system } from "../../../src/system/system.ts";
import { isRunning } from "../../helpers/daemon.ts";
import { waitFor } from "../../helpers/meanwhile.ts";

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
    for (const pid of [leader.pid ?? 0, ...started]) system.killGroup(pid);
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
  const other = await startLeader(`${own} sleep 60`, 1, { MEANWHILE_RUN: "one-more" });
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
