import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { DaemonHome, daemonProcesses, dataOf, isRunning, kill } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { casesOf, rounds } from "../helpers/rounds.ts";
import { resultOf } from "../helpers/wire.ts";

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

test("a question that is open when the daemon ends is taken back, and a late answer to it is nobody else's", async () => {
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
});

describe("what a dead daemon has left is cleared away", () => {
  test.for(casesOf(["of a dead starter", "of a starter that is stuck"], 1))(
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

describe("a daemon leaves", () => {
  test("when its home is deleted", async () => {
    const home = new DaemonHome();
    const client = await home.connect();
    const { pid } = home.daemon();
    await client.close();
    rmSync(home.home, { recursive: true, force: true, maxRetries: 10 });
    await waitFor(() => !isRunning(pid));
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
