import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { executable, runProcess, startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";

/** Endings of the real process: its standard output fails, or nothing is left to wait for. */

const command = (run: string) => `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "One of a folder", effects: "read", run: ${run} });`;
const project = () =>
  writeFiles(temporaryFolder(), {
    "commands/good/echo.ts": command("() => ({ text: 'hello' })"),
    "commands/bad/hangs.ts": command("() => new Promise(() => {})"),
  });

test("serve --in-process: a client that closes only the reading end ends the connection by EPIPE, not with a crash", async () => {
  const { child, exited, stdout, stderr } = startMeanwhile(["serve", "--in-process", "--no-bundled"], {
    cwd: project(),
  });
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "wire", version: "1" } };
  send({ id: 0, method: "initialize", params });
  await waitFor(() => stdout().includes('"serverInfo"'), stderr);
  child.stdout.destroy();
  send({ id: 1, method: "tools/list" });
  send({ id: 2, method: "tools/list" });
  expect(await exited).toBe(0);
  expect(stderr()).not.toMatch(/at .*\.js/);
});

test("a command whose result cannot be written: an error with the reason, exit 70", () => {
  const { status, stderr } = spawnSync("sh", ["-c", `"${process.execPath}" "${executable}" good echo > /dev/full`], {
    cwd: project(),
    encoding: "utf8",
    env: { ...process.env, MEANWHILE_HOME: temporaryFolder() },
  });
  expect({ status, stderr }).toMatchObject({
    status: 70,
    stderr: expect.stringContaining("✗ The result could not be written: "),
  });
});

test("a command that waits for what never comes: an error, exit 1, never a silent success", async () => {
  expect(await runProcess(["bad", "hangs"], { cwd: project() })).toMatchObject({
    code: 1,
    stdout: "",
    stderr: "✗ It ended without a result: it waits for something that will never come.\n",
  });
});
