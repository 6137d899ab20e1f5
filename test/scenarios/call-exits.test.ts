import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";

/** `meanwhile call` with servers that do not answer, do not end, or do not start. */

/**
 * A server of 2025-06-18 that does not answer one method. With `stays` it stays whatever it is told: its input closed,
 * SIGTERM.
 */
const source = `import { appendFileSync } from "node:fs";
const [, , file, silent, stays] = process.argv;
const note = (words) => appendFileSync(file, words + "\\n");
const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
if (stays) for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => note(signal));
if (stays) setInterval(() => {}, 1000);
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

function startable(silent: string, ...stays: "stays"[]) {
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
  return { words: [process.execPath, path.join(folder, "server.mjs"), file, silent, ...stays], has, isGone };
}

function isRunning(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("a server that does not end by itself is ended", () => {
  test.each([
    ["SIGINT", "SIGINT"],
    ["SIGTERM", "SIGTERM"],
    ["SIGHUP", "SIGINT"],
  ] as const)("when the call is left with %s and then %s", async (first, second) => {
    const server = startable("tools/call", "stays");
    const { child, exited } = startMeanwhile(["call", "wait", "--", ...server.words]);
    await server.has("tools/call");
    child.kill(first);
    await server.has("notifications/cancelled");
    child.kill(second);
    expect(await exited).toBe(130);
    await server.isGone();
  });

  test("when connecting is left by two signals at once", async () => {
    const server = startable("all", "stays");
    const { child, exited } = startMeanwhile(["call", "wait", "--", ...server.words]);
    await server.has("server/discover");
    child.kill("SIGINT");
    child.kill("SIGTERM");
    expect(await exited).toBe(130);
    await server.isGone();
  });

  test("when a signal comes while its end is waited for", async () => {
    const server = startable("none", "stays");
    const { child, exited, stdout } = startMeanwhile(["call", "wait", "--", ...server.words], {
      env: { RESULT: '{"content":[{"type":"text","text":"done"}]}' },
    });
    await waitFor(() => stdout() === "done\n", stdout);
    child.kill("SIGINT");
    await exited;
    await server.isGone();
  });
});

test("--timeout covers connecting, listing the tools, and the call", async () => {
  const silences = [
    ["all", "server/discover"],
    ["tools/list", "tools/list"],
    ["tools/call", "tools/call"],
  ] as const;
  const outcomes = silences.map(async ([silent, method]) => {
    const server = startable(silent);
    const { code, stderr } = await runMeanwhile(["call", "wait", "--timeout", "4", "--", ...server.words]);
    await server.has(method);
    await server.isGone();
    return { code, stderr };
  });
  for (const outcome of await Promise.all(outcomes))
    expect(outcome).toEqual({ code: 124, stderr: "✗ Timed out after 4 s.\n" });
});

test("a result that is none is no success", async () => {
  const run = (result: string) =>
    runMeanwhile(["call", "wait", "--", ...startable("none").words], { env: { RESULT: result } });
  for (const ended of await Promise.all(['"str"', "null", "[]"].map(run)))
    expect(ended).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "✗ Asked for tools/call, the server answered with something that is no result.\n",
    });
});

test("what a server says that fails at its start is shown once", async () => {
  const script = 'console.error("Reading settings\\nError: SETTING_X is not set"); process.exit(3)';
  const { code, stderr } = await runMeanwhile(["call", "wait", "--", process.execPath, "-e", script]);
  expect(code).toBe(1);
  expect(stderr).toBe(
    `✗ The server ${process.execPath} ended with exit code 3; its last words: «Error: SETTING_X is not set».\n  It printed before:\n  | Reading settings\n`,
  );
});
