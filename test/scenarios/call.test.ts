import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { quoteWord } from "../../src/cli/remote/server-target.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import {
  codeCache,
  executable,
  quickStart,
  runMeanwhile,
  startGuardedHttp,
  startMeanwhile,
  waitFor,
} from "../helpers/meanwhile.ts";
import { typeHere } from "../helpers/terminal.ts";

/** `meanwhile call`, `tools <target>` and `tasks … --target` against real servers, in pipes. */

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const deferral = ["--no-bundled", "--commands", path.join(fixtures, "deferral/commands")];
/** A server of its own for every connection, as other programs' servers are. */
const ownServer = [process.execPath, executable, ...deferral, "serve", "--in-process"];
const everything = [
  process.execPath,
  path.resolve(import.meta.dirname, "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js"),
];
const oneWord = (words: readonly string[]) => words.map(quoteWord).join(" ");
const uuid = /^[0-9a-f-]{36}$/;

/** One server for all tests of this file that need nothing of their own. */
const shared = { url: "", token: "", stop: async () => {} };

beforeAll(async () => {
  const home = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
  const env = { ...process.env, NODE_COMPILE_CACHE: codeCache, MEANWHILE_HOME: home };
  const commands = [...deferral, "--commands", path.join(fixtures, "questions/commands")];
  const child = spawn(
    process.execPath,
    [quickStart, executable, ...commands, "serve", "--http", "--port", "0", "--allow-anonymous"],
    {
      cwd: home,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    },
  );
  const exited = new Promise((resolve) => child.on("close", resolve));
  shared.stop = async () => {
    child.kill("SIGKILL");
    await exited;
    rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  shared.url = await waitFor(
    () => /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said)?.[0],
    () => `no URL was printed: ${said}`,
  );
  shared.token = execFileSync(process.execPath, [quickStart, executable, "token"], {
    env,
    cwd: home,
    encoding: "utf8",
  }).trim();
});

afterAll(async () => {
  await shared.stop();
});

afterEach(() => {
  vi.unstubAllEnvs();
});

/** Types a line without a process of its own: what is real here is the server. */
async function type(words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const { code, printed, said } = await typeHere(words);
  return { code, stdout: printed, stderr: said };
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
const plainServer = `import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
const tools = [{ name: "say", description: "Says\\u001b[2J it. Then more.", inputSchema: { type: "object", properties: { how: { type: "string", description: "In which way." } }, required: ["how"] } }];
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
  if (method === "initialize") answer({ protocolVersion: "2024-11-05", capabilities: { tools: {} }, serverInfo: { name: "pl\\u001bain", version: "0.1" } });
  else if (method === "tools/list") answer({ tools });
  else if (method === "tools/call") {
    if (process.env.TRACE) appendFileSync(process.env.TRACE, "called\\n");
    const { how } = params.arguments;
    if (how === "die") process.exit(7);
    answer({ content: [{ type: "text", text: "said \\u001b[31m" + how }], isError: how === "no" });
  } else if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } }) + "\\n");
}
`;

describe("a tool of a server, wherever that is", () => {
  test("at a URL: data on stdout, words beside it", async () => {
    const { url } = shared;
    const [plain, json, quiet] = await Promise.all([
      runMeanwhile(["call", url, "work_quick", "text=hi there"]),
      runMeanwhile(["call", url, "work_quick", "--args", '{"text":"from JSON"}', "--json"]),
      runMeanwhile(["call", url, "work_quick", "--input", "-", "--quiet"], { input: '{"text":"from a pipe"}' }),
    ]);
    expect(plain).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^text: hi there\nnumber: \d\n$/),
      stderr: expect.stringMatching(/^✓ work_quick finished in /),
    });
    expect(JSON.parse(json.stdout)).toMatchObject({ text: "from JSON" });
    expect(quiet).toMatchObject({ code: 0, stdout: expect.stringMatching(/^text: from a pipe\n/), stderr: "" });
  });

  test("behind a command line, in one word or behind --", async () => {
    const runs = await Promise.all([
      runMeanwhile(["call", oneWord(ownServer), "work_quick", "text=--x"]),
      runMeanwhile(["call", "work_quick", "text=--x", "--", ...ownServer]),
    ]);
    for (const run of runs) expect(run).toMatchObject({ code: 0, stdout: "text: --x\nnumber: 1\n" });
    expect(await runMeanwhile(["call", "get-sum", "a=2", "b=3", "--", ...everything])).toMatchObject({
      code: 0,
      stdout: "The sum of 2 and 3 is 5.\n",
    });
    const { file } = trace();
    vi.stubEnv("MEANWHILE_HOME", temporaryFolder());
    const detached = await type(["call", "work_long", `file=${file}`, "--detach", "--", ...ownServer]);
    expect(detached).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
    expect(detached.stderr).toMatch(
      /^! The server is started for this call only, and a task may end with it; a URL or a socket outlives us\.\n✓ Runs on/,
    );
  });

  test("on a socket", async () => {
    const socket = path.join(temporaryFolder(), "s.sock");
    const children = new Set<ReturnType<typeof spawn>>();
    const server = createServer((connection) => {
      const child = spawn(ownServer[0] ?? "", ownServer.slice(1), {
        stdio: ["pipe", "pipe", "ignore"],
        env: { ...process.env, MEANWHILE_HOME: path.dirname(socket) },
      });
      children.add(child);
      child.on("close", () => children.delete(child));
      connection.pipe(child.stdin).on("error", () => {});
      child.stdout.pipe(connection).on("error", () => {});
    });
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    onTestFinished(async () => {
      server.close();
      await waitFor(() => children.size === 0);
    });
    expect(await runMeanwhile(["call", `unix:${socket}`, "work_quick", "text=a"])).toMatchObject({
      code: 0,
      stdout: "text: a\nnumber: 1\n",
    });
    expect(await runMeanwhile(["call", "./s.sock", "work_quik"], { cwd: path.dirname(socket) })).toMatchObject({
      code: 2,
      stderr: "✗ There is no tool work_quik; did you mean work_quick? meanwhile tools unix:./s.sock lists them.\n",
    });
  });

  test("of this project's own, and a task there outlives the call", async () => {
    const cwd = writeFiles(temporaryFolder(), {
      "meanwhile.config.json": JSON.stringify({ bundled: false, commands: [path.join(fixtures, "deferral/commands")] }),
    });
    const env = { MEANWHILE_HOME: temporaryFolder() };
    const run = (...words: string[]) => runMeanwhile(words, { cwd, env });
    onTestFinished(async () => {
      await run("daemon", "stop");
    });
    const { file, open } = trace();
    const { code, stdout, stderr } = await run("call", ".", "work_long", `file=${file}`, "--detach");
    expect({ code, id: stdout.trim() }).toEqual({ code: 0, id: expect.stringMatching(uuid) });
    expect(stderr).toBe(`✓ Runs on without you: meanwhile tasks result ${stdout.trim()} --wait --target .\n`);
    open();
    expect(await run("tasks", "result", stdout.trim(), "--wait", "--target", ".")).toMatchObject({
      code: 0,
      stdout: `passed: ${file}\n`,
      stderr: "",
    });
  });

  test("is listed with what is known of it, and of its server", async () => {
    const { url } = shared;
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
    const { url } = shared;
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
    const { url, token } = shared;
    vi.stubEnv("THE_TOKEN", token);
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
    const { url, token } = shared;
    vi.stubEnv("THE_TOKEN", token);
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
    const { url } = shared;
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
    const { url } = shared;
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
    const { url } = shared;
    const dying = `console.error("no\\x1b[31m licence"); process.exit(3)`;
    const [failed, absent, missing, dead] = await Promise.all([
      type(["call", url, "work_sync", "fail=true", "--json"]),
      type(["call", "http://127.0.0.1:1/mcp", "x"]),
      type(["call", "there-is-no-such-program", "x"]),
      type(["call", "x", "--", process.execPath, "-e", dying]),
    ]);
    expect(failed).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/✗ Failed to sync: Permission denied\n$/),
    });
    expect(absent).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^✗ http:\/\/127\.0\.0\.1:1 cannot be reached[^\n]*\n$/),
    });
    expect(missing).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^✗ The server there-is-no-such-program cannot be started[^\n]*\n$/),
    });
    expect(dead).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/exit code 3; its last words: «no \[31m licence»\.\n$/),
    });
  });

  test("124 when its time is over, 130 when it is interrupted in a pipe: the server's work is stopped", async () => {
    const { url } = shared;
    const [late, task, call] = [trace(), trace(), trace()];
    const following = startMeanwhile(["call", url, "work_long", `file=${task.file}`]);
    const waiting = startMeanwhile(["call", url, "work_gated", `file=${call.file}`]);
    await waitFor(() => /Task [0-9a-f-]{36}/.test(following.stderr()));
    await call.has("started");
    for (const { child } of [following, waiting]) child.kill("SIGINT");
    for (const started of [following, waiting]) {
      expect(await started.exited).toBe(130);
      expect(started.stderr()).toMatch(/✗ Cancelled\.\n$/);
    }
    // Enough for the work to begin, also on a busy machine: what has not begun needs not be stopped.
    expect(await runMeanwhile(["call", url, "work_long", `file=${late.file}`, "--timeout", "5"])).toMatchObject({
      code: 124,
      stdout: "",
      stderr: expect.stringMatching(/✗ Timed out after 5 s\.\n$/),
    });
    for (const { has } of [late, task, call]) await has("stopped");
  });
});

describe("a server is", () => {
  test("given its token from a variable, or a header; neither is ever shown", async () => {
    const { url, home } = await startGuardedHttp(deferral);
    const token = execFileSync(process.execPath, [quickStart, executable, "token"], {
      env: { ...process.env, NODE_COMPILE_CACHE: codeCache, MEANWHILE_HOME: home },
      encoding: "utf8",
    }).trim();
    vi.stubEnv("THE_TOKEN", token);
    const [without, wrong, byVariable, byHeader, detached] = await Promise.all([
      type(["call", url, "work_quick"]),
      type(["call", url, "work_quick", "--header", "Authorization: Bearer another"]),
      type(["call", url, "work_quick", "--token-env", "THE_TOKEN"]),
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
      stderr: expect.stringContaining("The bearer token is not this home's"),
    });
    expect(wrong.stderr).not.toContain("--token-env");
    expect(byVariable.code, byVariable.stderr).toBe(0);
    expect(byHeader.code, byHeader.stderr).toBe(0);
    expect(detached.stderr).toContain(`--wait --target ${url} --header 'Authorization: …'\n`);
    for (const { stdout, stderr } of [without, byVariable, byHeader, detached])
      expect(stdout + stderr).not.toContain(token);
  });

  test("not asked for what it cannot do, not believed, and not obeyed", async () => {
    const { file, read } = trace();
    const script = path.join(writeFiles(temporaryFolder(), { "plain.mjs": plainServer }), "plain.mjs");
    vi.stubEnv("TRACE", file);
    const run = (...words: string[]) => type([...words, "--", process.execPath, script]);
    expect(await run("call", "say", "how=x", "--detach")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "✗ This server has no tasks, so nothing would be left of the call; call it without --detach.\n",
    });
    expect(read()).toBe("");
    const [missing, no, died, told, listed] = await Promise.all([
      run("call", "say"),
      run("call", "say", "how=no"),
      run("call", "say", "how=die"),
      run("call", "say", "how=x", "--async"),
      run("tools"),
    ]);
    expect(missing).toMatchObject({ code: 2, stderr: "✗ Missing how (In which way); add how=…\n" });
    expect(no).toMatchObject({ code: 1, stdout: "", stderr: "✗ said  [31mno\n" });
    expect(died).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("exit code 7") });
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
