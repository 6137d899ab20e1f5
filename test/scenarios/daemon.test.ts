import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { createConnection } from "node:net";
import path from "node:path";
import { text as textOf } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { dataOf, ownCommands } from "../helpers/daemon.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { cleanUp, shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { overStreams, resultOf, WireClient } from "../helpers/wire.ts";

/** `meanwhile serve` over stdio is a proxy; the work is in a daemon, which outlives the proxy. */

const revisions = ["2025-11-25", "2026-07-28"] as const;

interface Said {
  readonly text: string;
}

/** One daemon for the tests that leave it as it was. */
const shared = shareAmongTests(() => new DaemonHomeHere());

/** A client straight on a daemon's socket, as any MCP client may be. */
async function overSocket(file: string, revision = "2025-11-25"): Promise<WireClient> {
  const socket = createConnection(file);
  const close = async () => void socket.destroy();
  onTestFinished(close);
  await once(socket, "connect");
  return await new WireClient(overStreams(socket, socket, close), { revision }).begin();
}

test("many stdio proxies that start at once have one daemon", async () => {
  const home = new DaemonHomeHere();
  await Promise.all(
    Array.from({ length: 6 }, async (_, at) => {
      const client = await home.connect({ revision: revisions[at % 2] as string });
      expect(dataOf<Said>(await client.call("say_back", { text: `${at}` })).text).toBe(`${at}`);
    }),
  );
  expect(home.daemons).toHaveLength(1);
  expect(home.log().match(/the daemon listens/g)).toHaveLength(1);
});

test("of daemons that are started at once, whoever starts them, one stays", async () => {
  const home = new DaemonHomeHere();
  const started = await Promise.all(Array.from({ length: 3 }, () => home.start()));
  expect(started.map(({ said }) => said).sort()).toEqual(["ready", "taken", "taken"]);
  expect(home.records()).toHaveLength(1);
});

test("answers reach whoever asked, also when all clients use the same ids", async () => {
  const home = await shared();
  const fronts = await Promise.all(
    Array.from({ length: 4 }, (_, at) => home.connect({ revision: revisions[at % 2] as string })),
  );
  const { socket } = home.daemon;
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
  const clock = new FakeClock();
  const hosts = { hasty: { limitSeconds: 1.2 }, calm: { limitSeconds: 60 } };
  const home = new DaemonHomeHere({ config: { hosts }, parts: { clock } });
  const connect = (host: string) => home.connect({ name: "the same", env: { MEANWHILE_HOST: host } });
  const [hasty, calm] = await Promise.all([connect("hasty"), connect("calm")]);
  expect(home.daemons).toHaveLength(1);
  const [first, second] = [gate(), gate()];
  const waits = calm.startCall("work_gated", second.input).answer;
  await second.seen("started");
  expect(kindOf(await settled(clock, hasty.call("work_gated", first.input)))).toBe("handle");
  expect(second.lines()).toEqual(["started"]);
  for (const { open } of [first, second]) open();
  expect(kindOf(resultOf(await waits))).toBe("answer");
});

test("the bundled commands have one daemon wherever a stdio proxy is started, at a place that everybody knows", async () => {
  const home = new DaemonHomeHere();
  const [first, second] = await Promise.all([
    home.connect({ words: [] }),
    home.connect({ words: [], cwd: temporaryFolder() }),
  ]);
  const { socket } = home.daemon;
  expect(socket).toBe(path.join(home.home, "mcp.sock"));
  expect(statSync(socket).mode & 0o777).toBe(0o600);
  expect(statSync(home.home).mode & 0o777).toBe(0o700);
  const straight = await overSocket(socket);
  const lists = await Promise.all(
    [first, second, straight].map(async (client) => resultOf(await client.request("tools/list"))),
  );
  expect(lists[0]?.tools).toEqual(lists[1]?.tools);
  expect(lists[0]?.tools).toEqual(lists[2]?.tools);
});

describe("a socket whose path would be too long", () => {
  /** A home with a long path, and a folder for temporary files whose path is short. */
  function openLong() {
    const temporary = temporaryFolder();
    const home = new DaemonHomeHere({ home: path.join(temporaryFolder(), "x".repeat(100)) });
    vi.stubEnv("TMPDIR", temporary);
    cleanUp(() => vi.unstubAllEnvs());
    return { home, temporary, usual: path.join(temporary, `meanwhile-${process.getuid?.()}`) };
  }

  test("lies among the temporary files, for its user alone", async () => {
    const { home, usual } = openLong();
    const client = await home.connect();
    expect(path.dirname(home.daemon.socket)).toBe(usual);
    expect(statSync(usual).mode & 0o777).toBe(0o700);
    await client.close();
    expect((await home.terminal("daemon", "stop")).code).toBe(0);
    expect(home.records()).toEqual([]);
  });

  test("lies in another folder when another user has taken that one's name, and is found there by whoever comes next", async () => {
    const { home, temporary, usual } = openLong();
    mkdirSync(usual);
    if (process.getuid?.() === 0) chownSync(usual, 65_534, 65_534);
    else chmodSync(usual, 0o777);
    const clients = [await home.connect(), await home.connect()];
    for (const client of clients) expect(dataOf<Said>(await client.call("say_back", { text: "a" })).text).toBe("a");
    expect(home.daemons).toHaveLength(1);
    expect(readdirSync(usual)).toEqual([]);
    const [own = ""] = readdirSync(temporary).filter((name) => name !== path.basename(usual));
    expect(statSync(path.join(temporary, own)).mode & 0o777).toBe(0o700);
    for (const client of clients) await client.close();
    expect((await home.terminal("daemon", "stop")).code).toBe(0);
    expect(readdirSync(temporary), "nothing is left of it").toEqual([path.basename(usual)]);
  });
});

describe("a client that leaves in mid-call", () => {
  test("finds the call's result as a task when it is back", async () => {
    const home = await shared();
    const client = await home.connect();
    const traces = gate();
    client.startCall("work_gated", traces.input);
    await traces.seen("started");
    client.proxy.stdin.end();
    expect(await client.proxy.exited).toBe(0);
    const back = await home.connect();
    const [job] = await waitFor(async () => {
      const { jobs } = dataOf<{ jobs: { job_id: string; status: string }[] }>(await back.call("task_list"));
      return jobs.length > 0 && jobs;
    });
    traces.open();
    const result = await back.call("task_result", { job_id: job?.job_id });
    expect(dataOf(result)).toMatchObject({ passed: traces.input.file });
    expect(traces.starts()).toBe(1);
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
    // From little to more than the buffers of the proxy hold.
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
        const { stdin, stdout, stderr, exited } = home.openProxy();
        stdin.end(lines.map((line) => `${JSON.stringify({ jsonrpc: "2.0", ...line })}\n`).join(""));
        // Nothing more is answered before something is read.
        await waitFor(() => stdout.writableNeedDrain || stdout.readableLength + stdout.writableLength > size * 4_000);
        const answers = (await textOf(stdout)).split("\n").slice(0, -1);
        expect(await exited).toBe(0);
        expect(stderr()).toBe("");
        const ids = answers.map((line) => (JSON.parse(line) as { id: number }).id);
        expect(ids.sort((one, other) => one - other)).toEqual(Array.from({ length: size + 2 }, (_, at) => at + 1));
      }),
    );
  });
});

test("nine megabytes pass in both directions, and more than ten get one error", async () => {
  const home = await shared();
  const client = await home.connect();
  const nine = 9 * 1024 * 1024;
  expect(dataOf(await client.call("say_much", { heard: "x".repeat(nine) }))).toMatchObject({ heard: nine });
  // Answers hold their data twice, as text too.
  const half = nine / 2;
  expect(dataOf<{ said: string }>(await client.call("say_much", { bytes: half })).said).toHaveLength(half);
  client.proxy.stdin.write(
    `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":"${"x".repeat(10 * 1024 * 1024)}"}}\n`,
  );
  const refused = await waitFor(() => client.received.find(({ error }) => error !== undefined));
  expect(refused).toMatchObject({ id: null, error: { code: -32600, message: "The message is larger than 10 MiB." } });
  expect(dataOf<Said>(await client.call("say_back", { text: "still here" })).text).toBe("still here");
});

describe("meanwhile daemon", () => {
  test("status tells what runs, for people and as JSON", async () => {
    const home = new DaemonHomeHere();
    expect(await home.terminal("daemon", "status")).toMatchObject({
      code: 0,
      stdout: "No daemon runs; the next `meanwhile serve` starts one.\n",
    });
    const client = await home.connect();
    const { input, seen, open } = gate();
    await client.call("work_long", input);
    await seen("started");
    const { stdout } = await home.terminal("daemon", "status", "--json");
    const { pid, socket } = home.daemon;
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
    const home = new DaemonHomeHere();
    expect(await home.terminal("daemon", "stop")).toMatchObject({
      code: 1,
      stderr: "✗ No daemon of this project runs.\n",
    });
    const [one, two] = await Promise.all([home.connect(), home.connect({ words: ["--no-bundled"] })]);
    expect(home.records()).toHaveLength(2);
    const stopped = home.daemons;
    expect(await home.terminal("daemon", "stop")).toMatchObject({ code: 0 });
    expect(home.records()).toHaveLength(1);
    expect(await home.terminal("daemon", "stop")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("1 of other projects or settings runs; --all ends them too."),
    });
    expect(await home.terminal("daemon", "stop", "--all")).toMatchObject({ code: 0 });
    expect(home.records()).toEqual([]);
    await Promise.all(stopped.map(({ ended }) => ended));
    // Both were told, so neither starts another before it is of use.
    for (const client of [one, two]) await client.close();
    expect(home.daemons).toEqual([]);
  });

  test("stop waits for what runs; stop --now gives back what is safe, and another daemon runs it", async () => {
    const home = new DaemonHomeHere();
    const client = await home.connect();
    const [waited, given] = [gate(), gate()];
    await client.call("work_long", waited.input);
    await waited.seen("started");
    const stopped = home.terminal("daemon", "stop");
    await waitFor(() => home.records().length === 0);
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
    const home = new DaemonHomeHere();
    const client = await home.connect();
    const before = home.daemon;
    const work = gate();
    const id = taskIdOf(await client.call("work_long", work.input));
    await work.seen("started");
    const stopped = home.terminal("daemon", "stop");
    await waitFor(() => home.records().length === 0);
    expect(dataOf<Said>(await client.call("say_back", { text: "next" })).text).toBe("next");
    expect(home.daemons).toEqual([before, await home.nextDaemon(before)]);
    work.open();
    expect((await stopped).code).toBe(0);
    expect(dataOf(await client.call("task_result", { job_id: id }))).toMatchObject({ passed: work.input.file });
    expect(work.starts()).toBe(1);
  });

  test("restart leaves clients connected, of both eras", async () => {
    const home = new DaemonHomeHere();
    const clients = await Promise.all(revisions.map((revision) => home.connect({ revision })));
    const before = home.daemon;
    const { code, stderr } = await home.terminal("daemon", "restart");
    expect(code, stderr).toBe(0);
    await before.ended;
    for (const client of clients) expect(dataOf<Said>(await client.call("say_back", { text: "a" })).text).toBe("a");
    expect(home.daemon).not.toBe(before);
    expect(stderr).toContain(`Daemon ${home.daemon.pid} serves`);
  });

  test("logs prints what was written, and --follow what is written next", async () => {
    const home = new DaemonHomeHere();
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
    const following = home.startCli([...ownCommands, "daemon", "logs", "--follow"]);
    await waitFor(() => following.stdout().includes("the daemon listens"));
    await home.terminal("daemon", "restart");
    await waitFor(() => following.stdout().match(/the daemon listens/g)?.length === 2);
    following.signal("SIGINT");
    expect(await following.exited).toBe(0);
    await client.close();
  });
});

test("nothing is started by a stdio proxy that is only asked for help", async () => {
  const home = new DaemonHomeHere();
  const { code, stdout } = await home.terminal("serve", "--help");
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("--in-process") });
  expect(existsSync(path.join(home.home, "run"))).toBe(false);
});
