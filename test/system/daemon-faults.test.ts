import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { DaemonHome, daemonProcesses, dataOf, isRunning, kill } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { rounds } from "../helpers/rounds.ts";
import { type Result, resultOf } from "../helpers/wire.ts";

/** What clients see of a daemon that ends by kill -9, and what is left to clear away. */

const revisions = ["2025-11-25", "2026-07-28"] as const;

interface Said {
  readonly pid: number;
}

test("many fronts outlive their daemon: they are back, every request is answered, and nothing acknowledged is lost", async () => {
  const home = new DaemonHome();
  const clients = await Promise.all(
    Array.from({ length: rounds.daemonClients }, (_, at) => home.connect({ revision: revisions[at % 2] as string })),
  );
  const before = home.daemon();
  const [safe, unsafe, called] = [gate(), gate(), gate()];
  const [first, second] = clients as [(typeof clients)[0], (typeof clients)[0]];
  const jobs = {
    safe: taskIdOf(await first.call("job_safe", safe.input)),
    unsafe: taskIdOf(await second.call("work_long", unsafe.input)),
  };
  const calls = clients.map((client) => client.startCall("work_gated", called.input));
  await Promise.all([safe.seen("started"), unsafe.seen("started"), called.seen("started", clients.length)]);
  // It hears nothing of this, so that all of it is under way when it ends.
  process.kill(before.pid, "SIGSTOP");
  const lists = clients.map((client) => client.start("tools/list"));
  await waitFor(() => clients.every(({ front }) => front.child.stdin.writableLength === 0));
  kill(before.pid);

  const answers = await Promise.all(lists.map(({ answer }) => answer));
  for (const answer of answers) expect(resultOf(answer).tools).toBeInstanceOf(Array);
  for (const { answer } of calls) {
    const { error } = await answer;
    expect(error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/^The daemon that ran this call has ended, so its outcome is not known\./),
    });
  }
  const pids = await Promise.all(clients.map(async (client) => dataOf<Said>(await client.call("say_back")).pid));
  expect(new Set(pids)).toEqual(new Set([home.daemon().pid]));
  await home.hasOneDaemon();
  expect(home.daemon().pid).not.toBe(before.pid);

  await safe.seen("started", 2);
  safe.open();
  expect(dataOf(await second.call("task_result", { job_id: jobs.safe }))).toMatchObject({ passed: safe.input.file });
  const interrupted = await first.call("task_result", { job_id: jobs.unsafe });
  expect(interrupted.isError).toBe(true);
  expect(unsafe.starts(), "what is not safe to run twice").toBe(1);
  // Each request had one answer, and nobody was told of how the session was begun again.
  for (const client of clients) {
    const ids = client.received.filter(({ method }) => method === undefined).map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)]);
    expect(ids.filter((id) => typeof id !== "number")).toEqual([]);
  }
});

test.runIf(rounds.everyCase)(
  "a subscription goes on with the next daemon, and its client hears once that it stands",
  async () => {
    const home = new DaemonHome();
    const commands = writeFiles(temporaryFolder(), { "a/one.ts": commandNamed("one") });
    const words = ["--no-bundled", "--commands", commands];
    const modern = await home.connect({ revision: "2026-07-28", words });
    const legacy = await home.connect({ words });
    modern.start("subscriptions/listen", { notifications: { toolsListChanged: true } });
    const heard = (method: string) => modern.received.filter((message) => message.method === method).length;
    await waitFor(() => heard("notifications/subscriptions/acknowledged") === 1);
    for (let round = 1; round <= 2; round++) {
      const before = home.daemon();
      kill(before.pid);
      await home.nextDaemon(before);
      for (const client of [modern, legacy]) await client.request("tools/list");
      const counts = [modern, legacy].map(
        (client) => client.received.filter(({ method }) => method === "notifications/tools/list_changed").length,
      );
      writeFiles(commands, { [`a/two${round}.ts`]: commandNamed(`two${round}`) });
      for (const [at, client] of [modern, legacy].entries()) {
        await waitFor(
          () =>
            client.received.filter(({ method }) => method === "notifications/tools/list_changed").length >
            (counts[at] as number),
          () => `the ${at === 0 ? "modern" : "legacy"} client heard nothing after crash ${round}`,
        );
      }
    }
    expect(heard("notifications/subscriptions/acknowledged")).toBe(1);
  },
);

const commandNamed = (name: string) =>
  `import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "${name}", run: () => ({}) });`;

test.runIf(rounds.everyCase)(
  "a question that is open when the daemon ends is taken back, and a late answer to it is nobody else's",
  async () => {
    const home = new DaemonHome();
    const client = await home.connect({ capabilities: { elicitation: {} } });
    const [first, second] = [gate(), gate()];
    const lost = client.startCall("ask_name", first.input);
    const asked = await waitFor(() => client.received.find(({ method }) => method === "elicitation/create"));
    kill(home.daemon().pid);
    expect((await lost.answer).error).toMatchObject({ code: -32603 });
    const takenBack = await waitFor(() => client.received.find(({ method }) => method === "notifications/cancelled"));
    expect(takenBack.params).toMatchObject({ requestId: asked.id });

    const again = client.startCall("ask_name", second.input);
    const next = await waitFor(() =>
      client.received.find(({ method, id }) => method === "elicitation/create" && id !== asked.id),
    );
    const answer = (id: unknown, name: string) =>
      client.front.child.stdin.write(
        `${JSON.stringify({ jsonrpc: "2.0", id, result: { action: "accept", content: { name } } })}\n`,
      );
    answer(asked.id, "Late");
    answer(next.id, "Ada");
    expect(dataOf(resultOf(await again.answer))).toEqual({ greeting: "Hello, Ada!" });
    expect(second.lines()).toEqual(["started", "answered Ada"]);
  },
);

describe("what a dead daemon has left is cleared away", () => {
  test.for(rounds.everyCase ? ["of a dead starter", "of a starter that is stuck"] : ["of a starter that is stuck"])(
    "socket, record, lock and a starting mark %s",
    async (what) => {
      const home = new DaemonHome();
      const client = await home.connect();
      const before = home.daemon();
      client.front.child.kill("SIGKILL");
      await client.front.exited;
      kill(before.pid);
      await waitFor(() => !isRunning(before.pid));
      const mark = path.join(home.home, "run", `${before.key}.starting`);
      writeFileSync(mark, String(what === "of a dead starter" ? before.pid : process.pid));
      // Whoever lives may have a turn of ten seconds.
      if (what !== "of a dead starter") utimesSync(mark, Date.now() / 1000 - 11, Date.now() / 1000 - 11);
      const startedAt = performance.now();
      const next = await home.connect();
      expect(performance.now() - startedAt).toBeLessThan(30_000);
      expect(dataOf<Said>(await next.call("say_back")).pid).toBe(home.daemon().pid);
      await home.hasOneDaemon();
    },
  );

  test("a record that says nothing, or names a place where nobody is", async () => {
    const home = new DaemonHome();
    for (const text of ["null", '{"pid":1,"socket":"/nowhere"}']) {
      const client = await home.connect();
      const { pid, key } = home.daemon();
      client.front.child.kill("SIGKILL");
      await client.front.exited;
      kill(pid);
      await waitFor(() => !isRunning(pid));
      writeFileSync(path.join(home.home, "run", `${key}.json`), text);
      const next = await home.connect();
      expect(dataOf<Said>(await next.call("say_back")).pid, text).toBe(home.daemon().pid);
    }
  });
});

test.runIf(rounds.everyCase)("many fronts that find their daemon dead start one, not many", async () => {
  const home = new DaemonHome();
  const clients = await Promise.all(Array.from({ length: rounds.daemonClients }, () => home.connect()));
  const times = rounds.daemonDeaths;
  for (let round = 0; round < times; round++) {
    const before = home.daemon();
    kill(before.pid);
    await home.nextDaemon(before);
    const results = await Promise.all(clients.map((client) => client.request("tools/list")));
    for (const { result } of results) expect((result as Result).tools).toBeInstanceOf(Array);
    await home.hasOneDaemon();
  }
  expect(home.log().match(/the daemon listens/g)).toHaveLength(times + 1);
});

describe("a daemon leaves", () => {
  test.runIf(rounds.everyCase)(
    "when it was idle for long enough, and not while a task of a client that has gone still runs",
    async () => {
      const home = new DaemonHome({ env: { MEANWHILE_IDLE_SECONDS: "1" } });
      const client = await home.connect();
      const { input, open, seen } = gate();
      const id = taskIdOf(await client.call("work_long", input));
      await seen("started");
      const { pid } = home.daemon();
      await client.close();
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      expect(isRunning(pid)).toBe(true);
      open();
      await waitFor(() => !isRunning(pid));
      expect(home.daemons()).toEqual([]);
      expect(home.log()).toContain("the daemon leaves: nobody needs it");
      const back = await home.connect();
      expect(dataOf(await back.call("task_result", { job_id: id }))).toMatchObject({ passed: input.file });
    },
  );

  test("when its home is deleted", async () => {
    const home = new DaemonHome();
    const client = await home.connect();
    const { pid } = home.daemon();
    await client.close();
    rmSync(home.home, { recursive: true, force: true, maxRetries: 10 });
    await waitFor(() => !isRunning(pid));
  });

  test.runIf(rounds.everyCase)("when its socket is deleted; whoever was connected goes on with the next", async () => {
    const home = new DaemonHome();
    const client = await home.connect();
    const before = home.daemon();
    rmSync(before.socket);
    await waitFor(() => !isRunning(before.pid));
    // What is on its way to a daemon that has just left is asked again when it is a list, and a call only when it was
    // not heard.
    await client.request("tools/list");
    expect(dataOf<Said>(await client.call("say_back")).pid).toBe(home.daemon().pid);
    await home.hasOneDaemon();
  });
});

describe("a project that cannot be served", () => {
  const command =
    'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "X", run: () => ({}) });';
  const cases: readonly {
    title: string;
    files: Record<string, string>;
    words?: string[];
    expected: RegExp;
    code: number;
  }[] = [
    {
      title: "two commands of one name",
      files: { "commands/a/b.ts": command, "commands/a/b.js": command },
      expected: /a_b|a b/,
      code: 70,
    },
    {
      title: "a config file that throws",
      files: { "meanwhile.config.ts": 'throw new Error("no luck");' },
      expected: /Cannot load \S+meanwhile\.config\.ts: .*no luck/,
      code: 70,
    },
    {
      title: "a config file with an unknown setting",
      files: { "meanwhile.config.json": '{"comands":[]}' },
      expected: /`comands` is not a setting; did you mean `commands`\?/,
      code: 70,
    },
    {
      title: "a config file that is no JSON",
      files: { "meanwhile.config.json": "{" },
      expected: /Cannot read \S+meanwhile\.config\.json/,
      code: 70,
    },
    {
      title: "a folder that is not there",
      files: {},
      words: ["--commands", "nowhere"],
      expected: /--commands: there is no folder \S+nowhere\./,
      code: 2,
    },
  ];

  test.for(cases)(
    "is refused with one sentence, and no process stays: $title",
    async ({ files, words = [], expected, code }) => {
      const home = new DaemonHome();
      writeFiles(home.cwd, files);
      const front = home.start({ words });
      front.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
      expect(await front.exited, front.stderr()).toBe(code);
      expect(front.stdout()).toBe("");
      expect(front.stderr()).toMatch(expected);
      expect(front.stderr()).toMatch(/^✗ [^\n]+\n$/);
      await waitFor(() => daemonProcesses(home.home).length === 0);
    },
  );

  test.for(["a file", "a link to the folder of sockets", "a link to a socket", "another user's socket"])(
    "is refused when its home is not to be trusted: %s",
    async (what) => {
      const home = new DaemonHome();
      if (what === "a file") writeFileSync(home.home, "");
      else mkdirSync(home.home);
      if (what === "a link to the folder of sockets") symlinkSync(temporaryFolder(), path.join(home.home, "run"));
      if (what === "a link to a socket" || what === "another user's socket") {
        const client = await home.connect();
        const { socket, pid } = home.daemon();
        kill(pid);
        await client.close();
        await waitFor(() => !isRunning(pid));
        if (what === "a link to a socket") {
          rmSync(socket);
          symlinkSync("/nowhere", socket);
        } else if (process.getuid?.() === 0) spawnSync("chown", ["65534", socket]);
        else return;
        // The client may have brought one back before it left.
        for (const other of daemonProcesses(home.home)) kill(other);
      }
      const front = home.start();
      expect(await front.exited, front.stderr()).toBe(70);
      expect(front.stdout()).toBe("");
      expect(front.stderr()).toMatch(
        /^✗ [^\n]+(is not a folder|EEXIST|ENOTDIR|is a symbolic link|belongs to another user)[^\n]*\n$/,
      );
      if (what.endsWith("socket")) {
        const { code, stdout } = await home.terminal("daemon", "status");
        expect({ code, stdout }).toEqual({
          code: 0,
          stdout: expect.stringMatching(/^● The daemon's socket cannot be trusted: [^\n]+\n$/),
        });
      }
      await waitFor(() => daemonProcesses(home.home).length === 0);
    },
  );
});
