import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { endOrphans } from "../../../src/gateway/orphans.ts";
import { system } from "../../../src/system/system.ts";
import { talk } from "../../gateway/talk.ts";

const waiting = { timeout: 50_000 };
const stubborn = {
  kind: "command",
  command: "/bin/sh",
  args: ["-c", "trap '' TERM HUP; echo $$ >&2; while :; do sleep 1; done"],
  cwd: "/",
  env: { PATH: process.env.PATH ?? "" },
} as const;

function makeFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "orphans-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A process that keeps such an upstream, and tells what it prints. */
function startKeeper({ folder, script, thenDo = "" }: { folder: string; script: string; thenDo?: string }) {
  const code = `
    const { openUpstreamLink } = await import(${JSON.stringify(path.resolve("src/gateway/open-link.ts"))});
    await openUpstreamLink(${JSON.stringify({ ...stubborn, args: ["-c", script] })},
      { onMessage() {}, onClose() {}, onStderr: (text) => process.stdout.write(text, () => { ${thenDo} }) },
      { recordFolder: ${JSON.stringify(folder)} });`;
  return spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
}

test("what a keeper that was killed has left running is ended, and nothing of one that lives", async () => {
  const folder = makeFolder();
  const ours = await talk(stubborn, { recordFolder: folder });
  await vi.waitFor(() => expect(ours.stderr).toHaveLength(1), waiting);
  const ourPid = Number(ours.stderr[0]);

  const keeper = startKeeper({ folder, script: stubborn.args[1] });
  const gone = new Promise((resolve) => keeper.on("exit", resolve));
  const pid = Number(await new Promise((resolve) => keeper.stdout.once("data", resolve)));
  expect(endOrphans(folder)).toBe(0);
  keeper.kill("SIGKILL");
  await gone;
  expect(system.isAlive(pid)).toBe(true);

  expect(endOrphans(folder)).toBeGreaterThan(0);
  await vi.waitFor(() => expect(system.isAlive(pid)).toBe(false), waiting);
  expect(system.isAlive(ourPid)).toBe(true);
  expect(readdirSync(folder)).toHaveLength(1);
  await ours.link.close();
  expect(readdirSync(folder)).toEqual([]);
  expect(system.isAlive(ourPid)).toBe(false);
});

test("a keeper that ends in good order leaves nothing, in whatever group it is", async () => {
  const folder = makeFolder();
  const script =
    "trap '' TERM; setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $$ $! >&2; while :; do sleep 1; done";
  const keeper = startKeeper({ folder, script, thenDo: "process.exit()" });
  const pids = String(await new Promise((resolve) => keeper.stdout.once("data", resolve)))
    .trim()
    .split(" ")
    .map(Number);
  expect(pids).toHaveLength(2);
  for (const pid of pids) await vi.waitFor(() => expect(system.isAlive(pid)).toBe(false), waiting);
  await vi.waitFor(() => expect(readdirSync(folder)).toEqual([]), waiting);
});

test("a home without upstreams costs nothing", () => {
  expect(endOrphans("/no/such/folder")).toBe(0);
});
