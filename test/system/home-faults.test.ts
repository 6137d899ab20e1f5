import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { DaemonHome, dataOf, isRunning } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startHttp, waitFor } from "../helpers/meanwhile.ts";
import { casesOf, rounds } from "../helpers/rounds.ts";
import { type Answer, overHttp, overPipes, WireClient } from "../helpers/wire.ts";

/**
 * What becomes of fronts, daemons and servers when their home moves, may not be written, or file descriptors run out.
 */

test("a home that is moved away is not made anew by its fronts: they say one sentence, and go on when it is back", async () => {
  const home = new DaemonHome();
  const clients = [await home.connect(), await home.connect()];
  const file = path.join(temporaryFolder(), "trace");
  const { task } = await (clients[0] as WireClient).call("job_safe", { file }, { task: {} });
  await waitFor(() => existsSync(file));
  const { pid } = home.daemon();
  const away = `${home.home}.away`;
  renameSync(home.home, away);
  await waitFor(() => !isRunning(pid));
  for (const client of clients) {
    for (const method of ["tools/list", "tasks/list"]) {
      const { error } = await client.request(method);
      expect(error?.message).toContain("The home folder is gone");
      expect(error?.message).not.toContain(home.home);
    }
    expect(client.front.stderr().match(/✗ /g)).toHaveLength(1);
    expect(client.front.stderr()).toContain(home.home);
  }
  expect(existsSync(home.home)).toBe(false);
  renameSync(away, home.home);
  writeFileSync(`${file}.go`, "");
  for (const client of clients)
    expect(dataOf(await client.call("say_back", { text: "back" }))).toMatchObject({ text: "back" });
  const result = await (clients[1] as WireClient).request("tasks/result", { taskId: task?.taskId as string });
  expect(result.result?.structuredContent).toMatchObject({ success: true, data: { passed: file } });
});

test("`daemon restart` where the home may not be written says so, advises to remove nothing, and the daemon that runs stays", async () => {
  const home = new DaemonHome({ env: asPlainUser() });
  own(path.dirname(home.home));
  const client = await home.connect();
  const { pid } = home.daemon();
  const log = path.join(home.home, "daemon.log");
  chmodSync(log, 0o400);
  chmodSync(home.home, 0o500);
  onTestFinished(() => chmodSync(home.home, 0o700));
  const restarted = await home.terminal("daemon", "restart");
  expect(restarted.code).toBe(70);
  expect(restarted.stderr).toContain(`${log} may not be written`);
  expect(restarted.stderr).toContain("MEANWHILE_HOME");
  expect(restarted.stderr).not.toContain("remove");
  expect(isRunning(pid)).toBe(true);
  expect(dataOf(await client.call("say_back", { text: "here" }))).toMatchObject({ text: "here", pid });
});

/** As root nothing is forbidden, so programs are run as somebody else. */
function asPlainUser(): Record<string, string> {
  return process.getuid?.() === 0
    ? { NODE_OPTIONS: "--import=data:text/javascript,process.getuid()===0&&process.setuid(65534)" }
    : {};
}

function own(folder: string): void {
  if (process.getuid?.() !== 0) return;
  chownSync(folder, 65534, 65534);
  for (const name of readdirSync(folder, { recursive: true }) as string[])
    chownSync(path.join(folder, name), 65534, 65534);
}

function toolNames({ result }: Answer): string[] {
  return ((result?.tools ?? []) as { name: string }[]).map(({ name }) => name);
}

/** So many descriptors beyond those that are open. */
function limitDescriptors(pid: number, more: number): void {
  const open = readdirSync(`/proc/${pid}/fd`).length;
  execFileSync("prlimit", ["--pid", String(pid), `--nofile=${open + more}:`]);
}

test.for(casesOf([0, 8], 0))(
  "with %i file descriptors left a daemon serves on, none of several more fronts gives up, and the cure is named",
  async (left) => {
    const home = new DaemonHome();
    const first = await home.connect();
    const { pid } = home.daemon();
    // What is loaded once needs no descriptor; other commands are loaded when there are some.
    await first.call("say_back", { text: "before" });
    limitDescriptors(pid, left);
    const fronts = Array.from({ length: rounds.frontsWithoutDescriptors }, () => home.start());
    const clients = fronts.map((front) => new WireClient(overPipes(front.child), { revision: "2025-11-25" }));
    for (const client of clients) onTestFinished(() => client.close());
    const begun = clients.map((client) => client.begin());
    await waitFor(
      () => fronts.every((front) => front.stderr().includes("ulimit -n")),
      () => fronts.map((front) => front.stderr()).join(""),
    );
    expect(dataOf(await first.call("say_back", { text: "here" }))).toMatchObject({ pid });
    expect(fronts.map((front) => front.child.exitCode)).toEqual(fronts.map(() => null));
    if (left === 0) expect(home.log()).toContain("ulimit -n");
    expect(home.log()).not.toContain("taken away");
    expect(
      home
        .log()
        .split("\n")
        .filter((line) => line.includes("ulimit -n")).length,
    ).toBeLessThan(5);
    limitDescriptors(pid, 500);
    await Promise.all(begun);
    for (const client of clients)
      expect(dataOf(await client.call("say_back", { text: "in" }))).toMatchObject({ text: "in", pid });
    expect(home.daemon().pid).toBe(pid);
    // A command that lacked a descriptor is loaded again later, each by itself.
    const expected = ["say_back", "say_much", "ask_name", "work_gated", "job_safe"];
    await waitFor(
      async () => {
        const names = toolNames(await first.request("tools/list"));
        return expected.every((name) => names.includes(name));
      },
      () => home.log(),
    );
  },
);

test("an HTTP server with 8 file descriptors left answers 503 with the cure to who comes anew, serves on, and has room again", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/say.ts":
      'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "x", effects: "read", run: () => ({ a: 1 }) });',
  });
  const server = await startHttp(["--no-bundled"], { cwd });
  const pid = server.child.pid as number;
  const ask = async (init: RequestInit = {}) => {
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
    });
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      connection: "close",
    };
    const response = await fetch(server.url, { method: "POST", headers, body, ...init });
    return { status: response.status, text: await response.text() };
  };
  expect(await ask()).toMatchObject({ status: 200 });
  limitDescriptors(pid, 8);
  const refused = await ask();
  expect(refused.status).toBe(503);
  expect(JSON.parse(refused.text)).toMatchObject({
    error: { code: -32603, message: expect.stringContaining("ulimit -n") },
  });
  expect(server.stderr()).toContain("ulimit -n");
  limitDescriptors(pid, 500);
  expect(await ask()).toMatchObject({ status: 200 });
});

test("an HTTP server whose home is moved away makes no other, says what is wrong to who wants a task, and goes on when it is back", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/say.ts":
      'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "x", run: () => ({ a: 1 }) });',
  });
  const home = path.join(temporaryFolder(), "home");
  const server = await startHttp(["--no-bundled"], { cwd, env: { MEANWHILE_HOME: home } });
  const client = await new WireClient(overHttp(server.url, { token: server.token() }), {
    revision: "2025-11-25",
  }).begin();
  onTestFinished(() => client.close());
  renameSync(home, `${home}.away`);
  expect(dataOf(await client.call("say"))).toEqual({ a: 1 });
  const { error } = await client.startCall("say", {}, { task: {} }).answer;
  expect(error).toMatchObject({
    code: -32603,
    message: expect.stringContaining("The task database was deleted while the server ran"),
  });
  expect(existsSync(home)).toBe(false);
  renameSync(`${home}.away`, home);
  expect((await client.call("say", {}, { task: {} })).task).toMatchObject({ status: "working" });
});
