import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { createLinux } from "../../../src/system/linux.ts";
import { waitFor } from "../../helpers/meanwhile.ts";

/** What the system itself says, of itself and of processes that are started here. */
const linux = createLinux();

function start(script: string, env: Record<string, string> = {}) {
  const child = spawn("sh", ["-c", script], {
    ...linux.ownGroup,
    stdio: "ignore",
    env: { PATH: process.env.PATH, ...env },
  });
  onTestFinished(() => linux.killGroup(child.pid ?? 0));
  return { child, pid: child.pid ?? 0 };
}

test.runIf(process.platform === "linux")(
  "a process is there with its parent, group, start, mark and memory, and gone when it was killed",
  async () => {
    const { child, pid } = start("sleep 60 & wait", { MARK: "one two" });
    await waitFor(() => linux.processes().some(({ group }) => group === pid));
    const own = linux.processes().find((each) => each.pid === process.pid);
    const found = linux.processes().find((each) => each.pid === pid);
    expect(found).toMatchObject({ parent: process.pid, group: pid });
    expect(found?.startedAt).toBeGreaterThanOrEqual(own?.startedAt ?? 0);
    expect(linux.beganAt(pid, String(found?.startedAt))).toBe(true);
    expect(linux.beganAt(pid, "1")).toBe(false);
    expect(linux.markedOf([pid, process.pid], "MARK=one two")).toEqual([pid]);
    expect(linux.markedOf([pid], "MARK=one")).toEqual([]);
    expect(await linux.memoryOf(pid)).toBeGreaterThan(100 * 1024);
    expect(await linux.memoryOf(process.pid)).toBeGreaterThan(0.5 * process.memoryUsage.rss());
    expect(linux.isAlive(pid)).toBe(true);
    const ended = new Promise((resolve) => child.once("exit", resolve));
    linux.killGroup(pid);
    await ended;
    expect(linux.isAlive(pid)).toBe(false);
    expect(linux.beganAt(pid, "1")).toBeUndefined();
    expect(await linux.memoryOf(pid)).toBeUndefined();
    await waitFor(() => !linux.processes().some(({ group }) => group === pid));
  },
);

test.runIf(process.platform === "linux")(
  "a process that nobody has asked about when it ended is not alive",
  async () => {
    // Its parent becomes another program, which never asks.
    const { pid } = start("sleep 0.1 & exec sleep 60");
    const zombie = await waitFor(() =>
      spawnSync("ps", ["-o", "pid=,stat=", "--ppid", String(pid)], { encoding: "utf8" })
        .stdout.split("\n")
        .find((line) => line.includes("Z")),
    );
    expect(linux.isAlive(Number.parseInt(zombie, 10))).toBe(false);
  },
);

test.runIf(process.platform === "linux")("one machine has one boot, and a process one namespace and one start", () => {
  const other = createLinux();
  for (const fact of ["bootId", "pidNamespace", "ownStart"] as const) {
    expect(linux[fact](), fact).toMatch(/\w/);
    expect(other[fact](), fact).toBe(linux[fact]());
  }
});

test.runIf(process.platform === "linux")("descriptors are left until nearly all are taken", () => {
  const script = `
    const { createLinux } = await import(${JSON.stringify(new URL("../../../src/system/linux.ts", import.meta.url).href)});
    const { openSync } = await import("node:fs");
    const linux = createLinux();
    const before = linux.hasDescriptorsLeft();
    for (let count = 0; count < 90; count++) openSync("/dev/null", "r");
    console.log(before, linux.hasDescriptorsLeft());`;
  const { stdout } = spawnSync(
    "sh",
    ["-c", 'ulimit -n 120; exec "$0" "$@"', process.execPath, "--input-type=module", "-e", script],
    { encoding: "utf8" },
  );
  expect(stdout).toBe("true false\n");
  const fd = openSync("/dev/null", "r");
  expect(linux.hasDescriptorsLeft()).toBe(true);
  closeSync(fd);
});
