import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { createConnection } from "node:net";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { backWays, ways as printingWays } from "../fixtures/stdout/commands/print/_ways.ts";
import {
  childrenOf,
  DaemonHome,
  daemonProcesses,
  dataOf,
  isRunning,
  kill,
  ownCommands,
  residentMiB,
} from "../helpers/daemon.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { executable, runMeanwhile, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { copyPackage, executableIn } from "../helpers/package-copy.ts";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";
import { handleOf, overPipes, overStreams, type Result, resultOf, WireClient } from "../helpers/wire.ts";

/** `meanwhile serve` on stdio is a front; the work is in a daemon, which outlives it. */

const revisions = ["2025-11-25", "2026-07-28"] as const;

interface Said {
  readonly pid: number;
  readonly text: string;
  readonly value: string | null;
}

/** One daemon for the tests that leave it as it was. */
const shared = shareAmongTests(() => new DaemonHome());

/** A client straight on a daemon's socket, as any MCP client may be. */
async function overSocket(file: string, revision = "2025-11-25"): Promise<WireClient> {
  const socket = createConnection(file);
  const close = async () => void socket.destroy();
  onTestFinished(close);
  await once(socket, "connect");
  return await new WireClient(overStreams(socket, socket, close), { revision }).begin();
}

describe("a host that is killed in mid-task, together with its front", () => {
  const program = path.resolve(import.meta.dirname, "../fixtures/daemon/host.ts");

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

test("of daemons that are started at once, whoever starts them, one stays", async () => {
  const home = new DaemonHome();
  const started = Array.from({ length: 3 }, () =>
    startMeanwhile([...ownCommands, "_daemon"], { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } }),
  );
  let left = 0;
  for (const { exited } of started) void exited.then((code) => (left += code === 0 ? 1 : 0));
  const listening = () => started.filter(({ stderr }) => stderr().includes("the daemon listens"));
  await waitFor(() => left === started.length - 1 && listening().length > 0);
  expect(listening()).toHaveLength(1);
  await home.hasOneDaemon();
});

test("answers reach whoever asked, also when all clients use the same ids", async () => {
  const home = await shared();
  const fronts = await Promise.all(
    Array.from({ length: 4 }, (_, at) => home.connect({ revision: revisions[at % 2] as string })),
  );
  const { socket } = home.daemon();
  const straight = await Promise.all(
    Array.from({ length: 8 }, (_, at) => overSocket(socket, revisions[at % 2] as string)),
  );
  const swapped: string[] = [];
  await Promise.all(
    [...fronts, ...straight].map(async (client, number) => {
      for (let round = 0; round < 3; round++) {
        const texts = Array.from({ length: 10 }, (_, at) => `client ${number}, call ${round}.${at}`);
        const answers = await Promise.all(texts.map((text) => client.call("say_back", { text })));
        for (const [at, answer] of answers.entries())
          if (dataOf<Said>(answer).text !== texts[at]) swapped.push(texts[at] as string);
      }
    }),
  );
  expect(swapped).toEqual([]);
});

test("two hosts share a daemon, and each call waits as long as its own host does", async () => {
  const home = new DaemonHome({ config: { hosts: { hasty: { limitSeconds: 1.2 }, calm: { limitSeconds: 60 } } } });
  const [hasty, calm] = await Promise.all(
    ["hasty", "calm"].map((host) => home.connect({ name: "the same", env: { MEANWHILE_HOST: host } })),
  );
  await home.hasOneDaemon();
  const [first, second] = [gate(), gate()];
  const waits = calm?.startCall("work_gated", second.input).answer;
  const handed = await hasty?.call("work_gated", first.input);
  expect(kindOf(handed as Result)).toBe("handle");
  expect(second.lines()).toEqual(["started"]);
  for (const { open } of [first, second]) open();
  expect(kindOf(resultOf(await (waits as NonNullable<typeof waits>)))).toBe("answer");
});

describe("which daemon serves", () => {
  test("the bundled commands have one daemon wherever a front is started, at a place that everybody knows", async () => {
    const home = new DaemonHome();
    const [first, second] = await Promise.all([
      home.connect({ words: [] }),
      home.connect({ words: [], cwd: temporaryFolder() }),
    ]);
    expect(home.daemon().socket).toBe(path.join(home.home, "mcp.sock"));
    expect(statSync(home.daemon().socket).mode & 0o777).toBe(0o600);
    expect(statSync(home.home).mode & 0o777).toBe(0o700);
    const straight = await overSocket(home.daemon().socket);
    const lists = await Promise.all(
      [first, second, straight].map(async (client) => resultOf(await client.request("tools/list"))),
    );
    expect(lists[0]?.tools).toEqual(lists[1]?.tools);
    expect(lists[0]?.tools).toEqual(lists[2]?.tools);
    await home.hasOneDaemon();
  });

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

describe("the socket", () => {
  test("whose path would be too long lies among the temporary files, for its user alone", async () => {
    const home = new DaemonHome();
    const long = path.join(home.home, "x".repeat(100));
    // As short as it is at home, and gone with it.
    const temporary = temporaryFolder();
    const client = await home.connect({ env: { MEANWHILE_HOME: long, TMPDIR: temporary } });
    const { pid } = dataOf<Said>(await client.call("say_back"));
    onTestFinished(() => kill(pid));
    const folder = path.join(temporary, `meanwhile-${process.getuid?.()}`);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    await client.close();
    expect(
      (
        await runMeanwhile([...ownCommands, "daemon", "stop"], {
          cwd: home.cwd,
          env: { MEANWHILE_HOME: long, TMPDIR: temporary },
        })
      ).code,
    ).toBe(0);
    expect(isRunning(pid)).toBe(false);
  });

  test("lies in another folder when a stranger has taken that one's name, and is found there by whoever comes next", async () => {
    const home = new DaemonHome();
    const long = path.join(home.home, "x".repeat(100));
    const temporary = temporaryFolder();
    const taken = path.join(temporary, `meanwhile-${process.getuid?.()}`);
    mkdirSync(taken);
    if (process.getuid?.() === 0) chownSync(taken, 65_534, 65_534);
    else chmodSync(taken, 0o777);
    const env = { MEANWHILE_HOME: long, TMPDIR: temporary };
    const client = await home.connect({ env });
    const { pid } = dataOf<Said>(await client.call("say_back"));
    onTestFinished(() => kill(pid));
    const second = await home.connect({ env });
    expect(dataOf<Said>(await second.call("say_back")).pid).toBe(pid);
    expect(readdirSync(taken)).toEqual([]);
    const [own = ""] = readdirSync(temporary).filter((name) => name !== path.basename(taken));
    expect(statSync(path.join(temporary, own)).mode & 0o777).toBe(0o700);
    await Promise.all([client.close(), second.close()]);
    expect((await runMeanwhile([...ownCommands, "daemon", "stop"], { cwd: home.cwd, env })).code).toBe(0);
    expect(readdirSync(temporary), "nothing is left of it").toEqual([path.basename(taken)]);
  });

  test("cannot be reached by another user", async () => {
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
});

test("a front's stdout holds nothing but messages, whatever commands print, from threads too", async () => {
  const commands = path.resolve(import.meta.dirname, "../fixtures/stdout/commands");
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

  test("gets every answer that it has asked for by then, however slowly it reads: printf … | meanwhile serve", async () => {
    const home = await shared();
    const initialize = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "printf", version: "1" },
    };
    const call = (id: number, name: string, input: object) => ({
      id,
      method: "tools/call",
      params: { name, arguments: input },
    });
    // From less than a pipe holds to more than that and the front's own buffer together.
    const sizes = Array.from({ length: 8 }, (_, at) => 10 + 9 * at);
    await Promise.all(
      sizes.map(async (size) => {
        const calls = Array.from({ length: size }, (_, at) => call(at + 3, "say_much", { bytes: 2_000 }));
        const lines = [
          { id: 1, method: "initialize", params: initialize },
          { method: "notifications/initialized" },
          call(2, "say_later", { text: "late" }),
          ...calls,
        ];
        const front = home.start();
        front.child.stdout.pause();
        front.child.stdin.end(lines.map((line) => `${JSON.stringify({ jsonrpc: "2.0", ...line })}\n`).join(""));
        setTimeout(() => front.child.stdout.resume(), 1_500);
        expect(await front.exited).toBe(0);
        expect(front.stderr()).toBe("");
        const answers = front.stdout().split("\n").slice(0, -1);
        const ids = answers.map((line) => (JSON.parse(line) as { id: number }).id);
        expect(ids.sort((one, other) => one - other)).toEqual(Array.from({ length: size + 2 }, (_, at) => at + 1));
      }),
    );
  });
});

describe("large and unread messages", () => {
  test("nine megabytes pass in both directions, and more than ten get one error", async () => {
    const home = await shared();
    const client = await home.connect();
    const nine = 9 * 1024 * 1024;
    expect(dataOf(await client.call("say_much", { heard: "x".repeat(nine) }))).toMatchObject({ heard: nine });
    // Answers hold their data twice, as text too.
    const half = nine / 2;
    expect(dataOf<{ said: string }>(await client.call("say_much", { bytes: half })).said).toHaveLength(half);
    client.front.child.stdin.write(
      `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"${"x".repeat(10 * 1024 * 1024)}"}}\n`,
    );
    const refused = await waitFor(() => client.received.find(({ error }) => error !== undefined));
    expect(refused).toMatchObject({ id: null, error: { code: -32600, message: "The message is larger than 10 MiB." } });
    expect(dataOf<Said>(await client.call("say_back", { text: "still here" })).text).toBe("still here");
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
});

describe("meanwhile daemon", () => {
  test("status tells what runs, for people and as JSON", async () => {
    const home = new DaemonHome();
    expect(await home.terminal("daemon", "status")).toMatchObject({
      code: 0,
      stdout: "No daemon runs; the next `meanwhile serve` starts one.\n",
    });
    const client = await home.connect();
    const { input, seen, open } = gate();
    await client.call("work_long", input);
    await seen("started");
    const { stdout } = await home.terminal("daemon", "status", "--json");
    const { pid, socket } = home.daemon();
    const { daemons } = JSON.parse(stdout) as { daemons: object[] };
    expect(daemons).toMatchObject([
      { pid, socket, connections: 1, running: 1, isThisProject: true, version: expect.any(String), cwd: home.cwd },
    ]);
    const { stdout: text } = await home.terminal("daemon", "status");
    expect(text).toContain(`Daemon ${pid}`);
    expect(text).toContain("serves    1 client, runs 1 task");
    open();
  });

  test("stop ends this project's, --all every one, and where none runs it says so", async () => {
    const home = new DaemonHome();
    expect(await home.terminal("daemon", "stop")).toMatchObject({
      code: 1,
      stderr: "✗ No daemon of this project runs.\n",
    });
    const [one, two] = await Promise.all([home.connect(), home.connect({ words: ["--no-bundled"] })]);
    expect(home.daemons()).toHaveLength(2);
    expect(await home.terminal("daemon", "stop")).toMatchObject({ code: 0 });
    expect(home.daemons()).toHaveLength(1);
    expect(await home.terminal("daemon", "stop")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("1 of other projects or settings runs; --all ends them too."),
    });
    expect(await home.terminal("daemon", "stop", "--all")).toMatchObject({ code: 0 });
    expect(daemonProcesses(home.home)).toEqual([]);
    // Both were told, so neither starts another before it is of use.
    for (const client of [one, two]) await client.close();
    expect(daemonProcesses(home.home)).toEqual([]);
  });

  test("stop waits for what runs; stop --now gives back what is safe, and another daemon runs it", async () => {
    const home = new DaemonHome();
    const client = await home.connect();
    const [waited, given] = [gate(), gate()];
    await client.call("work_long", waited.input);
    await waited.seen("started");
    const stopped = home.terminal("daemon", "stop");
    await waitFor(() => home.daemons().length === 0);
    expect(waited.lines()).toEqual(["started"]);
    waited.open();
    expect((await stopped).code).toBe(0);
    expect(waited.lines()).toEqual(["started", "ended"]);

    const id = taskIdOf(await client.call("job_safe", given.input));
    await given.seen("started");
    expect((await home.terminal("daemon", "stop", "--now")).code).toBe(0);
    expect(given.lines()).toEqual(["started"]);
    given.open();
    expect(dataOf(await client.call("task_result", { job_id: id }))).toMatchObject({ passed: given.input.file });
    expect(given.starts()).toBe(2);
  });

  test("a client that waits for nothing is served by the next daemon while the old one still ends its work", async () => {
    const home = new DaemonHome();
    const client = await home.connect();
    const before = home.daemon();
    const work = gate();
    const id = taskIdOf(await client.call("work_long", work.input));
    await work.seen("started");
    const stopped = home.terminal("daemon", "stop");
    await waitFor(() => home.daemons().length === 0);
    expect(dataOf<Said>(await client.call("say_back")).pid).not.toBe(before.pid);
    expect(isRunning(before.pid)).toBe(true);
    work.open();
    expect((await stopped).code).toBe(0);
    expect(dataOf(await client.call("task_result", { job_id: id }))).toMatchObject({ passed: work.input.file });
    expect(work.starts()).toBe(1);
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

  test("restart leaves clients connected, of both eras", async () => {
    const home = new DaemonHome();
    const clients = await Promise.all(revisions.map((revision) => home.connect({ revision })));
    const before = home.daemon();
    const { code, stderr } = await home.terminal("daemon", "restart");
    expect(code, stderr).toBe(0);
    expect(isRunning(before.pid)).toBe(false);
    for (const client of clients) expect(dataOf<Said>(await client.call("say_back")).pid).toBe(home.daemon().pid);
    expect(stderr).toContain(`Daemon ${home.daemon().pid} serves`);
  });

  test("logs prints what was written, and --follow what is written next", async () => {
    const home = new DaemonHome();
    expect(await home.terminal("daemon", "logs")).toMatchObject({ code: 0, stdout: "" });
    const client = await home.connect();
    const { code, stdout } = await home.terminal("daemon", "logs");
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d info {2}the daemon listens {2}pid=\d+/m),
    });
    const raw = await home.terminal("daemon", "logs", "--json");
    expect(JSON.parse(raw.stdout.split("\n")[0] ?? "")).toMatchObject({
      level: expect.any(Number),
      msg: expect.any(String),
    });
    const following = startMeanwhile([...ownCommands, "daemon", "logs", "--follow"], {
      cwd: home.cwd,
      env: { MEANWHILE_HOME: home.home },
    });
    await waitFor(() => following.stdout().includes("the daemon listens"));
    await home.terminal("daemon", "restart");
    await waitFor(() => following.stdout().match(/the daemon listens/g)?.length === 2);
    following.child.kill("SIGINT");
    expect(await following.exited).toBe(0);
    await client.close();
  });
});

test("nothing is started by a front that is only asked for help", async () => {
  const home = new DaemonHome();
  const { code, stdout } = await home.terminal("serve", "--help");
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("--in-process") });
  expect(existsSync(path.join(home.home, "run"))).toBe(false);
});
