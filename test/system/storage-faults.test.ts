import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { PassThrough } from "node:stream";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { openLog } from "../../src/log.ts";
import { readToken } from "../../src/runtime/home-token.ts";
import { openRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import { serveRuntimeOverHttp, serveStreams } from "../../src/serve.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { DaemonHome, dataOf, ownCommands } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { type Link, type Message, overHttp, overPipes, overStreams, WireClient } from "../helpers/wire.ts";

/** What clients hear when the database of tasks cannot be used: what happened and who can mend it, and never a path. */

const takesTasks = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const someTask = "0b7e8f0a-0000-4000-8000-000000000000";

const files = {
  "work/fast.ts": `import { defineCommand } from "meanwhile";
    export default defineCommand({ summary: "Answer at once", run: () => ({ fast: true }) });`,
  "work/asking.ts": `import { defineCommand } from "meanwhile";
    import { z } from "zod";
    export default defineCommand({ summary: "Ask", run: async (_, task) => ({ got: await task.ask("Which?", z.object({ a: z.string() })) }) });`,
};

interface Fault {
  readonly sentence: string;
  /** Before the server has opened it, or while it runs. */
  readonly when: "before" | "running";
  readonly harm: (file: string) => void;
}

const faults: Record<string, Fault> = {
  "written by a newer Meanwhile": {
    sentence:
      "The task database was written by a newer Meanwhile than this server's; whoever runs the server has to update it.",
    when: "before",
    harm(file) {
      const db = new Database(file);
      db.pragma("user_version = 99");
      db.close();
    },
  },
  "not a database": {
    sentence: "The task database is damaged; whoever runs the server has to restore it from a backup, or move it away.",
    when: "before",
    harm: (file) => writeFileSync(file, "This is a shopping list, and quite a long one.\n".repeat(100)),
  },
  "another program's": {
    sentence:
      "The task database's file belongs to another program; whoever runs the server has to point MEANWHILE_STORE at another one.",
    when: "before",
    harm(file) {
      const db = new Database(file);
      db.exec("create table tasks (title text)");
      db.close();
    },
  },
  "not to be opened": {
    sentence: "The task database cannot be opened; whoever runs the server finds the reason in its log.",
    when: "before",
    harm: (file) => mkdirSync(file),
  },
  "deleted while the server runs": {
    sentence:
      "The task database was deleted while the server ran; whoever runs the server has to put it back, or restart the server.",
    when: "running",
    harm: (file) => rmSync(file),
  },
};

interface Served {
  readonly runtime: Runtime;
  readonly folder: string;
  readonly file: string;
  readonly log: () => string;
}

/** A server in this process, with a home of its own. */
async function open(harmBefore?: (file: string) => void): Promise<Served> {
  const folder = temporaryFolder();
  const cwd = path.join(folder, "project");
  const commands = writeFiles(path.join(cwd, "commands"), files);
  const home = path.join(folder, "home");
  mkdirSync(home, { mode: 0o700 });
  const file = path.join(home, "tasks.db");
  harmBefore?.(file);
  const settings = await loadSettings({
    cwd,
    env: { ...process.env, MEANWHILE_HOME: home },
    flags: { commands: [commands], bundled: false, port: 0 },
  });
  let written = "";
  const log = openLog({ level: "warn", isTerminal: false, write: (text) => (written += text) });
  const runtime = await openRuntime(settings, { log });
  onTestFinished(async () => void (await runtime.close(0)));
  return { runtime, folder, file, log: () => written };
}

function overPipe(runtime: Runtime): Link {
  const toServer = new PassThrough();
  const toClient = new PassThrough();
  const served = serveStreams(runtime, { input: toServer, output: toClient, write: (text) => toClient.write(text) });
  return overStreams(toServer, toClient, async () => {
    toServer.end();
    await served;
  });
}

/** A client of each generation at each door. */
async function clientsOf(
  runtime: Runtime,
): Promise<Record<string, { readonly revision: string; readonly client: WireClient }>> {
  const door = await serveRuntimeOverHttp(runtime, temporaryFolder());
  onTestFinished(() => door.close());
  const token = readToken(runtime.settings.home);
  const clients: Record<string, { readonly revision: string; readonly client: WireClient }> = {};
  for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"])
    for (const [name, link] of [
      ["a pipe", overPipe(runtime)] as const,
      ["HTTP", overHttp(door.url, { token })] as const,
    ]) {
      const capabilities = revision === "2026-07-28" ? takesTasks : {};
      const client = await new WireClient(link, { revision, capabilities }).begin();
      onTestFinished(() => client.close());
      clients[`${revision} over ${name}`] = { revision, client };
    }
  return clients;
}

/** Everything that cannot be answered without the database. */
function needy(client: WireClient, revision: string): Record<string, Promise<Message>> {
  const call = (name: string, input: object, more: object = {}) =>
    client.request("tools/call", { name, arguments: input, ...more });
  const everywhere = {
    "tools/call with a key": call("work_fast", {}, { _meta: { "meanwhile/idempotencyKey": "once" } }),
    task_status: call("task_status", { job_id: someTask }),
    task_list: call("task_list", {}),
    "resources/read": client.request("resources/read", { uri: "meanwhile://stats" }),
  };
  if (revision === "2025-11-25")
    return {
      ...everywhere,
      "tools/call with a task": call("work_fast", {}, { task: {} }),
      "tasks/get": client.request("tasks/get", { taskId: someTask }),
      "tasks/result": client.request("tasks/result", { taskId: someTask }),
      "tasks/cancel": client.request("tasks/cancel", { taskId: someTask }),
      "tasks/list": client.request("tasks/list"),
    };
  if (revision === "2026-07-28")
    return {
      ...everywhere,
      "tools/call with a hint": call("work_fast", {}, { _meta: { "meanwhile/task": {} } }),
      "tasks/get": client.request("tasks/get", { taskId: someTask }),
      "tasks/update": client.request("tasks/update", { taskId: someTask, inputResponses: {} }),
      "tasks/cancel": client.request("tasks/cancel", { taskId: someTask }),
      "subscriptions/listen": client.request("subscriptions/listen", { notifications: { taskIds: [someTask] } }),
    };
  return everywhere;
}

describe("at every door, of every generation, −32603 with one sentence and no path, and the operator has the path", () => {
  test.each(Object.entries(faults))(
    "a database that is %s; what is fast is answered all the same",
    async (_name, fault) => {
      const { runtime, folder, file, log } = await open(fault.when === "before" ? fault.harm : undefined);
      if (fault.when === "running") {
        await runtime.tasks.start();
        fault.harm(file);
      }
      for (const [who, { revision, client }] of Object.entries(await clientsOf(runtime))) {
        for (const [what, answer] of Object.entries(needy(client, revision))) {
          // What was written before can still be read: an unknown task is unknown, and who listens waits.
          const isRead = fault.when === "running" && !what.startsWith("tools/call");
          if (isRead && what === "subscriptions/listen") continue;
          const message = await answer;
          if (!isRead)
            expect(message, `${what} of ${who}`).toMatchObject({ error: { code: -32603, message: fault.sentence } });
          expect(JSON.stringify(message), `${what} of ${who}`).not.toContain(folder);
        }
        // A question has to be on record before anybody sees it.
        const asking = await client.request("tools/call", { name: "work_asking", arguments: {} });
        // It names the line of the command that asked, which lies elsewhere.
        expect(JSON.stringify(asking), `asking, of ${who}`).not.toContain(path.dirname(file));
        expect(JSON.stringify(asking), `asking, of ${who}`).toContain(JSON.stringify(fault.sentence).slice(1, -1));
        const completed = await client.request("completion/complete", {
          name: "task_status",
          argument: "job_id",
          partial_argument: "",
        });
        expect(JSON.stringify(completed), `completing, of ${who}`).not.toContain(folder);
        const fast = await client.request("tools/call", { name: "work_fast", arguments: {} });
        expect(fast.result?.structuredContent, `fast, of ${who}`).toMatchObject({
          success: true,
          data: { fast: true },
        });
      }
      const told = log()
        .split("\n")
        .filter((line) => line.includes(file));
      expect(told.length, log()).toBeGreaterThan(0);
      // However many ask.
      expect(log().split("\n").length, log()).toBeLessThan(10);
    },
  );
});

test("what the operator has mended works at the next request, in the same process", async () => {
  const { runtime, file } = await open((name) => mkdirSync(name));
  const client = await new WireClient(overPipe(runtime), { revision: "2025-11-25" }).begin();
  onTestFinished(() => client.close());
  expect((await client.request("tasks/list")).error).toMatchObject({ code: -32603 });
  rmSync(file, { recursive: true });
  expect((await client.request("tasks/list")).result).toEqual({ tasks: [] });
  expect((await client.call("work_fast", {}, { task: {} })).task).toMatchObject({ status: "working" });
});

describe("real processes", () => {
  test("a front and its daemon, and a server on stdio of its own, say the sentence and run what is fast", async () => {
    const fault = faults["not a database"] as Fault;
    const home = new DaemonHome();
    mkdirSync(home.home, { mode: 0o700 });
    fault.harm(path.join(home.home, "tasks.db"));
    const own = startMeanwhile(["serve", "--in-process", ...ownCommands], {
      cwd: home.cwd,
      env: { MEANWHILE_HOME: home.home },
    });
    const clients = [
      await home.connect(),
      await new WireClient(overPipes(own.child), { revision: "2025-11-25" }).begin(),
    ];
    onTestFinished(async () => void (await clients[1]?.close()));
    for (const client of clients) {
      expect((await client.startCall("say_back", { text: "a" }, { task: {} }).answer).error).toEqual({
        code: -32603,
        message: fault.sentence,
      });
      expect((await client.request("tasks/list")).error).toEqual({ code: -32603, message: fault.sentence });
      expect(dataOf(await client.call("say_back", { text: "fast" }))).toMatchObject({ text: "fast" });
    }
    for (const log of [home.log(), own.stderr()]) expect(log).toContain(path.join(home.home, "tasks.db"));
  });

  test("with the database deleted, tasks that have ended are told from memory as long as the process lives, the last 1,000 of them", async () => {
    const home = new DaemonHome();
    const client = await home.connect();
    const file = path.join(temporaryFolder(), "trace");
    const { task } = await client.call("job_safe", { file }, { task: {} });
    const done = await client.call("say_back", { text: "done" }, { task: {} });
    const taskId = done.task?.taskId as string;
    await client.request("tasks/result", { taskId });
    await waitFor(() => existsSync(file));
    for (const ending of ["", "-wal", "-shm"]) rmSync(path.join(home.home, `tasks.db${ending}`));
    expect((await client.request("tasks/result", { taskId })).result?.structuredContent).toMatchObject({
      success: true,
      data: { text: "done" },
    });
    // It ends without a record, and is told all the same.
    writeFileSync(`${file}.go`, "");
    expect(
      (await client.request("tasks/result", { taskId: task?.taskId as string })).result?.structuredContent,
    ).toMatchObject({
      success: true,
      data: { passed: file },
    });
    expect((await client.request("tasks/get", { taskId: task?.taskId as string })).result).toMatchObject({
      status: "completed",
    });
    const refused = await client.startCall("job_safe", { file: `${file}2` }, { task: {} }).answer;
    expect(refused.error).toEqual({
      code: -32603,
      message: (faults["deleted while the server runs"] as Fault).sentence,
    });
  });
});
