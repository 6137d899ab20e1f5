import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { runCli, startCli, startHttpHere, startScreen } from "../../helpers/cli.ts";
import { dataOf, ownCommands } from "../../helpers/daemon.ts";
import { DaemonHomeHere } from "../../helpers/daemon-here.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";

test("serve over stdio is a proxy on the streams of its run, and exits with 0 on a signal", async () => {
  const home = new DaemonHomeHere();
  const run = home.startCli([...ownCommands, "serve"]);
  const client = run.client({ revision: "2025-06-18" });
  await client.begin();
  expect(dataOf(await client.call("say_back", { text: "hello" }))).toMatchObject({ text: "hello" });
  expect(home.daemons).toHaveLength(1);
  run.signal("SIGTERM");
  expect(await run.exited).toBe(0);
});

describe("serve on a terminal", () => {
  test("says that it waits for a client, and how to try it", async () => {
    const { sees, press, exited, data } = startScreen(["serve", "--in-process"]);
    await sees(/Waiting for an MCP client on standard input\. Ctrl-C stops the server\.\n/);
    await sees(/^ {4}meanwhile tools \.\n {4}meanwhile call \. <tool> key=value$/m);
    expect(data()).toBe("");
    press("\x03");
    expect(await exited).toBe(0);
  });

  test("through a daemon says the same; what is wrapped is tried by its own words", async () => {
    const home = new DaemonHomeHere();
    const screen = { columns: 80, rows: 24 };
    const run = startCli(["serve"], { ...home.place(), screen });
    await run.says(/Waiting for an MCP client[\s\S]* {4}meanwhile tools \.\n/);
    const wrapping = startCli(["wrap", "--", "node", "server.js"], { ...home.place(), screen });
    await wrapping.says(/Waiting for an MCP client[\s\S]*: meanwhile tools 'meanwhile wrap …'\n/);
    for (const { signal, exited } of [run, wrapping]) {
      signal("SIGTERM");
      await exited;
    }
  });

  test("prints nothing where a host has started it", async () => {
    const run = startCli(["serve", "--in-process"]);
    run.stdin.end();
    expect(await run.exited).toBe(0);
    expect(run.stderr()).not.toContain("Waiting");
  });
});

/** One POST to /mcp over a socket file. */
function post(
  socketPath: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ status: number; text: string }> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  return new Promise((resolve, reject) => {
    const sent = request({
      ...{ socketPath, path: "/mcp", method: "POST" },
      headers: {
        ...{ "content-type": "application/json", accept: "application/json, text/event-stream" },
        ...{ "content-length": Buffer.byteLength(body), connection: "close" },
        ...headers,
      },
    });
    sent.on("error", reject).on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.end(body);
  });
}

describe("serve --http --socket", () => {
  test("answers on a socket file that only its owner can use, and asks for the token there too", async () => {
    const cwd = writeFiles(temporaryFolder(), {
      "commands/a/b.ts": `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({}) });\n`,
    });
    const run = startCli(["--no-bundled", "serve", "--http", "--socket", "s.sock"], { cwd });
    await run.says(/Ctrl-C stops it\./);
    const file = path.join(cwd, "s.sock");
    expect(run.stderr()).toContain(`on the socket ${file}\n`);
    expect(run.stderr()).toContain(`curl -sS --unix-socket ${file} http://localhost/mcp`);
    expect(run.stderr()).not.toContain("mcpServers");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { code, stdout } = await runCli(["token"], { env: { MEANWHILE_HOME: run.home } });
    expect(code).toBe(0);
    expect(await post(file, {})).toMatchObject({ status: 401 });
    const answer = await post(file, { authorization: `Bearer ${stdout.trim()}` });
    expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('"tools"') });
    const other = await runCli(["serve", "--http", "--socket", file], { cwd, env: { MEANWHILE_HOME: run.home } });
    expect(other).toMatchObject({
      code: 70,
      stderr: `✗ ${file} is in use by Meanwhile (process ${process.pid}), which serves ${cwd} at unix:${file}; stop it, or choose another one with --socket.\n`,
    });
    // A target that is a socket takes one message a line.
    expect(await runCli(["tools", `unix:${file}`], { cwd, env: { MEANWHILE_HOME: run.home } })).toMatchObject({
      code: 1,
      stderr: `✗ The server on ${file} speaks HTTP, and a socket target takes one message a line. For HTTP on a socket use curl --unix-socket.\n`,
    });
    run.signal("SIGTERM");
    expect(await run.exited).toBe(0);
    expect(existsSync(file)).toBe(false);
  });

  test("of two servers that start at one path at once one serves, the other exits with 70 and one sentence", async () => {
    const file = path.join(temporaryFolder(), "s.sock");
    const words = ["--no-bundled", "serve", "--http", "--socket", file];
    const runs = [startCli(words), startCli(words)];
    const code = await Promise.race(runs.map(({ exited }) => exited));
    expect(code).toBe(70);
    const [refused, serving] = runs[0]?.stderr().includes("✗") ? runs : runs.toReversed();
    expect(refused?.stderr()).toBe(`✗ ${file} is in use; choose another path with --socket.\n`);
    await serving?.says(/Ctrl-C stops it\./);
    expect(await post(file, {})).toMatchObject({ status: 401 });
    serving?.signal("SIGTERM");
    expect(await serving?.exited).toBe(0);
  });

  test("a path where no socket of this user alone can be is refused with one sentence", async () => {
    const folder = temporaryFolder();
    writeFileSync(path.join(folder, "file"), "mine");
    const refusals = [
      [path.join(folder, "file"), "exists and is not a socket; choose another path"],
      [path.join(folder, "none", "s"), `cannot be made: there is no folder ${folder}/none; create it first`],
      [path.join(folder, "x".repeat(100)), "is too long: the system takes up to 100 bytes; choose a shorter path"],
    ];
    for (const [file = "", why] of refusals)
      expect(await runCli(["serve", "--http", "--socket", file])).toMatchObject({
        ...{ code: 2, stdout: "" },
        stderr: `✗ --socket ${file} ${why}.\n`,
      });
  });

  test.each([
    [["serve", "--socket", "s.sock"], "--socket is for --http."],
    [["serve", "--public-url", "https://example.com/mcp"], "--public-url is for --http."],
    [
      ["serve", "--http", "--public-url", "example.com/mcp"],
      "--public-url must be the http or https URL that clients know, without a query, e.g. https://example.com/mcp.",
    ],
    [["serve", "--http", "--socket", ""], "--socket is empty; give the path of the socket file."],
    [
      ["serve", "--http", "--socket", "s", "--port", "0"],
      "--socket and --port exclude each other; a socket has neither host nor port.",
    ],
    [
      ["serve", "--http", "--socket", "s", "--host", "::1"],
      "--socket and --host exclude each other; a socket has neither host nor port.",
    ],
  ])("%j is refused with one sentence", async (words, sentence) => {
    expect(await runCli(words)).toMatchObject({ code: 2, stdout: "", stderr: `✗ ${sentence}\n` });
  });
});

test("docs/commands.md says that a port or socket in use ends with 70, and a path that cannot be used with 2", () => {
  const page = readFileSync(path.resolve(import.meta.dirname, "../../../docs/commands.md"), "utf8");
  const { usage = "", environment = "" } =
    /Exit codes: .*? 2 (?<usage>.*?); 70 (?<environment>.*?); 124/.exec(page)?.groups ?? {};
  expect(environment).toContain("the port or socket of `serve --http` is in use");
  expect(usage).toContain("a path or port that cannot be used");
});

describe("a port in use", () => {
  test("by a server of this home: the process, its folder and its address are named", async () => {
    const cwd = temporaryFolder();
    const first = await startHttpHere(["--no-bundled"], { cwd });
    const { port } = new URL(first.url);
    const words = ["serve", "--http", "--port", port];
    const taken = `✗ Port ${port} is in use`;
    expect(await runCli(words, { env: { MEANWHILE_HOME: first.home } })).toMatchObject({
      code: 70,
      stderr: `${taken} by Meanwhile (process ${process.pid}), which serves ${cwd} at ${first.url}; stop it, or choose another one with --port.\n`,
    });
    // Of another home, or of another program, nothing is known.
    expect(await runCli(words)).toMatchObject({ code: 70, stderr: `${taken}; choose another one with --port.\n` });
  });
});
