import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  type Client,
  type CommandTarget,
  type ConnectOptions,
  connect,
  Detach,
  type Progress,
  type Question,
  type Target,
  type TaskState,
} from "../../src/client/index.ts";
import { openRuntime } from "../../src/runtime/runtime.ts";
import { serveStreams } from "../../src/serve.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { codeCache, executable, quickStart, waitFor } from "../helpers/meanwhile.ts";
import { openTraces } from "../helpers/place.ts";
import { casesOf } from "../helpers/rounds.ts";

/**
 * Our client and every kind of server: its own in each era, SDK v1's experimental tasks, one of 2024, and the
 * everything server.
 */

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const folders = [path.join(fixtures, "tasks/commands"), path.join(fixtures, "client/commands")];
const words = ["--no-bundled", ...folders.flatMap((folder) => ["--commands", folder])];
/** Who is `hasty` is given a plain handle after 0.3 s. */
const config = JSON.stringify({ hosts: { hasty: { limitSeconds: 0.4 } } });
const everything = path.resolve(
  import.meta.dirname,
  "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js",
);

interface Door {
  readonly child: ChildProcess;
  readonly url: string;
}

/** Starts a server over HTTP; it prints its address, or listens where it was told to. */
async function startDoor(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; url?: string } = {},
): Promise<Door> {
  const child = spawn(process.execPath, args, {
    cwd: options.cwd,
    env: { ...process.env, NODE_COMPILE_CACHE: codeCache, ...options.env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let printed = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const url = await waitFor(
    () =>
      options.url !== undefined && /listening/.test(printed)
        ? options.url
        : /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(printed)?.[0],
    () => `no address was printed: ${printed}`,
  );
  return { child, url };
}

async function stopDoor({ child }: Door): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, "close");
  child.kill("SIGKILL");
  await closed;
}

async function open(target: Target, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect(target, options);
  onTestFinished(() => client.close());
  return client;
}

/** Everything that a call tells while it runs. */
function watching() {
  const seen = { progress: [] as Progress[], tasks: [] as TaskState[], questions: [] as Question[] };
  const options = {
    onProgress: (progress: Progress) => void seen.progress.push(progress),
    onTask: (task: TaskState) => void seen.tasks.push(task),
    onInput: (question: Question) => {
      seen.questions.push(question);
      return { action: "accept" as const, content: { name: "Ada", interpretation: "snake" } };
    },
  };
  return { ...seen, options };
}

function expectRising(progress: readonly Progress[], atLeast = 2): void {
  const parts = progress.map(({ done, total = 1 }) => done / total);
  expect(parts.length).toBeGreaterThanOrEqual(atLeast);
  expect(parts).toEqual([...parts].sort((a, b) => a - b));
  expect(Math.max(...parts)).toBeLessThanOrEqual(1);
}

const dataOf = ({ structuredContent }: { structuredContent?: Readonly<Record<string, unknown>> }) =>
  structuredContent?.data;
const textOf = ({ content }: { content: readonly { readonly [key: string]: unknown }[] }) => String(content[0]?.text);

let shared: string;
let home: string;
const variable = "MEANWHILE_CLIENT_SCENARIO_TOKEN";
let ours: Door;
const overHttp = (): Target => ({ url: ours.url, tokenVariable: variable });
const overPipes = (folder: string): Target => ({
  command: process.execPath,
  args: [quickStart, executable, "serve", "--in-process", ...words],
  env: { MEANWHILE_HOME: folder, NODE_COMPILE_CACHE: codeCache },
  cwd: shared,
});

beforeAll(async () => {
  shared = mkdtempSync(path.join(tmpdir(), "meanwhile-client-"));
  home = path.join(shared, "home");
  writeFileSync(path.join(shared, "meanwhile.config.json"), config);
  ours = await startDoor([quickStart, executable, "serve", "--http", "--port", "0", "--allow-anonymous", ...words], {
    cwd: shared,
    env: { MEANWHILE_HOME: home },
  });
  process.env[variable] = readFileSync(path.join(home, "token"), "utf8").trim();
});

afterAll(async () => {
  delete process.env[variable];
  await stopDoor(ours);
  rmSync(shared, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});

describe.each([
  ["2026-07-28", "2026-07-28"],
  ["2025-11-25", "2025-11-25"],
  ["2025-06-18", "none"],
] as const)("our server over HTTP, spoken to in %s", (revision, tasks) => {
  test("gives a slow call's result, and progress that only rises", async () => {
    const client = await open(overHttp(), { revision });
    expect(client.server).toMatchObject({ name: "meanwhile", revision, tasks });
    const seen = watching();
    const result = await client.callTool("work_count", { to: 5, label: revision }, seen.options);
    expect(dataOf(result)).toEqual({ counted: 5, label: revision });
    expectRising(seen.progress);
    expect(seen.tasks.map(({ status }) => status)).toEqual(expect.arrayContaining(["working", "completed"]));
  });

  test("has its question answered in the middle of a task", async () => {
    const client = await open(overHttp(), { revision });
    const { file, release } = openTraces();
    release();
    const seen = watching();
    expect(dataOf(await client.callTool("ask_name", { file }, seen.options))).toEqual({ greeting: "Hello, Ada!" });
    expect(seen.questions).toMatchObject([
      { message: "What is your name?", schema: { required: ["name"] }, taskId: seen.tasks[0]?.taskId },
    ]);
  });

  test("has its question answered while the call is open, and asks again when the answer does not fit", async () => {
    const client = await open(overHttp(), { revision });
    const asked: string[] = [];
    const onInput = ({ message }: Question) => {
      asked.push(message);
      return { action: "accept" as const, content: { name: asked.length === 1 ? "A" : "Ada" } };
    };
    expect(dataOf(await client.callTool("inline_ask", { salutation: "Ahoy" }, { onInput }))).toEqual({
      greeting: "Ahoy, Ada!",
    });
    expect(asked).toHaveLength(2);
    expect(asked[1]).toMatch(/^What is your name\? \(.+\)$/);
  });

  test("says what it asks when nobody can answer, and its task waits for the answer", async () => {
    const client = await open(overHttp(), { revision });
    const { file, release } = openTraces();
    release();
    const refused: unknown = await client.callTool("ask_name", { file }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ name: "InputRequired", question: { message: "What is your name?" } });
    const { taskId } = refused as { taskId: string };
    const handle = (await open(overHttp(), { revision })).task(taskId);
    const { status, questions } = await handle.state();
    expect([status, questions?.map(({ message }) => message)]).toEqual(["input_required", ["What is your name?"]]);
    await handle.answer({ [questions?.[0]?.key ?? ""]: { action: "accept", content: { name: "Grace" } } });
    expect(dataOf(await handle.result())).toEqual({ greeting: "Hello, Grace!" });
  });

  test("is not to blame when the caller's own callbacks throw", async () => {
    const client = await open(overHttp(), { revision });
    const broken = new Error("the caller's own");
    const onInput = () => {
      throw broken;
    };
    const { file } = openTraces();
    await expect(client.callTool("ask_name", { file }, { onInput })).rejects.toBe(broken);
    await expect(client.callTool("inline_ask", { salutation: "Hm" }, { onInput })).rejects.toBe(broken);
    await expect(
      client.callTool("work_count", { to: 3, label: `broken ${revision}` }, { onProgress: onInput }),
    ).rejects.toBe(broken);
  });

  test("stops a task whose caller aborts, and the call rejects with the caller's reason", async () => {
    const client = await open(overHttp(), { revision });
    const { file, lines } = openTraces();
    const stop = new AbortController();
    const why = new Error("enough");
    const call = client.callTool("work_hold", { file }, { signal: stop.signal });
    call.catch(() => undefined);
    await waitFor(() => lines().includes("started"));
    stop.abort(why);
    await expect(call).rejects.toBe(why);
    await waitFor(() => lines().includes("stopped: Cancelled"));
  });

  test("stops a call that takes too long", async () => {
    const client = await open(overHttp(), { revision });
    const { file, lines } = openTraces();
    await expect(client.callTool("inline_wait", { file }, { timeoutMs: 250 })).rejects.toMatchObject({
      name: "TimedOut",
      message: "Timed out after 0.25 s.",
    });
    await waitFor(() => lines().includes("stopped: Cancelled"));
  });

  test("goes on without us when we detach, and another client gets the result by id", async () => {
    const client = await open(overHttp(), { revision });
    const { file, lines, release } = openTraces();
    const handle = await client.callTool("work_hold", { file }, { detach: true });
    const leave = new AbortController();
    const left = client
      .task(handle.taskId ?? "")
      .result({ signal: leave.signal, onTask: () => leave.abort(new Detach()) });
    await expect(left).rejects.toBeInstanceOf(Detach);
    await client.close();
    release();
    const other = await open(overHttp());
    expect(dataOf(await other.task(handle.taskId ?? "").result())).toEqual({ released: true });
    expect(lines()).toEqual(["started", "released"]);
  });

  test("says no in a result, and does not know every tool", async () => {
    const client = await open(overHttp(), { revision });
    const result = await client.callTool("work_fail");
    expect([result.isError, textOf(result)]).toEqual([true, expect.stringContaining("The tank is empty.")]);
    await expect(client.callTool("work_cuont")).rejects.toThrow(
      'The server has no tool "work_cuont"; did you mean work_count?',
    );
    await expect(client.task("no-such-task").state()).rejects.toThrow();
  });

  test("shows its tasks to a caller it knows", async () => {
    const client = await open(overHttp(), { revision });
    const handle = await client.callTool("work_count", { to: 1, label: `list ${revision}` }, { detach: true });
    await handle.result();
    const { tasks: listed } = await client.listTasks();
    expect(listed.find(({ taskId }) => taskId === handle.taskId)).toMatchObject({ status: "completed" });
    const stranger = await open({ url: ours.url }, { revision });
    await expect(stranger.listTasks()).rejects.toThrow("does not list tasks");
  });
});

describe("our server over stdio", () => {
  test.each(casesOf([undefined, "2025-11-25", "2025-06-18", "2024-11-05"], 0, 3))(
    "spoken to in %s: result, progress, question, cancel, in one process",
    async (revision) => {
      const client = await open(overPipes(temporaryFolder()), revision === undefined ? {} : { revision });
      expect(client.server.revision).toBe(revision ?? "2026-07-28");
      const seen = watching();
      expect(dataOf(await client.callTool("work_count", { to: 4 }, seen.options))).toMatchObject({ counted: 4 });
      expectRising(seen.progress);
      expect(dataOf(await client.callTool("inline_ask", { salutation: "Ahoy" }, seen.options))).toEqual({
        greeting: "Ahoy, Ada!",
      });
      const { file, lines } = openTraces();
      const stop = new AbortController();
      const call = client.callTool("inline_wait", { file }, { signal: stop.signal });
      call.catch(() => undefined);
      await waitFor(() => lines().includes("started"));
      stop.abort(new Error("enough"));
      await expect(call).rejects.toThrow("enough");
      await waitFor(() => lines().includes("stopped: Cancelled"));
    },
  );
});

describe("our server's plain handles", () => {
  const hasty = { revision: "2025-06-18", name: "hasty" };

  test("are followed to the result", async () => {
    const client = await open(overHttp(), hasty);
    const { file, lines, release } = openTraces();
    const seen = watching();
    const onTask = (task: TaskState) => {
      seen.options.onTask(task);
      if (task.status === "working") release();
    };
    expect(dataOf(await client.callTool("inline_wait", { file }, { ...seen.options, onTask }))).toEqual({
      released: true,
    });
    expect(seen.tasks.length).toBeGreaterThanOrEqual(2);
    expect(lines()).toEqual(["started"]);
  });

  test("are stopped with the server's own tool", async () => {
    const client = await open(overHttp(), hasty);
    const { file, lines } = openTraces();
    const stop = new AbortController();
    const call = client.callTool(
      "inline_wait",
      { file },
      { signal: stop.signal, onTask: () => stop.abort(new Error("enough")) },
    );
    await expect(call).rejects.toThrow("enough");
    await waitFor(() => lines().includes("stopped: Cancelled"));
  });

  test("of a job that somebody else stopped reject as cancelled", async () => {
    const client = await open(overHttp(), hasty);
    const { file } = openTraces();
    const other = await open(overHttp(), hasty);
    const onTask = ({ taskId, status }: TaskState) => void (status === "working" && other.task(taskId).cancel());
    await expect(client.callTool("inline_wait", { file }, { onTask })).rejects.toMatchObject({ name: "Cancelled" });
  });
});

test("follow-up tools with a prefix are found by it", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "meanwhile.config.json": JSON.stringify({ ...JSON.parse(config), toolPrefix: "acme" }),
  });
  const client = await open(
    { ...(overPipes(path.join(cwd, "home")) as CommandTarget), cwd },
    { revision: "2025-06-18", name: "hasty" },
  );
  const { file, lines } = openTraces();
  const handle = await client.callTool("acme_inline_wait", { file }, { detach: true });
  const again = client.task(handle.taskId ?? "");
  expect(await again.state()).toMatchObject({ taskId: handle.taskId, status: "working" });
  await again.cancel();
  await waitFor(() => lines().includes("stopped: Cancelled"));
});

describe("a question that only a person may answer", () => {
  test("is answered by whoever is there", async () => {
    const client = await open(overHttp());
    const onInput = ({ message }: Question) => {
      expect(message).toBe("Erase notes?");
      return { action: "accept" as const, content: { confirm: true } };
    };
    const result = await client.callTool("files_erase", { name: "notes" }, { onInput });
    expect(result.isError ?? false, textOf(result)).toBe(false);
    const refused = await client.callTool("files_erase", { name: "notes" }, { onInput: () => ({ action: "decline" }) });
    expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining("declined")]);
  });
});

test("over HTTP, a task is followed on although its server was killed, and started again without our session", async () => {
  const cwd = writeFiles(temporaryFolder(), { "meanwhile.config.json": config });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const first = await startDoor([quickStart, executable, "serve", "--http", "--port", "0", ...words], { cwd, env });
  onTestFinished(() => stopDoor(first));
  const variableOfTwo = `${variable}_2`;
  process.env[variableOfTwo] = readFileSync(path.join(cwd, "home/token"), "utf8").trim();
  onTestFinished(() => void delete process.env[variableOfTwo]);
  const client = await open({ url: first.url, tokenVariable: variableOfTwo }, { revision: "2025-11-25" });
  const { file, lines, release } = openTraces();
  const seen = watching();
  const call = client.callTool("inline_steady", { file }, seen.options);
  call.catch(() => undefined);
  await waitFor(() => lines().length === 1 && seen.tasks.length > 0);
  await stopDoor(first);
  release();
  const second = await startDoor(
    [quickStart, executable, "serve", "--http", "--port", new URL(first.url).port, ...words],
    { cwd, env },
  );
  onTestFinished(() => stopDoor(second));
  expect(dataOf(await call)).toEqual({ released: true });
  expect(lines()).toEqual(["started", "started"]);
});

// Without noticing the loss it would take the safety net's fifteen seconds.
test("over a socket, a task is followed on although the connection is lost", async () => {
  const folder = writeFiles(temporaryFolder(), { "meanwhile.config.json": config });
  const settings = await loadSettings({
    cwd: folder,
    env: { MEANWHILE_HOME: path.join(folder, "home") },
    flags: { bundled: false, commands: folders },
  });
  const runtime = await openRuntime(settings);
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined);
    void serveStreams(runtime, { input: socket, output: socket, write: (text) => socket.write(text) });
  });
  const address = path.join(folder, "s.sock");
  server.listen(address);
  await once(server, "listening");
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await runtime.close(0);
  });
  for (const revision of ["2026-07-28", "2025-11-25", "2025-06-18"]) {
    connections = 0;
    const startedAt = performance.now();
    const client = await open({ socket: address }, { revision });
    const { file, release } = openTraces();
    let isCut = false;
    const onTask = () => {
      if (isCut) return;
      isCut = true;
      for (const socket of sockets) socket.destroy();
      release();
    };
    expect(dataOf(await client.callTool("work_hold", { file }, { onTask })), revision).toEqual({ released: true });
    expect(connections, revision).toBe(2);
    expect(performance.now() - startedAt, revision).toBeLessThan(14_500);
    await client.close();
  }
});

describe.each(["stdio", "HTTP"] as const)("the experimental tasks server of SDK v1, over %s", (transport) => {
  const program = path.join(fixtures, "client/v1-tasks.ts");
  const start = async (): Promise<Target> => {
    if (transport === "stdio") return { command: process.execPath, args: [program] };
    const door = await startDoor([program, "http"]);
    onTestFinished(() => stopDoor(door));
    return { url: door.url };
  };

  test("gives results, failures and progress, asks, and stops", async () => {
    const target = await start();
    const client = await open(target);
    expect(client.server).toMatchObject({ name: "v1-tasks", revision: "2025-11-25", tasks: "2025-11-25" });

    const seen = watching();
    expect(textOf(await client.callTool("count", { to: 5 }, { ...seen.options, asTask: true, ttlMs: 30_000 }))).toBe(
      "counted to 5",
    );
    expectRising(seen.progress);
    expect(seen.tasks[0]).toMatchObject({ status: "working", ttlMs: 30_000, pollIntervalMs: 100 });
    expect(textOf(await client.callTool("count", { to: 1 }))).toBe("counted to 1");

    const failed = await client.callTool("fail");
    expect([failed.isError, textOf(failed)]).toEqual([true, "The tank is empty."]);
    expect(textOf(await client.callTool("greet", {}, seen.options))).toBe("Hello, Ada!");
    await expect(client.callTool("greet")).rejects.toMatchObject({
      name: "InputRequired",
      question: { message: "What is your name?" },
    });

    const handle = await client.callTool("count", { to: 100 }, { detach: true });
    await handle.cancel();
    expect((await handle.state()).status).toBe("cancelled");
    await expect(handle.result()).rejects.toMatchObject({ name: "Cancelled" });

    const { file, lines } = openTraces();
    const stop = new AbortController();
    const call = client.callTool("wait", { file }, { signal: stop.signal });
    call.catch(() => undefined);
    await waitFor(() => lines().includes("started"));
    stop.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    await waitFor(() => lines().includes("stopped"));
  });
});

test("a plain server of 2024-11-05 gives results and progress, and stops", async () => {
  const client = await open({ command: process.execPath, args: [path.join(fixtures, "client/plain-2024.ts")] });
  expect(client.server).toEqual({
    name: "plain-2024",
    version: "1.0.0",
    instructions: undefined,
    revision: "2024-11-05",
    tasks: "none",
  });
  const seen = watching();
  expect(textOf(await client.callTool("count", { to: 4 }, seen.options))).toBe("counted to 4");
  expect(seen.progress.map(({ done, total }) => [done, total])).toEqual([1, 2, 3, 4].map((done) => [done, 4]));
  expect((await client.callTool("count", { to: 1 }, { detach: true })).taskId).toBeUndefined();
  await expect(client.callTool("cuont")).rejects.toThrow("did you mean count?");
  await expect(client.task("t1").state()).rejects.toThrow("This server has no tasks");
  await expect(client.listTasks()).rejects.toThrow("does not list tasks");

  const { file, lines } = openTraces();
  await expect(client.callTool("wait", { file }, { timeoutMs: 200 })).rejects.toMatchObject({ name: "TimedOut" });
  await waitFor(() => lines().includes("stopped"));
});

describe("the everything server", () => {
  test.each(["stdio", "HTTP"] as const)("gives results and progress over %s", async (transport) => {
    const client = await open(
      transport === "stdio" ? { command: process.execPath, args: [everything] } : await startEverything(),
    );
    expect(client.server).toMatchObject({ revision: "2025-11-25", tasks: "2025-11-25" });
    expect(textOf(await client.callTool("echo", { message: "hi" }))).toBe("Echo: hi");
    const seen = watching();
    expect(
      textOf(await client.callTool("trigger-long-running-operation", { duration: 0.4, steps: 4 }, seen.options)),
    ).toContain("completed");
    expect(seen.progress.map(({ done }) => done)).toEqual([1, 2, 3, 4]);
  });

  test("asks in the middle of a task, and gives its result", async () => {
    const client = await open(await startEverything());
    const seen = watching();
    const result = await client.callTool("simulate-research-query", { topic: "python", ambiguous: true }, seen.options);
    expect(textOf(result)).toContain("Research Report: python (snake)");
    expect(seen.questions).toHaveLength(1);
    expect(new Set(seen.tasks.map(({ status }) => status))).toEqual(
      new Set(["working", "input_required", "completed"]),
    );
  });
});

async function startEverything(): Promise<Target> {
  const port = await freePort();
  const door = await startDoor([everything, "streamableHttp"], {
    env: { PORT: String(port) },
    url: `http://127.0.0.1:${port}/mcp`,
  });
  onTestFinished(() => stopDoor(door));
  return { url: door.url };
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

test("a server that is slow to start hears both ways to begin, and is then spoken to in one", async () => {
  const { command, args, env, cwd } = overPipes(path.join(temporaryFolder(), "home")) as CommandTarget & {
    args: string[];
  };
  // Longer than the client waits for an answer before it tries the other way.
  const slowly = {
    command: "sh",
    args: ["-c", 'sleep 3; exec "$0" "$@"', command, ...args],
    env: env ?? {},
    cwd: cwd ?? "",
  };
  const client = await connect(slowly);
  onTestFinished(() => client.close());
  const result = await client.callTool("work_count", { to: 2 }, { asTask: true, timeoutMs: 50_000 });
  expect(result.isError ?? false, JSON.stringify(result)).toBe(false);
  expect(dataOf(result)).toMatchObject({ counted: 2 });
});
