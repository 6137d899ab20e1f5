import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { killNine, type Started, startGuardedHttp, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { adminOf, newSchema, serverPort, urlOf } from "../helpers/postgres.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { type Fields, ModernClient, SessionClient, takesTasks } from "../helpers/wire.ts";

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const folders = ["deferral", "questions", "daemon"].map((name) => path.join(fixtures, name, "commands"));
const words = ["--no-bundled", ...folders.flatMap((folder) => ["--commands", folder])];
const elsewhere = pathToFileURL(path.join(fixtures, "nodes/elsewhere.mjs")).href;
const admin = adminOf(serverPort);

/** A machine of its own: with a name that no other has, and at times a clock that is wrong. */
interface Machine {
  readonly host: string;
  readonly shiftMs?: number;
}

/**
 * Nodes of one project that share a database. Each has its own home and folder; the homes of the doors have the same
 * token, and so the same local user. Workers run tasks for every caller: their homes have tokens of their own.
 */
async function openNodes() {
  const schema = newSchema();
  const store = urlOf(await serverPort(), schema);
  const token = `${randomBytes(32).toString("base64url")}\n`;
  const onOwn = ({ host, shiftMs = 0 }: Machine, files: Record<string, string> = {}) => ({
    cwd: writeFiles(temporaryFolder(), { "meanwhile.config.json": JSON.stringify({ project: "many-nodes" }) }),
    env: {
      MEANWHILE_STORE: store,
      MEANWHILE_HOME: writeFiles(temporaryFolder(), files),
      NODE_OPTIONS: `--import=${elsewhere}`,
      ELSEWHERE_HOST: host,
      ELSEWHERE_SHIFT_MS: String(shiftMs),
    },
  });
  return {
    schema,
    /** A door, as the local user sees it there; it runs nothing. */
    async door(machine: Machine): Promise<ModernClient & { readonly older: () => Promise<SessionClient> }> {
      const { url } = await startGuardedHttp(["--no-work", ...words], onOwn(machine, { token }));
      const headers = { authorization: `Bearer ${token.trim()}` };
      const capabilities = { ...takesTasks, elicitation: { form: {} } };
      // Clients of 2025 say how long a result is to be kept.
      const older = () => SessionClient.begin(url, { headers, capabilities: { tasks: {} } });
      return Object.assign(new ModernClient(url, { headers, capabilities }), { older });
    },
    async worker(machine: Machine, concurrency = 16): Promise<Started> {
      const started = startMeanwhile(["worker", "--concurrency", String(concurrency), ...words], onOwn(machine));
      await waitFor(
        () => started.stderr().includes("runs tasks of"),
        () => `the worker did not begin: ${started.stderr()}`,
      );
      return started;
    },
  };
}

async function get(door: ModernClient, taskId: string): Promise<Fields> {
  const { result, error } = await door.request("tasks/get", { taskId });
  if (result === undefined) throw new Error(`tasks/get was answered with ${JSON.stringify(error)}`);
  return result;
}

/** A task of one of the fixtures, with what it leaves behind. */
async function begin(door: ModernClient, tool: string) {
  const traces = gate();
  return { ...traces, taskId: taskIdOf(await door.call(tool, traces.input)) };
}

const counted = (file: string, line: string) =>
  existsSync(file) ? readFileSync(file, "utf8").split(line).length - 1 : 0;

const timeout = 300_000;
const guardMs = 120_000;

describe("nodes of one project, on one database", () => {
  test("a node that is killed with 50 tasks, clocks ten minutes apart: what is safe runs again, the rest is said to be unknown, what others run goes on, and nothing expires early", {
    timeout,
  }, async () => {
    const nodes = await openNodes();
    const door = await nodes.door({ host: "door", shiftMs: 300_000 });
    const doomed = await nodes.worker({ host: "doomed", shiftMs: -300_000 }, 60);
    const tasks = await Promise.all(
      Array.from({ length: 50 }, (_, at) => begin(door, at % 2 === 0 ? "job_safe" : "work_long")),
    );
    await Promise.all(tasks.map((task) => task.seen("started")));
    const untilOpened = gate();
    untilOpened.open();
    // Those that begin from now on run elsewhere, by clocks that are wrong in either direction.
    const others = [
      await nodes.worker({ host: "ahead", shiftMs: 300_000 }, 60),
      await nodes.worker({ host: "behind", shiftMs: -300_000 }, 60),
    ];
    const older = await door.older();
    const brief = taskIdOf(await older.call("job_safe", untilOpened.input, { task: { ttl: 240_000 } }));
    await killNine(doomed);
    const untouched = await Promise.all(Array.from({ length: 6 }, () => begin(door, "job_safe")));
    await Promise.all(untouched.map((task) => task.seen("started")));
    const [safe, unsafe] = [0, 1].map((rest) => tasks.filter((_, at) => at % 2 === rest));
    const isOver = async () => {
      const states = await Promise.all(unsafe?.map(({ taskId }) => get(door, taskId)) ?? []);
      return (
        states.every(({ status }) => status === "failed") &&
        safe?.every(({ input }) => counted(input.file, "started") === 2)
      );
    };
    await waitFor(
      isOver,
      () => `not all of them have gone on: ${others.map((other) => other.stderr()).join("\n")}`,
      guardMs,
    );
    for (const { taskId } of unsafe ?? [])
      expect(JSON.stringify(await get(door, taskId))).toMatch(/interrupted.*outcome.*unknown|unknown.*outcome/i);
    for (const task of [...(safe ?? []), ...untouched]) task.open();
    for (const { taskId } of [...(safe ?? []), ...untouched])
      await waitFor(async () => (await get(door, taskId)).status === "completed");
    expect(safe?.map(({ input }) => counted(input.file, "ended"))).toEqual(safe?.map(() => 1));
    expect(unsafe?.map(({ input }) => counted(input.file, "started"))).toEqual(unsafe?.map(() => 1));
    // Four minutes are not over, though some clocks are five ahead.
    expect((await get(door, brief)).status).toBe("completed");
    // Their leases held, whatever the clocks of those who looked at them.
    expect(untouched.map(({ input }) => counted(input.file, "started"))).toEqual(untouched.map(() => 1));
  });

  test("made on one node, polled on another, answered on a third and cancelled on a fourth", { timeout }, async () => {
    const nodes = await openNodes();
    const [a, b, c, d] = await Promise.all(["a", "b", "c", "d"].map((host) => nodes.door({ host })));
    if (a === undefined || b === undefined || c === undefined || d === undefined) throw new Error("There are four.");
    await Promise.all([nodes.worker({ host: "w1" }), nodes.worker({ host: "w2" })]);
    const asking = await begin(a, "ask_name");
    const asked = await waitFor(async () => {
      const task = await get(b, asking.taskId);
      return task.status === "input_required" && task;
    });
    const [key] = Object.keys(asked.inputRequests);
    const answer = { action: "accept", content: { name: "Ada" } };
    await c.request("tasks/update", { taskId: asking.taskId, inputResponses: { [key as string]: answer } });
    const completed = await waitFor(async () => {
      const task = await get(d, asking.taskId);
      return task.status === "completed" && task;
    });
    expect(JSON.stringify(completed)).toContain("Hello, Ada!");
    expect(asking.starts()).toBe(1);
    const endless = await begin(a, "work_long");
    await endless.seen("started");
    expect((await get(b, endless.taskId)).status).toBe("working");
    await d.request("tasks/cancel", { taskId: endless.taskId });
    await endless.seen("stopped");
    expect((await get(b, endless.taskId)).status).toBe("cancelled");
    expect((await get(c, endless.taskId)).status).toBe("cancelled");
  });

  test("a queue that is emptied while tasks wait: every one of them is run, and once", { timeout }, async () => {
    const nodes = await openNodes();
    const door = await nodes.door({ host: "door" });
    await nodes.worker({ host: "worker" }, 1);
    const first = await begin(door, "job_safe");
    await first.seen("started");
    const waiting = await Promise.all(Array.from({ length: 5 }, () => begin(door, "job_safe")));
    const client = await admin();
    const { rows } = await client.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = $1 and tablename !~ 'migration|version'`,
      [`${nodes.schema}_queue`],
    );
    expect(rows.length).toBeGreaterThan(0);
    const empty = `truncate ${rows.map(({ name }) => name).join(", ")} cascade`;
    // Where those who use it at this moment and this wait for each other, the server ends one of them.
    const isDeadlock = (error: { code?: string }) => error.code === "40P01";
    await waitFor(() =>
      client.query(empty).catch((error) => {
        if (!isDeadlock(error)) throw error;
        return undefined;
      }),
    );
    for (const task of [first, ...waiting]) task.open();
    for (const task of [first, ...waiting]) await task.seen("ended");
    await waitFor(async () => (await get(door, first.taskId)).status === "completed");
    expect([first, ...waiting].map((task) => task.starts())).toEqual([1, 1, 1, 1, 1, 1]);
  });
});
