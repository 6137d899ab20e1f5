import path from "node:path";
import { describe, expect, test } from "vitest";
import { quoteWord } from "../../src/cli/remote/server-target.ts";
import { startHttpHere } from "../helpers/cli.ts";
import { dataOf } from "../helpers/daemon.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";
import { type LocalServer, openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { type Message, overHttp, type Result, resultOf, WireClient, type WireOptions } from "../helpers/wire.ts";

/**
 * A server that is told to stop loses nothing: each waiting client is told where its call went, and work that is safe
 * goes on in the next server.
 */

const folder = path.resolve(import.meta.dirname, "../fixtures/stop/commands");
const own = ["--no-bundled", "--commands", folder];
const plain: WireOptions = { revision: "2025-11-25" };
const modern: WireOptions = {
  revision: "2026-07-28",
  capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } },
};
/** What is let go ends within it; what is not let go uses all of it. */
const graceSeconds = 20;
const safe = ["stop_read", "stop_again", "stop_retried"] as const;

type Traces = ReturnType<typeof gate>;

interface Flying {
  readonly tool: string;
  readonly client: WireClient;
  readonly traces: Traces;
  readonly answer: Promise<Message>;
}

/** Where a server is started, told to stop, and started again. */
interface Stage {
  readonly clock: FakeClock;
  connect(options: WireOptions): Promise<WireClient>;
  /** Resolves when the server shuts down; the function that it returns waits until the server has ended. */
  stop(): Promise<() => Promise<void>>;
  next(): Promise<void>;
}

async function startCall(client: WireClient, tool: string): Promise<Flying> {
  const traces = gate();
  const { answer } = client.startCall(tool, traces.input);
  await traces.seen("started");
  return { tool, client, traces, answer };
}

/** The task behind an answer, as it is when it has ended, whichever way its client asks. */
async function endOf(
  client: WireClient,
  taskId: string,
  clock: FakeClock,
): Promise<{ ending: "completed" | "failed"; text: string }> {
  return await waitFor(async () => {
    const result = await settled(clock, client.call("task_result", { job_id: taskId }));
    if (kindOf(result) === "handle") return undefined;
    return {
      ending: result.isError === true ? ("failed" as const) : ("completed" as const),
      text: JSON.stringify(result),
    };
  });
}

/** Twenty calls, safe and not, plain and with tasks; half of what must not be run twice ends in its grace. */
async function stopWithTwenty(stage: Stage): Promise<void> {
  const { clock } = stage;
  const clients = await Promise.all([plain, modern, plain, modern].map((options) => stage.connect(options)));
  const tools = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? "stop_once" : (safe[at % 3] as string)));
  // Neighbours are of different kinds, and every client has some of each.
  const flying = await Promise.all(tools.map((tool, at) => startCall(clients[(at >> 1) % 4] as WireClient, tool)));
  const unsafe = flying.filter(({ tool }) => tool === "stop_once");
  const [inTime, late] = [unsafe.slice(0, 5), unsafe.slice(5)];

  const told = clock.now();
  const ended = await stage.stop();
  const answers = await Promise.all(flying.map(async ({ answer }) => resultOf(await answer)));
  expect(clock.now() - told, "the longest silence").toBeLessThan(graceSeconds * 1000);
  for (const [at, { client }] of flying.entries()) {
    const isModern = clients.indexOf(client) % 2 === 1;
    expect(kindOf(answers[at] as Result), `call ${at}`).toBe(isModern ? "task of 2026" : "handle");
  }
  for (const { traces } of unsafe) expect(traces.lines(), "goes on").toEqual(["started"]);
  for (const { traces } of [...inTime, ...flying.filter(({ tool }) => tool !== "stop_once")]) traces.open();
  for (const { traces } of inTime) await traces.seen("ended");
  await ended();
  expect(clock.now() - told, "the grace of what was not let go").toBeGreaterThanOrEqual(graceSeconds * 1000);

  await stage.next();
  const back = await stage.connect(plain);
  const ends = await Promise.all(answers.map((result) => endOf(back, taskIdOf(result), clock)));
  for (const [at, flew] of flying.entries()) {
    const { ending, text } = ends[at] as { ending: string; text: string };
    const isLate = late.includes(flew);
    expect({ tool: flew.tool, ending }, text).toEqual({ tool: flew.tool, ending: isLate ? "failed" : "completed" });
    if (isLate) expect(text).toContain("Interrupted; outcome unknown.");
    expect(
      flew.traces.lines().filter((line) => line === "ended"),
      flew.tool,
    ).toHaveLength(isLate ? 0 : 1);
    expect(flew.traces.starts(), flew.tool).toBe(flew.tool === "stop_once" ? 1 : 2);
  }
}

const stages: Readonly<Record<string, () => Promise<Stage>>> = {
  async "a daemon"() {
    const clock = new FakeClock();
    const home = new DaemonHomeHere({ config: { graceSeconds }, parts: { clock } });
    return {
      clock,
      connect: (options) => home.connect({ ...options, words: own }),
      async stop() {
        const stopped = home.run([...own, "daemon", "stop"]);
        await waitFor(() => home.records().length === 0);
        return async () =>
          expect(await settled(clock, stopped)).toMatchObject({
            code: 0,
            stderr: expect.stringMatching(/Daemon \d+ has ended; 10 tasks wait for the next daemon\n$/),
          });
      },
      next: async () => undefined,
    };
  },
  async "an HTTP server"() {
    const clock = new FakeClock();
    const place = { in: "http", clock, store: "sqlite", commands: folder } as const;
    const folders = { home: temporaryFolder(), cwd: temporaryFolder() };
    let server: LocalServer = await openServer({ ...place, ...folders });
    return {
      clock,
      connect: (options) => server.client(options),
      async stop() {
        const stopped = server.stop(graceSeconds * 1000);
        return () => settled(clock, stopped);
      },
      async next() {
        server = await openServer({ ...place, ...folders });
      },
    };
  },
};

test.for(Object.keys(stages))(
  "%s with twenty calls in flight, longer than the grace: everybody is answered before it is over, nothing is lost, and safe work is done once",
  async (name) => await stopWithTwenty(await (stages[name] as () => Promise<Stage>)()),
);

/** A home for a few daemons, and what is typed there. */
function openHome(config: object = {}) {
  const home = new DaemonHomeHere({ config: { graceSeconds: 60, ...config } });
  return {
    home,
    connect: (options: WireOptions = plain) => home.connect({ ...options, words: own }),
    type: (...words: string[]) => home.run(words),
  };
}

test("daemon restart: the next daemon runs what is safe while the old one still ends what is not", async () => {
  const { home, connect, type } = openHome();
  const client = await connect();
  const before = home.daemon;
  const [once, read] = [await startCall(client, "stop_once"), await startCall(client, "stop_read")];
  const restarted = type(...own, "daemon", "restart");
  const [first, second] = await Promise.all([once, read].map(async ({ answer }) => taskIdOf(resultOf(await answer))));
  read.traces.open();
  const { pid } = await home.nextDaemon(before);
  await read.traces.seen("ended");
  expect(home.daemons.map((daemon) => daemon.pid)).toEqual([before.pid, pid]);
  expect(dataOf(await client.call("task_result", { job_id: second }))).toMatchObject({
    passed: read.traces.input.file,
  });
  expect(once.traces.lines()).toEqual(["started"]);
  once.traces.open();
  expect(await restarted).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(new RegExp(`Daemon ${pid} serves .*\\n[^]*Daemon ${before.pid} has ended\\n$`)),
  });
  expect(dataOf(await client.call("task_result", { job_id: first }))).toMatchObject({ passed: once.traces.input.file });
  expect([once.traces.starts(), read.traces.starts()]).toEqual([1, 2]);
});

test("SIGTERM to a server in the client's own process: answered at once, and it stays for what must not be run twice", async () => {
  const { home, type } = openHome();
  const server = home.startCli(["serve", "--in-process", ...own]);
  const client = await server.client(plain).begin();
  cleanUp(() => client.close());
  const [once, read] = [await startCall(client, "stop_once"), await startCall(client, "stop_read")];
  server.signal("SIGTERM");
  const [first, second] = await Promise.all([once, read].map(async ({ answer }) => taskIdOf(resultOf(await answer))));
  const refused = await client.call("stop_read", read.traces.input);
  expect(refused).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/^The server is shutting down;/) }],
  });
  once.traces.open();
  expect(await server.exited).toBe(0);
  const { stdout } = await type(...own, "tasks", "list", "--json");
  const { tasks } = JSON.parse(stdout) as { tasks: { taskId: string; status: string }[] };
  const statuses = tasks.map(({ taskId, status }) => `${taskId} ${status}`);
  expect(statuses.sort()).toEqual([`${first} completed`, `${second} queued`].sort());
});

test("a client that takes neither tasks nor handles is told where its call went", async () => {
  const { home, connect, type } = openHome({ followUpTools: false });
  const client = await connect();
  const { answer, traces } = await startCall(client, "stop_once");
  const stopped = type(...own, "daemon", "stop");
  const { isError, content } = resultOf(await answer);
  const text = content?.[0]?.text ?? "";
  expect({ isError, text }).toEqual({
    isError: true,
    text: expect.stringMatching(
      /The server is stopping\. stop_once goes on as task (\S+); get its result with: meanwhile tasks result \1/,
    ),
  });
  traces.open();
  expect((await stopped).code).toBe(0);
  const line = /meanwhile (tasks result [\w-]+)/.exec(text)?.[1] as string;
  expect(await type(...own, ...line.split(" "))).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(traces.input.file),
  });
  expect(home.records()).toEqual([]);
});

describe("who waits for a task", () => {
  const task = { ttl: 600_000 };

  test("with tasks/result over stdio waits on, at as many daemons as it takes; with task_result it has its handle again", async () => {
    const { home, connect, type } = openHome();
    const [client, other] = await Promise.all([connect(), connect()]);
    const traces = gate();
    const taskId = taskIdOf(await client.call("stop_again", traces.input, { task }));
    await traces.seen("started");
    const waits = client.request("tasks/result", { taskId });
    for (const starts of [2, 3]) {
      const asked = other.startCall("task_result", { job_id: taskId }).answer;
      // By then it was heard.
      await other.request("ping");
      const before = home.daemon;
      expect((await type(...own, "daemon", "restart")).code).toBe(0);
      expect(kindOf(resultOf(await asked))).toBe("handle");
      await before.ended;
      expect(home.daemon.pid).not.toBe(before.pid);
      await traces.seen("started", starts);
    }
    traces.open();
    expect(dataOf(resultOf(await waits))).toMatchObject({ passed: traces.input.file });
  });

  test("over HTTP has its result where the task ends here, and else a sentence", async () => {
    const server = await startHttpHere(own);
    const client = await new WireClient(overHttp(server.url, { token: server.token() }), plain).begin();
    cleanUp(() => client.close());
    const [once, again] = [gate(), gate()];
    const ids = [
      taskIdOf(await client.call("stop_once", once.input, { task })),
      taskIdOf(await client.call("stop_again", again.input, { task })),
    ];
    for (const { seen } of [once, again]) await seen("started");
    const [first, second] = ids.map((taskId) => client.request("tasks/result", { taskId }));
    server.signal("SIGTERM");
    expect((await second)?.error?.message).toBe(
      "The server is stopping, and the task goes on in the next one; ask again in a moment.",
    );
    once.open();
    expect(dataOf(resultOf((await first) as Message))).toMatchObject({ passed: once.input.file });
    expect(await server.exited).toBe(0);
  });
});

test("daemon status counts calls and tasks, those of a dead daemon too", async () => {
  const { home, connect, type } = openHome();
  const client = await connect();
  const running = async () => {
    const { stdout } = await type(...own, "daemon", "status", "--json");
    const [{ calls, running: tasks }] = (JSON.parse(stdout) as { daemons: [{ calls: number; running: number }] })
      .daemons;
    return { calls, tasks };
  };
  const traces = gate();
  await client.call("stop_again", traces.input, { task: {} });
  await traces.seen("started");
  const calls = [await startCall(client, "stop_once"), await startCall(client, "stop_read")];
  expect(await running()).toEqual({ calls: 2, tasks: 1 });
  expect((await type(...own, "daemon", "status")).stdout).toContain("serves    1 client, runs 2 calls and 1 task\n");
  await home.daemon.kill();
  for (const { answer } of calls) expect((await answer).error?.message).toContain("its outcome is not known");
  await client.call("task_list");
  await traces.seen("started", 2);
  expect(await running()).toEqual({ calls: 0, tasks: 1 });
});

describe("a daemon is found whatever it was started with", () => {
  test("by stop, restart and status without its flags; another one's is left alone", async () => {
    const { home, connect, type } = openHome();
    const client = await connect();
    const before = home.daemon;
    const { stdout } = await type("daemon", "status");
    expect(stdout).toContain(`Daemon ${before.pid}`);
    expect(stdout).toContain("this project's");
    expect(stdout).toContain(`started   ${home.cwd}  --commands ${quoteWord(folder)} --no-bundled\n`);
    expect(await type("daemon", "restart")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`serves ${folder}\n`),
    });
    const next = await home.nextDaemon(before);
    expect(await type("daemon", "stop")).toMatchObject({ code: 0, stderr: `✓ Daemon ${next.pid} has ended\n` });
    expect(home.records()).toEqual([]);
    // The client has not noticed.
    expect(await client.call("task_list")).toMatchObject({ structuredContent: { success: true } });
  });

  test("and where several could be meant, none is until one is named", async () => {
    const { home, connect, type } = openHome();
    await Promise.all([connect(), home.connect({ words: own, env: { MEANWHILE_LOG: "debug" } })]);
    const pids = home.records().map(({ pid }) => pid);
    expect(pids).toHaveLength(2);
    for (const verb of ["stop", "restart"]) {
      const { code, stderr } = await type("daemon", verb);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(
          /^✗ 2 daemons of this project run: \d+ \(--commands .*\), \d+ \(.*\); name one by its pid/,
        ),
      });
    }
    expect(await type("daemon", "stop", "x")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("takes the pid of a daemon"),
    });
    expect(await type("daemon", "stop", "1")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("No daemon 1 runs in this home"),
    });
    expect(await type("daemon", "stop", `${pids[0]}`)).toMatchObject({
      code: 0,
      stderr: `✓ Daemon ${pids[0]} has ended\n`,
    });
    expect(home.records().map(({ pid }) => pid)).toEqual([pids[1]]);
    // In another folder it is not this project's.
    const elsewhere = (...words: string[]) => home.run(words, { cwd: home.home });
    expect(await elsewhere("daemon", "stop")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("1 of other projects or settings runs; --all ends them too."),
    });
    expect(await elsewhere("daemon", "restart", `${pids[1]}`)).toMatchObject({
      code: 1,
      stderr: `✗ Daemon ${pids[1]} was started in ${home.cwd}; restart it from there.\n`,
    });
  });
});
