import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { backWays, ways as printingWays } from "../../fixtures/stdout/commands/print/_ways.ts";
import { childrenOf, DaemonHome, dataOf, isRunning, kill, ownCommands, residentMiB } from "../../helpers/daemon.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { executable, runMeanwhile, startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";
import { copyPackage, executableIn } from "../../helpers/package-copy.ts";
import { gate, taskIdOf } from "../../helpers/project.ts";
import { handleOf, overPipes, type Result, resultOf, WireClient } from "../../helpers/wire.ts";

/**
 * Daemons and stdio proxies in processes of their own: signals, memory, file descriptors, other users and other versions
 * of the program. Everything else is in test/scenarios/daemon.test.ts.
 */

const revisions = ["2025-11-25", "2026-07-28"] as const;

interface Said {
  readonly pid: number;
  readonly text: string;
  readonly value: string | null;
}

/** One daemon for the tests that leave it as it was. */
const shared = shareAmongTests(() => new DaemonHome());

describe("a host that is killed in mid-task, together with its front", () => {
  const program = path.resolve(import.meta.dirname, "../../fixtures/daemon/host.ts");

  /** A real SDK client in a process of its own. */
  function startHost(sdk: string, home: DaemonHome, tool: string, input: object) {
    const words = [executable, "serve", ...ownCommands];
    const child = spawn(process.execPath, [program, sdk, JSON.stringify(words), tool, JSON.stringify(input)], {
      cwd: home.cwd,
      env: { ...process.env, MEANWHILE_HOME: home.home },
      // A group of its own, which is killed as a whole.
      detached: true,
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const exited = once(child, "close");
    const killAll = async () => {
      const fronts = childrenOf(child.pid as number);
      kill(-(child.pid as number));
      await exited;
      return fronts;
    };
    onTestFinished(async () => void (await killAll()));
    const said = async <T>(field: string) =>
      await waitFor(
        () => {
          const line = stdout.split("\n").find((text) => text.startsWith(`{"${field}":`));
          return line === undefined ? undefined : ((JSON.parse(line) as Record<string, unknown>)[field] as T);
        },
        () => `the host never said ${field}: ${stdout} ${stderr}`,
      );
    return { killAll, said };
  }

  test.for(["v1", "v2"])("finds the task's result when it is back; it ran once (SDK %s)", async (sdk) => {
    const home = await shared();
    const { input, open, seen, starts } = gate();
    const host = startHost(sdk, home, "work_long", input);
    const handle = handleOf(await host.said<Result>("result"));
    await seen("started");
    const fronts = await host.killAll();
    expect(fronts.length).toBeGreaterThan(0);
    await waitFor(() => !fronts.some(isRunning));
    open();
    await seen("ended");
    const next = startHost(sdk, home, "task_result", { job_id: handle.job_id });
    expect(dataOf(await next.said<Result>("result"))).toMatchObject({ passed: input.file });
    expect(starts()).toBe(1);
    await home.hasOneDaemon();
  });
});

test("many fronts that start at once have one daemon, and none of them takes more than 60 MB", async () => {
  const home = new DaemonHome();
  const clients = await Promise.all(
    Array.from({ length: 6 }, (_, at) => home.connect({ revision: revisions[at % 2] as string })),
  );
  const text = "x".repeat(10_000);
  const pids = await Promise.all(
    clients.map(async (client) => {
      const said = await Promise.all(Array.from({ length: 10 }, () => client.call("say_back", { text })));
      return said.map((result) => dataOf<Said>(result).pid);
    }),
  );
  expect(new Set(pids.flat())).toEqual(new Set([home.daemon().pid]));
  await home.hasOneDaemon();
  expect(home.log().match(/the daemon listens/g)).toHaveLength(1);
  for (const { front } of clients) expect(residentMiB(front.child.pid as number)).toBeLessThan(60);
});

describe("which daemon serves", () => {
  test("two versions live side by side on one database; each project's tasks are run by its own daemons alone", async () => {
    const home = new DaemonHome();
    const newer = copyPackage({ version: "9.9.9" });
    const other = writeFiles(temporaryFolder(), {
      "x/y.ts":
        'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "Y", run: () => ({}) });',
    });
    const current = await home.connect();
    const [held, queued] = [gate(), gate()];
    const first = taskIdOf(await current.call("work_long", held.input));
    await held.seen("started");

    const front = startMeanwhile(["serve", "--no-bundled", "--commands", other], {
      cwd: home.cwd,
      env: { MEANWHILE_HOME: home.home },
    });
    const stranger = new WireClient(overPipes(front.child), { revision: "2025-11-25" });
    onTestFinished(() => stranger.close());
    await stranger.begin();
    const next = await connectTo(newer, home);
    expect(home.daemons()).toHaveLength(3);
    const seconds = dataOf<Said>(await next.call("say_back")).pid;
    expect(dataOf<Said>(await current.call("say_back")).pid).not.toBe(seconds);

    // What one version's daemon leaves, the other's takes up; the other project's does not.
    const second = taskIdOf(await next.call("job_safe", queued.input));
    await queued.seen("started");
    await next.close();
    kill(seconds);
    await queued.seen("started", 2);
    for (const { open } of [held, queued]) open();
    for (const id of [first, second]) {
      const result = await current.call("task_result", { job_id: id });
      expect(dataOf(result)).toMatchObject({ passed: expect.any(String) });
    }
    expect(held.starts()).toBe(1);
    expect(queued.starts()).toBe(2);
    // What lost its worker runs again in a process of its own.
    const { pid } = dataOf<Said>(await current.call("task_result", { job_id: second }));
    expect([seconds, dataOf<Said>(await current.call("say_back")).pid]).not.toContain(pid);
  });

  async function connectTo(folder: string, { home, cwd }: DaemonHome): Promise<WireClient> {
    const child = spawn(process.execPath, [executableIn(folder), "serve", ...ownCommands], {
      cwd,
      env: { ...process.env, MEANWHILE_HOME: home },
    });
    const client = new WireClient(overPipes(child), { revision: "2025-11-25" });
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await client.close();
    });
    return await client.begin();
  }

  test("a config file of code that imports what has changed is read again", async () => {
    const home = new DaemonHome();
    const say = (text: string) =>
      `import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "S", run: () => ({ text: "${text}" }) });`;
    writeFiles(home.cwd, {
      "a/say/it.ts": say("a"),
      "b/say/it.ts": say("b"),
      "folders.ts": 'export const folders = ["a"];',
      "meanwhile.config.ts":
        'import { folders } from "./folders.ts"; export default { commands: folders, bundled: false };',
    });
    const first = await home.connect({ words: [] });
    expect(dataOf(await first.call("say_it"))).toEqual({ text: "a" });
    writeFiles(home.cwd, { "folders.ts": 'export const folders = ["b"];' });
    const { code, stderr } = await runMeanwhile(["daemon", "restart"], {
      cwd: home.cwd,
      env: { MEANWHILE_HOME: home.home },
    });
    expect(code, stderr).toBe(0);
    const second = await home.connect({ words: [] });
    await first.request("tools/list");
    for (const client of [first, second]) expect(dataOf(await client.call("say_it"))).toEqual({ text: "b" });
    await home.hasOneDaemon();
  });
});

test("the socket cannot be reached by another user", async () => {
  const home = new DaemonHome();
  await home.connect();
  const { socket } = home.daemon();
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  expect(statSync(path.dirname(socket)).mode & 0o777).toBe(0o700);
  if (process.getuid?.() !== 0) return;
  // Everything above is open to all: what stops them is the folder, and the socket itself when that is opened too.
  for (
    let folder = path.dirname(home.home);
    folder !== path.dirname(folder) && folder.includes("meanwhile-");
    folder = path.dirname(folder)
  )
    chmodSync(folder, 0o755);
  chmodSync(home.home, 0o755);
  expect(connectAs(65_534, socket)).toBe("EACCES");
  chmodSync(path.dirname(socket), 0o755);
  expect(connectAs(65_534, socket)).toBe("EACCES");
  expect(connectAs(0, socket)).toBe("connected");
});

function connectAs(uid: number, socket: string): string {
  // It becomes that user only once it runs: another user may not be able to start what lies in this one's folders.
  const program = `process.setgroups([]); process.setgid(${uid}); process.setuid(${uid});
    require('net').connect(process.argv[1], () => done('connected')).on('error', (error) => done(error.code));
    function done(text) { console.log(text); process.exit(); }`;
  return spawnSync(process.execPath, ["-e", program, socket], { encoding: "utf8", cwd: "/" }).stdout.trim();
}

test("a front's stdout holds nothing but messages, whatever commands print, from threads too", async () => {
  const commands = path.resolve(import.meta.dirname, "../../fixtures/stdout/commands");
  const home = new DaemonHome();
  const client = await home.connect({ words: ["--no-bundled", "--commands", commands] });
  const names = [...Object.keys(printingWays), ...Object.keys(backWays)];
  const results = await Promise.all(names.map((way) => client.call("print_text", { way, text: `printed by ${way}` })));
  for (const result of results) expect(result.isError).not.toBe(true);
  for (const line of client.front.stdout().split("\n").slice(0, -1))
    expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  expect(client.front.stderr()).toBe("");
  await waitFor(
    () => names.every((way) => home.log().includes(`printed by ${way}`)),
    () => `not in the log: ${names.filter((way) => !home.log().includes(`printed by ${way}`)).join(", ")}`,
  );
});

describe("a client that leaves in mid-call", () => {
  const ways = ["its input is closed", "SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"] as const;

  test(`finds the call's result as a task when it is back, however its front has ended: ${ways.join(", ")}`, async () => {
    const home = new DaemonHome();
    const left = await Promise.all(
      ways.map(async (how) => {
        const client = await home.connect();
        const traces = gate();
        client.startCall("work_gated", traces.input);
        await traces.seen("started");
        if (how === "its input is closed") client.front.child.stdin.end();
        else client.front.child.kill(how);
        expect(await client.front.exited, how).toBe(how === "SIGKILL" ? "SIGKILL" : 0);
        return traces;
      }),
    );
    const back = await home.connect();
    const jobs = await waitFor(async () => {
      const { jobs: found } = dataOf<{ jobs: { job_id: string }[] }>(await back.call("task_list"));
      return found.length === ways.length ? found : undefined;
    });
    for (const { open } of left) open();
    const passed = await Promise.all(
      jobs.map(async ({ job_id }) => dataOf<{ passed: string }>(await back.call("task_result", { job_id })).passed),
    );
    expect(passed.sort()).toEqual(left.map(({ input }) => input.file).sort());
    for (const { starts } of left) expect(starts()).toBe(1);
  });
});

test("a client that never reads is not read from any more; others are served, and the daemon's memory stays bounded", async () => {
  const home = await shared();
  const other = await home.connect();
  const { pid } = home.daemon();
  const deaf = home.start();
  // Nothing reads this.
  deaf.child.stdout.removeAllListeners("data").pause();
  deaf.child.stdin.write(
    `${JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "deaf", version: "1" } } })}\n`,
  );
  const before = residentMiB(pid);
  const heard = "x".repeat(20_000);
  const call = (id: number) =>
    `${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "say_much", arguments: { heard, bytes: 500_000 } } })}\n`;
  let written = 0;
  // 1,000 answers of a megabyte; after a few of them our words are not taken any more.
  const pushed = (async () => {
    for (let id = 1; id <= 1_000 && deaf.child.stdin.writable; id++) {
      written = id;
      if (!deaf.child.stdin.write(call(id)))
        await Promise.race([once(deaf.child.stdin, "drain").catch(() => undefined), deaf.exited]);
      await new Promise(setImmediate);
    }
  })();
  for (let round = 0; round < 100; round++) {
    expect(dataOf<Said>(await other.call("say_back", { text: `${round}` })).text).toBe(`${round}`);
  }
  const grown = residentMiB(pid) - before;
  const front = residentMiB(deaf.child.pid as number);
  expect(written, "the calls that were handed over").toBeGreaterThan(2);
  expect(written, "the calls that were handed over").toBeLessThan(200);
  expect(front, "the front's memory").toBeLessThan(150);
  expect(grown, "what the daemon has grown by").toBeLessThan(300);
  deaf.child.kill("SIGKILL");
  await pushed;
});

test("a call that comes while the daemon hangs up is run by the next one, once", async () => {
  const home = new DaemonHome();
  // Another front starts the daemon: its parent has to be there when it ends.
  await home.connect();
  const client = await home.connect();
  const before = home.daemon();
  const work = gate();
  work.open();
  const front = client.front.child;
  onTestFinished(() => void front.kill("SIGCONT"));
  // The front wakes up to a call and to the daemon's good-bye, and the call was there first.
  front.kill("SIGSTOP");
  const { answer } = client.startCall("work_gated", work.input);
  expect((await home.terminal("daemon", "stop")).code).toBe(0);
  expect(isRunning(before.pid)).toBe(false);
  front.kill("SIGCONT");
  expect(dataOf(resultOf(await answer))).toMatchObject({ passed: work.input.file });
  expect(work.starts()).toBe(1);
  expect(home.daemon().pid).not.toBe(before.pid);
});
