import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { DaemonHome, dataOf, isRunning, kill } from "../helpers/daemon.ts";
import { runMeanwhile, startGuardedHttp, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";
import {
  type Message,
  overHttp,
  overPipes,
  type Result,
  resultOf,
  WireClient,
  type WireOptions,
} from "../helpers/wire.ts";

/**
 * A process that is told to stop loses nothing: who waits is told where its call went, and work that is safe goes on in
 * the next one.
 */

const folder = path.resolve(import.meta.dirname, "../fixtures/stop/commands");
const own = ["--no-bundled", "--commands", folder];
const plain: WireOptions = { revision: "2025-11-25" };
const modern: WireOptions = {
  revision: "2026-07-28",
  capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } },
};
/** Long enough for what is let go to end, on a busy machine too; what is not let go uses all of it. */
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
  connect(options: WireOptions): Promise<WireClient>;
  /** Resolves when it has heard it; `ended`, when its process is gone. */
  stop(): Promise<{ readonly ended: Promise<void> }>;
  next(): Promise<void>;
}

async function startCall(client: WireClient, tool: string): Promise<Flying> {
  const traces = gate();
  const { answer } = client.startCall(tool, traces.input);
  await traces.seen("started");
  return { tool, client, traces, answer };
}

/** The task behind an answer, as it is when it has ended, whichever way its client asks. */
async function endOf(client: WireClient, taskId: string): Promise<{ ending: "completed" | "failed"; text: string }> {
  return await waitFor(async () => {
    const result = await client.call("task_result", { job_id: taskId });
    if (kindOf(result) === "handle") return undefined;
    return {
      ending: result.isError === true ? ("failed" as const) : ("completed" as const),
      text: JSON.stringify(result),
    };
  });
}

/** Twenty calls, safe and not, plain and with tasks; half of what must not be run twice ends in its grace. */
async function stopWithTwenty(stage: Stage): Promise<void> {
  const clients = await Promise.all([plain, modern, plain, modern].map((options) => stage.connect(options)));
  const tools = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? "stop_once" : (safe[at % 3] as string)));
  // Neighbours are of different kinds, and every client has some of each.
  const flying = await Promise.all(tools.map((tool, at) => startCall(clients[(at >> 1) % 4] as WireClient, tool)));
  const unsafe = flying.filter(({ tool }) => tool === "stop_once");
  const [inTime, late] = [unsafe.slice(0, 5), unsafe.slice(5)];

  const { ended } = await stage.stop();
  const told = performance.now();
  const answers = await Promise.all(
    flying.map(async ({ answer }) => ({ result: resultOf(await answer), ms: performance.now() - told })),
  );
  expect(Math.max(...answers.map(({ ms }) => ms)), "the longest silence").toBeLessThan(graceSeconds * 1000);
  for (const [at, { client }] of flying.entries()) {
    const isModern = clients.indexOf(client) % 2 === 1;
    expect(kindOf(answers[at]?.result as Result), `call ${at}`).toBe(isModern ? "task of 2026" : "handle");
  }
  for (const { traces } of unsafe) expect(traces.lines(), "goes on").toEqual(["started"]);
  for (const { traces } of [...inTime, ...flying.filter(({ tool }) => tool !== "stop_once")]) traces.open();
  await ended;

  await stage.next();
  const back = await stage.connect(plain);
  const ends = await Promise.all(answers.map(({ result }) => endOf(back, taskIdOf(result))));
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

test("twenty calls in flight, longer than the grace: everybody is answered before it is over, nothing is lost, and safe work is done once", async () => {
  // Both wait for the whole grace, so they do it at the same time.
  await Promise.all([byDaemonStop(), bySignal()]);
});

async function byDaemonStop(): Promise<void> {
  const home = new DaemonHome({ config: { graceSeconds } });
  await stopWithTwenty({
    connect: (options) => home.connect({ ...options, words: own }),
    async stop() {
      const stopped = runMeanwhile([...own, "daemon", "stop"], { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } });
      await waitFor(() => home.daemons().length === 0);
      const ended = stopped.then(({ code, stderr }) => {
        expect({ code, stderr }).toEqual({
          code: 0,
          stderr: expect.stringMatching(/Daemon \d+ has ended; 10 tasks wait for the next daemon\n$/),
        });
      });
      return { ended };
    },
    next: async () => undefined,
  });
}

/** SIGTERM to a server over HTTP. */
async function bySignal(): Promise<void> {
  const home = new DaemonHome({ config: { graceSeconds } });
  const start = () => startGuardedHttp(own, { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } });
  let server = await start();
  await stopWithTwenty({
    async connect(options) {
      const client = new WireClient(overHttp(server.url, { token: server.token() }), options);
      onTestFinished(() => client.close());
      return await client.begin();
    },
    async stop() {
      server.child.kill("SIGTERM");
      await waitFor(() => server.stderr().includes("Stopping."));
      return { ended: server.exited.then((code) => expect(code).toBe(0)) };
    },
    async next() {
      server = await start();
    },
  });
}

/** A home for a few daemons, and what is typed there. */
function openHome(config: object = {}) {
  const home = new DaemonHome({ config: { graceSeconds: 60, ...config } });
  const env = { MEANWHILE_HOME: home.home };
  return {
    home,
    connect: (options: WireOptions = plain) => home.connect({ ...options, words: own }),
    type: (...words: string[]) => runMeanwhile(words, { cwd: home.cwd, env }),
    start: (...words: string[]) => startMeanwhile(words, { cwd: home.cwd, env }),
  };
}

test("daemon restart: the next daemon runs what is safe while the old one still ends what is not", async () => {
  const { home, connect, type } = openHome();
  const client = await connect();
  const before = home.daemon();
  const [once, read] = [await startCall(client, "stop_once"), await startCall(client, "stop_read")];
  const restarted = type(...own, "daemon", "restart");
  const [first, second] = await Promise.all([once, read].map(async ({ answer }) => taskIdOf(resultOf(await answer))));
  read.traces.open();
  const { pid } = await home.nextDaemon(before);
  await read.traces.seen("ended");
  expect(isRunning(before.pid)).toBe(true);
  expect(dataOf(await client.call("task_result", { job_id: second }))).toEqual({ passed: read.traces.input.file, pid });
  once.traces.open();
  expect(await restarted).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(new RegExp(`Daemon ${pid} serves .*\\n[^]*Daemon ${before.pid} has ended\\n$`)),
  });
  expect(dataOf(await client.call("task_result", { job_id: first }))).toEqual({
    passed: once.traces.input.file,
    pid: before.pid,
  });
  expect([once.traces.starts(), read.traces.starts()]).toEqual([1, 2]);
});

test("SIGTERM to a server in the client's own process: answered at once, and it stays for what must not be run twice", async () => {
  const { start, type } = openHome();
  const server = start("serve", "--in-process", ...own);
  const client = await new WireClient(overPipes(server.child), plain).begin();
  onTestFinished(() => client.close());
  const [once, read] = [await startCall(client, "stop_once"), await startCall(client, "stop_read")];
  server.child.kill("SIGTERM");
  const [first, second] = await Promise.all([once, read].map(async ({ answer }) => taskIdOf(resultOf(await answer))));
  const refused = await client.call("stop_read", read.traces.input);
  expect(refused).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/^The server is shutting down;/) }],
  });
  once.traces.open();
  expect(await server.exited).toBe(0);
  expect((await statuses(type)).sort()).toEqual([`${first} completed`, `${second} queued`].sort());
});

async function statuses(type: (...words: string[]) => ReturnType<typeof runMeanwhile>): Promise<string[]> {
  const { stdout } = await type(...own, "tasks", "list", "--json");
  return (JSON.parse(stdout) as { tasks: { taskId: string; status: string }[] }).tasks.map(
    ({ taskId, status }) => `${taskId} ${status}`,
  );
}

test("a second SIGTERM ends a daemon at once", async () => {
  const { home, connect } = openHome();
  const client = await connect();
  const { pid } = home.daemon();
  const { answer, traces } = await startCall(client, "stop_once");
  process.kill(pid, "SIGTERM");
  expect(kindOf(resultOf(await answer))).toBe("handle");
  // What comes with the end of a session is no second word.
  process.kill(pid, "SIGHUP");
  expect(await client.call("task_list")).toMatchObject({ structuredContent: { success: true } });
  expect(isRunning(pid)).toBe(true);
  process.kill(pid, "SIGTERM");
  await waitFor(() => !isRunning(pid));
  expect(traces.lines()).toEqual(["started"]);
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
  expect(home.daemons()).toEqual([]);
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
      const before = home.daemon();
      expect((await type(...own, "daemon", "restart")).code).toBe(0);
      expect(kindOf(resultOf(await asked))).toBe("handle");
      expect(home.daemon().pid).not.toBe(before.pid);
      await traces.seen("started", starts);
    }
    traces.open();
    expect(dataOf(resultOf(await waits))).toEqual({ passed: traces.input.file, pid: home.daemon().pid });
  });

  test("over HTTP has its result where the task ends here, and else a sentence", async () => {
    const { home } = openHome();
    const server = await startGuardedHttp(own, { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } });
    const client = await new WireClient(overHttp(server.url, { token: server.token() }), plain).begin();
    const [once, again] = [gate(), gate()];
    const ids = [
      taskIdOf(await client.call("stop_once", once.input, { task })),
      taskIdOf(await client.call("stop_again", again.input, { task })),
    ];
    for (const { seen } of [once, again]) await seen("started");
    const [first, second] = ids.map((taskId) => client.request("tasks/result", { taskId }));
    server.child.kill("SIGTERM");
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
  kill(home.daemon().pid);
  for (const { answer } of calls) expect((await answer).error?.message).toContain("its outcome is not known");
  await client.call("task_list");
  await traces.seen("started", 2);
  expect(await running()).toEqual({ calls: 0, tasks: 1 });
});

describe("a daemon is found whatever it was started with", () => {
  test("by stop, restart and status without its flags; another one's is left alone", async () => {
    const { home, connect, type } = openHome();
    const client = await connect();
    const { pid } = home.daemon();
    const { stdout } = await type("daemon", "status");
    expect(stdout).toContain(`Daemon ${pid}`);
    expect(stdout).toContain("this project's");
    expect(stdout).toContain(`started   ${home.cwd}  --commands ${folder} --no-bundled\n`);
    expect(await type("daemon", "restart")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`serves ${folder}\n`),
    });
    const next = await home.nextDaemon({ key: "", socket: "", pid });
    expect(await type("daemon", "stop")).toMatchObject({ code: 0, stderr: `✓ Daemon ${next.pid} has ended\n` });
    expect(home.daemons()).toEqual([]);
    // The client has not noticed.
    expect(await client.call("task_list")).toMatchObject({ structuredContent: { success: true } });
  });

  test("and where several could be meant, none is until one is named", async () => {
    const { home, connect, type } = openHome();
    await Promise.all([connect(), home.connect({ words: own, env: { MEANWHILE_LOG: "debug" } })]);
    const pids = home.daemons().map(({ pid }) => pid);
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
    expect(home.daemons().map(({ pid }) => pid)).toEqual([pids[1]]);
    // In another folder it is not this project's.
    const elsewhere = await runMeanwhile(["daemon", "stop"], { cwd: home.home, env: { MEANWHILE_HOME: home.home } });
    expect(elsewhere).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("1 of other projects or settings runs; --all ends them too."),
    });
    const named = await runMeanwhile(["daemon", "restart", `${pids[1]}`], {
      cwd: home.home,
      env: { MEANWHILE_HOME: home.home },
    });
    expect(named).toMatchObject({
      code: 1,
      stderr: `✗ Daemon ${pids[1]} was started in ${home.cwd}; restart it from there.\n`,
    });
  });
});
