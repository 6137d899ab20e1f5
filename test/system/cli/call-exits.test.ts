import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { runCli } from "../../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";

/** `meanwhile call` with a child process that does not end, or does not start. */

/**
 * A server of 2025-06-18 that does not answer one method, and stays when its input is closed and at SIGTERM.
 */
const source = `import { appendFileSync } from "node:fs";
const [, , file, silent] = process.argv;
const note = (words) => appendFileSync(file, words + "\\n");
const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => note(signal));
setInterval(() => {}, 1000);
note("pid " + process.pid);
let rest = "";
process.stdin.setEncoding("utf8").on("data", (chunk) => {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const line of lines) {
    const { id, method } = JSON.parse(line);
    note(method);
    if (silent === method || silent === "all") continue;
    if (method === "initialize") say(id, { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "stubborn", version: "1" } });
    else if (method === "tools/list") say(id, { tools: [{ name: "wait", inputSchema: { type: "object" } }] });
    else if (method === "server/discover") process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } }) + "\\n");
    else if (method === "tools/call" && silent === "none") say(id, JSON.parse(process.env.RESULT));
  }
});
`;

function startable(silent: string) {
  const folder = writeFiles(temporaryFolder(), { "server.mjs": source });
  const file = path.join(folder, "notes");
  const notes = () => (existsSync(file) ? readFileSync(file, "utf8") : "");
  const pid = () => Number(/^pid (\d+)$/m.exec(notes())?.[1]);
  onTestFinished(() => {
    if (isRunning(pid())) process.kill(pid(), "SIGKILL");
  });
  const has = (line: string) =>
    waitFor(
      () => notes().includes(`${line}\n`),
      () => `no ${line} in ${notes()}`,
    );
  const isGone = () =>
    waitFor(
      () => !isRunning(pid()),
      () => `${pid()} is still there`,
    );
  return { words: [process.execPath, path.join(folder, "server.mjs"), file, silent], has, isGone };
}

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("a server that does not end by itself is ended", () => {
  test("when the call is left with SIGHUP and then SIGINT", async () => {
    const server = startable("tools/call");
    const { child, exited } = startMeanwhile(["call", "wait", "--", ...server.words]);
    await server.has("tools/call");
    child.kill("SIGHUP");
    await server.has("notifications/cancelled");
    child.kill("SIGINT");
    expect(await exited).toBe(130);
    await server.isGone();
  });

  test("when connecting is left by two signals at once", async () => {
    const server = startable("all");
    const { child, exited } = startMeanwhile(["call", "wait", "--", ...server.words]);
    await server.has("server/discover");
    child.kill("SIGINT");
    child.kill("SIGTERM");
    expect(await exited).toBe(130);
    await server.isGone();
  });

  test("when a signal comes while its end is waited for", async () => {
    const server = startable("none");
    const { child, exited, stdout } = startMeanwhile(["call", "wait", "--", ...server.words], {
      env: { RESULT: '{"content":[{"type":"text","text":"done"}]}' },
    });
    await waitFor(() => stdout() === "done\n", stdout);
    child.kill("SIGINT");
    await exited;
    await server.isGone();
  });
});

test("what a server says that fails at its start is shown once, without its escape sequences", async () => {
  const script = 'console.error("Reading settings\\nError: \\x1b[31mSETTING_X is not set"); process.exit(3)';
  const { code, stderr } = await runCli(["call", "wait", "--", process.execPath, "-e", script]);
  expect(code).toBe(1);
  expect(stderr).toBe(
    `✗ The server ${process.execPath} ended with exit code 3; it printed «Error: SETTING_X is not set».\n  It also printed:\n  | Reading settings\n`,
  );
});

test("of a server that Node ends because of an error, the error is shown and not the last line", async () => {
  const script = 'throw new Error("DB_URL is not set")';
  const { code, stderr } = await runCli(["call", "wait", "--", process.execPath, "-e", script]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^✗ The server .* ended with exit code 1; it printed «Error: DB_URL is not set»\.\n/),
  });
  expect(stderr.match(/^.*Error: DB_URL is not set.*$/gm)).toHaveLength(1);
});
