/** An app with `createServer` and `meanwhile worker` that share a project. */
import path from "node:path";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { createServer } from "../../src/embed/create-server.ts";
import { durable } from "../../src/embed/durable.ts";
import type { ServerOptions } from "../../src/embed/server-options.ts";
import { startCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { overStreams, takesTasks, WireClient } from "../helpers/wire.ts";

const files = {
  "meanwhile.config.json": JSON.stringify({ project: "reports" }),
  "commands/report/build.ts": `import { defineCommand } from "meanwhile";
    export default defineCommand({ summary: "Says whose home it runs in", long: true, effects: "read",
      run: (_, task) => ({ home: task.home }) });`,
};

function makePlace() {
  const folder = writeFiles(temporaryFolder(), files);
  return { folder, commands: path.join(folder, "commands"), store: path.join(folder, "data", "tasks.db") };
}

function open(options: Partial<ServerOptions>) {
  const server = createServer({ name: "app", version: "1.0.0", commands: [], graceSeconds: 0, ...options });
  onTestFinished(() => server.close());
  return server;
}

/** A client of 2026-07-28 that takes tasks. */
function connect(server: ReturnType<typeof createServer>): WireClient {
  const [input, output] = [new PassThrough(), new PassThrough()];
  server.stdio({ input, output }).catch(() => undefined);
  const link = overStreams(input, output, async () => void input.end());
  return new WireClient(link, { revision: "2026-07-28", capabilities: takesTasks });
}

const homeIn = (result: object) =>
  (result as { readonly structuredContent: { readonly data: { readonly home: string } } }).structuredContent.data.home;

test("an app that leaves its work to others has its calls and tasks run by `meanwhile worker` of the same project", async () => {
  const { folder, commands, store } = makePlace();
  const app = open({ commands, store, project: "reports", work: false });
  const worker = startCli(["worker"], { cwd: folder, env: { MEANWHILE_STORE: store } });
  await worker.says(/runs tasks of 1 command,/);
  await worker.says(/Project reports/);
  expect(homeIn(await app.call("report_build"))).toBe(worker.home);
  const client = connect(app);
  const { taskId = "" } = await client.call("report_build");
  expect(homeIn((await app.tasks.wait(taskId)).result ?? {})).toBe(worker.home);
});

test("a name alone does not join two projects, and one project joins servers of two names", async () => {
  const { commands, store } = makePlace();
  const client = connect(open({ commands, store, name: "app", project: "reports" }));
  const { taskId = "" } = await client.call("report_build");
  const others = [
    open({ commands, store, name: "app", project: "other" }),
    open({ commands, store, name: "app" }),
    open({ commands, store, name: "another app", project: "reports" }),
  ];
  expect(await Promise.all(others.map(async (other) => (await other.tasks.get(taskId))?.taskId))).toEqual([
    undefined,
    undefined,
    taskId,
  ]);
});

test.each<[title: string, wrong: Partial<ServerOptions>, sentence: string]>([
  [
    "PostgreSQL without a project",
    { store: "postgres://user:password@host/database" },
    "createServer: `project` is missing, and a PostgreSQL store needs it: servers and workers with the same `project` share their tasks",
  ],
  [
    "a project that is no name",
    { project: "my project" },
    "createServer: `project` must be up to 64 letters, digits and . _ -",
  ],
  ["no work on a store in memory", { work: false }, "createServer: `work: false` leaves all work to workers"],
  [
    "work that is no boolean",
    { work: "no" as unknown as boolean, store: "tasks.db" },
    "createServer: `work` must be true or false",
  ],
  ["a concurrency of 0", { concurrency: 0 }, "createServer: `concurrency` must be a whole number from 1 to 1000"],
  [
    "a time to live of 8 days",
    { taskTtlMs: 8 * 86_400_000 },
    "createServer: `taskTtlMs` must be a whole number of milliseconds from 1 to 604800000",
  ],
])("is refused in one sentence: %s", (_title, wrong, sentence) => {
  expect(() => open(wrong)).toThrow(sentence);
});

test("durable() needs a project for PostgreSQL too, and does not take `work`", () => {
  const server = { connect: async () => undefined };
  const store = "postgres://user:password@host/database";
  expect(() => durable(server, { store })).toThrow("durable: `project` is missing, and a PostgreSQL store needs it");
  expect(() => durable(server, { work: false } as object)).toThrow("durable: `work` is not an option");
});

/** A command whose runs end when the test says so. */
function makeGated() {
  const begun: (() => void)[] = [];
  const command = defineCommand({
    name: "gate",
    summary: "Waits",
    long: true,
    dedupe: false,
    run: () => new Promise<object>((resolve) => begun.push(() => resolve({}))),
  });
  return { command, begun };
}

test("`concurrency` bounds the tasks that run at a time", async () => {
  const { command, begun } = makeGated();
  const app = open({ commands: [command], concurrency: 1 });
  const client = connect(app);
  const ids = [(await client.call("gate")).taskId, (await client.call("gate")).taskId];
  await waitFor(() => begun.length === 1);
  const statuses = async () => (await app.tasks.list()).tasks.map(({ status }) => status).sort();
  expect(await statuses()).toEqual(["queued", "working"]);
  begun[0]?.();
  await waitFor(() => begun.length === 2);
  begun[1]?.();
  for (const taskId of ids) await app.tasks.wait(taskId ?? "");
});

test("`taskTtlMs` is how long a result is kept whose client does not say", async () => {
  const { command, begun } = makeGated();
  const app = open({ commands: [command], taskTtlMs: 90_000 });
  const { result } = await connect(app).request("tools/call", { name: "gate", arguments: {} });
  expect(result).toMatchObject({ resultType: "task", ttlMs: 90_000 });
  await waitFor(() => begun.length === 1);
  begun[0]?.();
  await app.tasks.wait(result?.taskId);
});
