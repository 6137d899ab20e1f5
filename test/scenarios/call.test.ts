import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type CliOptions, runCli, startCli } from "../helpers/cli.ts";
import { holdTimer } from "../helpers/hold-timer.ts";
import { shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { methodNotFound, serveLines } from "../helpers/line-server.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** `meanwhile call`, `tools <target>` and `tasks … --target` in pipes, against servers in the test's process. */

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const commands = ["deferral", "questions"].map((name) => path.join(fixtures, name, "commands"));
const deferral = ["--no-bundled", "--commands", path.join(fixtures, "deferral/commands")];

/** One server for all tests of this file that need nothing of their own. */
const shared = shareAmongTests(async () => {
  const server = await openServer({ in: "http", commands });
  return { server, url: await server.url(), token: server.token(), home: temporaryFolder() };
});

/** Runs the CLI, in a home that is not the server's. */
async function type(words: readonly string[], options: CliOptions & { readonly input?: string } = {}) {
  const { home, token } = await shared();
  return await runCli(words, { ...options, env: { MEANWHILE_HOME: home, THE_TOKEN: token, ...options.env } });
}

function trace() {
  const file = path.join(temporaryFolder(), "trace");
  const read = () => (existsSync(file) ? readFileSync(file, "utf8") : "");
  const has = (line: string) =>
    waitFor(
      () => read().includes(line),
      () => `no "${line}" in "${read()}"`,
    );
  return { file, read, has, open: () => writeFileSync(`${file}.go`, "") };
}

/** A server of 2024-11-05 that knows no tasks, and is not to be trusted. */
const servePlain = () =>
  serveLines(({ method, params }) => {
    const serverInfo = { name: "pl\x1bain", version: "0.1" };
    if (method === "initialize")
      return { result: { protocolVersion: "2024-11-05", capabilities: { tools: {} }, serverInfo } };
    if (method === "tools/list") return { result: { tools: [say] } };
    if (method !== "tools/call") return methodNotFound;
    const { how } = params?.arguments ?? {};
    if (how === "die") return "close";
    return { result: { content: [{ type: "text", text: `said \x1b[31m${how}` }], isError: how === "no" } };
  });
const say = {
  name: "say",
  description: "Says\x1b[2J it. Then more.",
  inputSchema: {
    type: "object",
    properties: { how: { type: "string", description: "In which way." } },
    required: ["how"],
  },
};

describe("a tool of a server, wherever that is", () => {
  test("at a URL: data on stdout, words beside it", async () => {
    const { url } = await shared();
    const [plain, json, quiet] = await Promise.all([
      type(["call", url, "work_quick", "text=hi there"]),
      type(["call", url, "work_quick", "--args", '{"text":"from JSON"}', "--json"]),
      type(["call", url, "work_quick", "--input", "-", "--quiet"], { input: '{"text":"from a pipe"}' }),
    ]);
    expect(plain).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^text: hi there\nnumber: \d\n$/),
      stderr: expect.stringMatching(/^✓ work_quick finished in /),
    });
    expect(JSON.parse(json.stdout)).toMatchObject({ text: "from JSON" });
    expect(quiet).toMatchObject({ code: 0, stdout: expect.stringMatching(/^text: from a pipe\n/), stderr: "" });
  });

  test("on a socket", async () => {
    const { server } = await shared();
    const socket = path.join(temporaryFolder(), "s.sock");
    const listening = createServer((connection) => {
      const { stdin, stdout } = server.openPipes();
      connection.pipe(stdin);
      stdout.pipe(connection).on("error", () => {});
    });
    await new Promise<void>((resolve) => listening.listen(socket, resolve));
    onTestFinished(() => void listening.close());
    expect(await type(["call", `unix:${socket}`, "work_quick", "text=a"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^text: a\nnumber: \d+\n$/),
    });
    const relative = path.relative(process.cwd(), socket);
    expect(await type(["call", relative, "work_quik"])).toMatchObject({
      code: 2,
      stderr: `✗ There is no tool work_quik; did you mean work_quick? meanwhile tools unix:${relative} lists them.\n`,
    });
  });

  test("is listed with what is known of it, and of its server", async () => {
    const { url } = await shared();
    const [table, json, old] = await Promise.all([
      type(["tools", url]),
      type(["tools", url, "--json"]),
      type(["tools", url, "--revision", "2025-11-25"]),
    ]);
    expect(table.stderr).toMatch(/^meanwhile \S+ speaks 2026-07-28, with tasks of 2026-07-28\n$/);
    expect(table.stdout).toMatch(/^Tool +What it does\n/);
    expect(table.stdout).toMatch(/^work_sync +Sync files, with progress \[long\]$/m);
    expect(table.stdout).toMatch(/^work_reading +Change nothing, .* \[read\]$/m);
    expect(JSON.parse(json.stdout)).toMatchObject({
      server: { name: "meanwhile", revision: "2026-07-28" },
      tools: expect.arrayContaining([expect.objectContaining({ name: "work_quick" })]),
    });
    expect(old.stderr).toMatch(/speaks 2025-11-25, with tasks of 2025-11-25/);
    expect(old.stdout).toMatch(/^work_always +Run as a task, or not at all \[only as a task\]$/m);
  });
});

describe("a task", () => {
  test.for(["2026-07-28", "2025-11-25"])("has its story told, on stderr alone (%s)", async (revision) => {
    const { url } = await shared();
    const words = [
      "call",
      url,
      "work_sync",
      "files=10",
      "--async",
      "--task-ttl",
      "300000",
      "--poll-interval",
      "5000",
      "--revision",
      revision,
    ];
    const { code, stdout, stderr } = await type(words);
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: "files_processed: 10\n" });
    const lines = stderr.split("\n");
    const order = [
      /^› Asking for a task$/,
      new RegExp(`^  Endpoint: ${url}$`),
      /^ {2}TTL: 5 min$/,
      /^ {2}Poll interval: 5 s$/,
      /^✓ Task created: [0-9a-f-]{36}$/,
      /^ {2}Status: working$/,
      /^ {2}Server suggests polling every \S+ s$/,
      /^ {2}\[\d+\.\ds\] working - Processing 3 of 10 files\.\.\./,
      /^ {2}\[\d+\.\ds\] completed/,
      /^✓ Task completed$/,
      /^ {2}Total time: \d+\.\ds$/,
      /^ {2}Polls: \d+/,
      /^› Retrieving the result$/,
      /^✓ Sync completed successfully$/,
    ];
    const places = order.map((pattern) => lines.findIndex((line) => pattern.test(line)));
    expect(places, stderr).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(stderr).not.toContain("\x1b");
  });

  test("that is left alone is found again by its id: shown, waited for, listed, cancelled", async () => {
    const { url } = await shared();
    const reach = ["--target", url, "--token-env", "THE_TOKEN"];
    const run = (...words: string[]) => type(words);
    const [first, second] = [trace(), trace()];
    const detach = async (file: string) =>
      (
        await run("call", url, "work_long", `file=${file}`, "--detach", "--quiet", "--token-env", "THE_TOKEN")
      ).stdout.trim();
    const [kept, dropped] = await Promise.all([detach(first.file), detach(second.file)]);
    const [shown, early, listed, cancelled] = await Promise.all([
      run("tasks", "show", kept, "--json", ...reach),
      run("tasks", "result", kept, ...reach),
      run("tasks", "list", "--live", ...reach),
      run("tasks", "cancel", dropped.slice(0, 13), ...reach),
    ]);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      taskId: kept,
      status: "working",
      createdAt: expect.stringMatching(/^\d{4}-/),
    });
    expect(early).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "✗ It has not ended yet (working); --wait waits for it.\n",
    });
    expect(listed.stdout).toMatch(new RegExp(`^Task +Status +Age +Latest\\n(.*\\n)*${kept} +working `));
    expect(cancelled).toMatchObject({ code: 0, stderr: `✓ Cancelled ${dropped}\n` });
    await second.has("stopped");
    first.open();
    const [result, gone, again, unknown, anonymous] = await Promise.all([
      run("tasks", "watch", kept, ...reach),
      run("tasks", "result", dropped, "--wait", ...reach),
      run("tasks", "cancel", dropped, ...reach),
      run("tasks", "show", "00000000-0000-4000-8000-000000000000", ...reach),
      run("tasks", "list", "--target", url),
    ]);
    expect(result).toMatchObject({ code: 0, stdout: `passed: ${first.file}\n` });
    expect(gone).toMatchObject({ code: 130, stdout: "" });
    expect(again).toMatchObject({
      code: 1,
      stderr: "✗ It has ended already (cancelled), so there is nothing to cancel.\n",
    });
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("There is no such task") });
    expect(anonymous).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("does not list tasks") });
  });

  test("is one for equal calls while it lives, and another with --new; one key is one run", async () => {
    const { url } = await shared();
    const { file, open } = trace();
    const call = async (...words: string[]) =>
      (await type(["call", url, ...words, "--quiet", "--token-env", "THE_TOKEN"])).stdout;
    const long = ["work_long", `file=${file}`, "--detach"];
    const first = await call(...long);
    expect([await call(...long), (await call(...long, "--new")) === first]).toEqual([first, false]);
    open();
    const quick = await call("work_quick", "--idempotency-key", "k");
    expect(await call("work_quick")).not.toBe(quick);
    expect(await call("work_quick", "--idempotency-key", "k")).toBe(quick);
  });

  test("that asks something says how to answer where there is no terminal, and goes on once it is answered", async () => {
    const { url } = await shared();
    const { file } = trace();
    const { code, stdout, stderr } = await type(["call", url, "ask_name", `file=${file}`]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    const words =
      /✗ It asks «What is your name\?», and there is no terminal to answer in: it waits for meanwhile (tasks answer (\S+) name=… --target \S+)\n$/.exec(
        stderr,
      );
    const [, way = "", taskId = ""] = words ?? [];
    const [bare, wrong] = await Promise.all([
      type(["tasks", "answer", taskId, "--target", url]),
      type(["tasks", "answer", taskId, "nam=x", "--target", url]),
    ]);
    expect(bare).toMatchObject({ code: 2, stderr: "✗ It asks «What is your name?»: give name=…\n" });
    expect(wrong).toMatchObject({ code: 2, stderr: '✗ "nam=x": there is no field of that name; it asks for name.\n' });
    expect(await type(way.replace("…", "Ada").split(" "))).toMatchObject({
      code: 0,
      stderr: "✓ Answered «What is your name?»\n",
    });
    expect(await type(["tasks", "result", taskId, "--wait", "--target", url])).toMatchObject({
      code: 0,
      stdout: "greeting: Hello, Ada!\n",
    });
    expect(await type(["tasks", "answer", taskId, "--target", url])).toMatchObject({
      code: 1,
      stderr: "✗ It asks nothing right now.\n",
    });
  });
});

describe("how it ended is the exit code", () => {
  test("2: wrong words, and nothing was called", async () => {
    const { url } = await shared();
    const { file, read } = trace();
    const lines: [string[], RegExp][] = [
      [
        ["work_lnog", `file=${file}`],
        /^✗ There is no tool work_lnog; did you mean work_long\? meanwhile tools http\S+ lists them\.\n$/,
      ],
      [["work_long"], /^✗ Missing file; add file=…\n$/],
      [["work_long", `file=${file}`, "fiel=x"], /^✗ There is no argument fiel; did you mean file\?\n$/],
      [["work_sync", "files=many"], /^✗ files must be a number, not "many"\.\n$/],
    ];
    const runs = await Promise.all(lines.map(([words]) => type(["call", url, ...words])));
    for (const [at, { code, stdout, stderr }] of runs.entries()) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(lines[at]?.[1] ?? /$^/);
    }
    expect(read()).toBe("");
  });

  test("1: the tool said no, or the server could not be reached", async () => {
    const { url } = await shared();
    const [failed, absent] = await Promise.all([
      type(["call", url, "work_sync", "fail=true", "--json"]),
      type(["call", "http://127.0.0.1:1/mcp", "x"]),
    ]);
    expect(failed).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/✗ Failed to sync: Permission denied\n$/),
    });
    expect(JSON.parse(failed.stdout)).toMatchObject({
      structuredContent: { success: false },
      error: { message: "Failed to sync: Permission denied", exitCode: 1 },
    });
    expect(absent).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^✗ http:\/\/127\.0\.0\.1:1 cannot be reached[^\n]*\n$/),
    });
  });

  test("124 when its time is over, 130 when it is interrupted in a pipe: the server's work is stopped", async () => {
    const { url } = await shared();
    const [late, task, call] = [trace(), trace(), trace()];
    const env = { MEANWHILE_HOME: temporaryFolder() };
    const following = startCli(["call", url, "work_long", `file=${task.file}`], { env });
    const waiting = startCli(["call", url, "work_gated", `file=${call.file}`], { env });
    await following.says(/Task [0-9a-f-]{36}/);
    await call.has("started");
    for (const started of [following, waiting]) {
      started.signal("SIGINT");
      expect(await started.exited).toBe(130);
      expect(started.stderr()).toMatch(/✗ Cancelled\.\n$/);
    }
    const fire = holdTimer(5_000);
    const timed = startCli(["call", url, "work_long", `file=${late.file}`, "--timeout", "5"], { env });
    await late.has("started");
    fire();
    expect(await timed.exited).toBe(124);
    expect([timed.stdout(), timed.stderr()]).toEqual(["", expect.stringMatching(/✗ Timed out after 5 s\.\n$/)]);
    for (const { has } of [late, task, call]) await has("stopped");
  });
});

describe("a server is", () => {
  test("given its token from a variable, or a header; neither is ever shown", async () => {
    const server = startCli(["serve", "--http", "--port", "0", ...deferral]);
    const url = await server.says(/http:\/\/127\.0\.0\.1:\d+\/mcp/);
    const token = (await runCli(["token"], { env: { MEANWHILE_HOME: server.home } })).stdout.trim();
    const env = { THE_TOKEN: token };
    const [without, wrong, byVariable, byHeader, detached] = await Promise.all([
      type(["call", url, "work_quick"]),
      type(["call", url, "work_quick", "--header", "Authorization: Bearer another"]),
      type(["call", url, "work_quick", "--token-env", "THE_TOKEN"], { env }),
      type(["call", url, "work_quick", "--header", `Authorization: Bearer ${token}`]),
      type(["call", url, "work_sync", "--detach", "--header", `Authorization: Bearer ${token}`]),
    ]);
    expect(without).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("refuses us (HTTP status 401)"),
    });
    expect(without.stderr).toContain(
      "for a server of your own: TOKEN=$(meanwhile token) meanwhile … --token-env TOKEN\n",
    );
    expect(wrong).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("The bearer token is no API key, and not this home's"),
    });
    expect(wrong.stderr).not.toContain("--token-env");
    expect(byVariable.code, byVariable.stderr).toBe(0);
    expect(byHeader.code, byHeader.stderr).toBe(0);
    expect(detached.stderr).toContain(`--wait --target ${url} --header 'Authorization: …'\n`);
    for (const { stdout, stderr } of [without, byVariable, byHeader, detached])
      expect(stdout + stderr).not.toContain(token);
  });

  test("not asked for what it cannot do, not believed, and not obeyed", async () => {
    const server = await servePlain();
    const run = (verb: string, ...words: string[]) => type([verb, server.target, ...words]);
    expect(await run("call", "say", "how=x", "--detach")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "✗ This server has no tasks, so nothing would be left of the call; call it without --detach.\n",
    });
    expect(server.count("tools/call")).toBe(0);
    const [missing, no, died, told, listed] = await Promise.all([
      run("call", "say"),
      run("call", "say", "how=no"),
      run("call", "say", "how=die"),
      run("call", "say", "how=x", "--async"),
      run("tools"),
    ]);
    expect(missing).toMatchObject({ code: 2, stderr: "✗ Missing how (In which way); add how=…\n" });
    expect(no).toMatchObject({ code: 1, stdout: "", stderr: "✗ said  [31mno\n" });
    expect(died).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("closed the connection") });
    expect(told).toMatchObject({
      code: 0,
      stdout: "said \x1b[31mx\n",
      stderr: expect.stringContaining("! The server answered without making a task of it\n"),
    });
    expect(listed).toMatchObject({
      code: 0,
      stdout: "Tool  What it does\nsay   Says [2J it.\n",
      stderr: "pl ain 0.1 speaks 2024-11-05, without tasks\n",
    });
    for (const { stderr } of [missing, no, died, told, listed]) expect(stderr).not.toContain("\x1b");
  });
});
