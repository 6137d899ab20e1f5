import path from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { type TaskGeneration, taskGenerations } from "../../src/wire/revisions.ts";
import { runCli, startHttpHere } from "../helpers/cli.ts";
import { FakeClock, pass, settled, turns } from "../helpers/fake-clock.ts";
import { cleanUp, shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { isEnded, openTraces, startTask, taskWhen } from "../helpers/place.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { dialects, type LocalServer, openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import {
  type Answer,
  type Begun,
  exchange,
  type Fields,
  ModernClient,
  SessionClient,
  takesTasks,
  type WireClient,
} from "../helpers/wire.ts";

/** Rows and handles that calls leave behind when they were answered, cancelled, deferred or cut short. */

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const commands = path.join(fixtures, "rules/commands");

interface Row {
  readonly task_id: string;
  readonly command: string;
  readonly status: string;
  readonly is_call: number;
  readonly attempts: number;
}

/** Every row of the tasks table. */
function rowsOf(home: string): Row[] {
  const db = new Database(path.join(home, "tasks.db"), { readonly: true });
  try {
    return db.prepare<[], Row>("select task_id, command, status, is_call, attempts from tasks").all();
  } finally {
    db.close();
  }
}

/** Holds the write lock of the database. Returns a function that releases it. */
async function holdStore(home: string): Promise<() => void> {
  const db = new Database(path.join(home, "tasks.db"));
  cleanUp(() => db.close());
  await waitFor(async () => {
    try {
      return db.exec("begin immediate");
    } catch {
      return undefined;
    }
  });
  return () => void db.exec("rollback");
}

type Call = (name: string, input: Fields, _meta: Fields) => Promise<Pick<Answer, "result" | "error">>;

const calling =
  (client: WireClient): Call =>
  (name, input, _meta) =>
    client.request("tools/call", { name, arguments: input, _meta });

const ways: readonly { readonly title: string; readonly connect: (server: LocalServer) => Promise<Call> }[] = [
  {
    title: "2025-11-25 over stdio",
    connect: async (server) => calling(await server.client("2025-11-25", { over: "stdio" })),
  },
  {
    title: "2026-07-28 over stdio",
    connect: async (server) => calling(await server.client("2026-07-28", { over: "stdio" })),
  },
  {
    title: "2025-11-25 over HTTP, in a session",
    connect: async (server) => calling(await server.client("2025-11-25")),
  },
  { title: "2026-07-28 over HTTP", connect: async (server) => calling(await server.client("2026-07-28")) },
  {
    title: "2025-11-25 over HTTP, without a session",
    async connect(server) {
      const url = await server.url();
      const headers = { "content-type": "application/json", authorization: `Bearer ${server.token()}` };
      return async (name, input, _meta) => {
        const params = { name, arguments: input, _meta };
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
        const stream = await exchange(url, { headers, body });
        await stream.over;
        return stream.messages.find(({ method }) => method === undefined) as Pick<Answer, "result" | "error">;
      };
    },
  },
];

const shared = shareAmongTests(() => openServer({ in: "http", store: "sqlite", commands }));

test.for(ways)("ten answered calls that were on record leave no row ($title)", async ({ connect }) => {
  const server = await shared();
  const call = await connect(server);
  const gates = Array.from({ length: 10 }, openTraces);
  const calls = gates.map(({ file }, at) =>
    call("work_hold", { file }, at % 2 === 0 ? {} : { progressToken: `token ${at}` }),
  );
  await waitFor(
    () => rowsOf(server.home).length === 10,
    () => `while they run, ten calls are on record, and not ${JSON.stringify(rowsOf(server.home))}`,
  );
  for (const { release } of gates) release();
  for (const { result } of await Promise.all(calls))
    expect(result).toMatchObject({ structuredContent: { success: true } });
  await waitFor(
    () => rowsOf(server.home).length === 0,
    () => `${rowsOf(server.home).length} rows were left: ${JSON.stringify(rowsOf(server.home))}`,
  );
});

/** Does the same for both dialects of tasks, at the same time. */
const onBoth = (work: (revision: TaskGeneration) => Promise<void>) => async () =>
  void (await Promise.all(taskGenerations.map(work)));

describe("a cancelled call", () => {
  /** A call that is on record, and is deferred 3 s after its begin. */
  async function begin(revision: TaskGeneration, input: Fields = {}) {
    const clock = new FakeClock();
    const config = { hosts: { scenario: { limitSeconds: 4 } } };
    const server = await openServer({ in: "memory", store: "sqlite", commands, config, clock });
    const client = await server.client({ ...dialects[revision === "2026-07-28" ? "2026-07-28" : "2025-11-25"] });
    const traces = openTraces();
    const call = client.start("tools/call", { name: "work_hold", arguments: { file: traces.file, ...input } });
    await traces.shows("started");
    while (rowsOf(server.home).length === 0) {
      await turns();
      clock.advance(10);
    }
    const cancel = async () => {
      await client.notify("notifications/cancelled", { requestId: call.id });
      await turns();
    };
    return { clock, home: server.home, client, traces, call, cancel };
  }

  /** Advances the clock until this is true. */
  const passUntil = (clock: FakeClock, isTrue: () => boolean, why: () => string) =>
    settled(clock, waitFor(isTrue, why), 10);

  test(
    "that was being deferred while the database was busy is stopped, and nobody gets its handle",
    onBoth(async (revision) => {
      const { clock, home, client, traces, call, cancel } = await begin(revision);
      const release = await holdStore(home);
      await pass(clock, 3_500);
      await cancel();
      release();
      await passUntil(
        clock,
        () => traces.lines().includes("stopped: Cancelled"),
        () => `${revision}: the work was not stopped: ${traces.lines().join(" | ")}`,
      );
      await passUntil(
        clock,
        () => rowsOf(home).every(({ status }) => status === "cancelled"),
        () => `${revision}: it lives on: ${JSON.stringify(rowsOf(home))}`,
      );
      expect(answersTo(client, call), revision).toEqual([]);
      expect(traces.lines(), revision).toHaveLength(2);
    }),
  );

  test(
    "whose command is slow to stop never becomes a task",
    onBoth(async (revision) => {
      const { clock, home, client, traces, call, cancel } = await begin(revision, { isDeaf: true });
      await cancel();
      await traces.shows("stopped: Cancelled");
      await pass(clock, 3_500);
      expect(
        rowsOf(home).filter(({ is_call }) => is_call === 0),
        revision,
      ).toEqual([]);
      traces.release();
      await traces.shows("finished");
      await passUntil(
        clock,
        () => rowsOf(home).length === 0,
        () => `${revision}: rows were left: ${JSON.stringify(rowsOf(home))}`,
      );
      expect(answersTo(client, call), revision).toEqual([]);
    }),
  );
});

const answersTo = ({ received }: WireClient, { id }: Begun) => received.filter((message) => message.id === id);

describe("a server that was told to stop", () => {
  const words = ["--no-bundled", "--commands", commands];

  async function start(home = temporaryFolder()) {
    const server = await startHttpHere(words, { cwd: home, env: { MEANWHILE_HOME: home } });
    const headers = { authorization: `Bearer ${server.token()}` };
    const client = await SessionClient.begin(server.url, { headers });
    cleanUp(() => client.close());
    const stop = async () => {
      server.signal("SIGTERM");
      await server.says(/Stopping\./);
    };
    return { ...server, headers, client, stop };
  }

  test("refuses new calls in one sentence, makes tasks of its running calls, and leaves no call behind", async () => {
    const server = await start();
    const { client, headers, home } = server;
    const [begun, late] = [openTraces(), openTraces()];
    const running = client.start("tools/call", { name: "work_change", arguments: { file: begun.file } });
    await begun.shows("started");
    await server.stop();
    const callers: readonly WireClient[] = [
      client,
      new ModernClient(server.url, { headers }),
      new ModernClient(server.url, { headers, capabilities: takesTasks }),
    ];
    for (const caller of callers) {
      for (const name of ["work_hold", "work_long"]) {
        const { result } = await caller.request("tools/call", { name, arguments: { file: late.file } });
        expect(result, `${name} on ${caller.revision}`).toMatchObject({ isError: true });
        expect(result?.content[0].text).toMatch(/^The server is shutting down; [^.]+\.$/);
      }
    }
    // What it has begun is a task by now, and may end.
    const handle = (await running.answer).result?.structuredContent.data;
    expect(handle).toMatchObject({ status: "working", next_action: { tool: "task_result" } });
    begun.release();
    expect(await server.exited).toBe(0);
    expect(late.lines()).toEqual([]);
    expect(rowsOf(home)).toMatchObject([{ task_id: handle.job_id, status: "completed", is_call: 0 }]);
  });

  test("starts no queued task when a slot becomes free: the next server does", async () => {
    const server = await start();
    const { client, home } = server;
    const holders = Array.from({ length: 16 }, openTraces);
    for (const { file } of holders) await startTask(client, "work_change", { file });
    for (const { shows } of holders) await shows("started");
    const [queued, inline] = [openTraces(), openTraces()];
    const { taskId } = await startTask(client, "work_long", { file: queued.file });
    const running = client.start("tools/call", { name: "work_change", arguments: { file: inline.file } });
    await inline.shows("started");
    await server.stop();
    expect((await running.answer).result?.structuredContent.data).toMatchObject({
      status: "working",
      next_action: { tool: "task_result" },
    });
    holders[0]?.release();
    await holders[0]?.shows("finished");
    await turns(50);
    for (const { release } of [...holders, inline]) release();
    expect(await server.exited).toBe(0);
    expect(queued.lines()).toEqual([]);
    const rows = rowsOf(home);
    expect(rows.filter(({ task_id }) => task_id === taskId)).toMatchObject([{ status: "queued", attempts: 0 }]);
    expect(rows.filter(({ status, is_call }) => status === "completed" && is_call === 0)).toHaveLength(17);
    expect(rows).toHaveLength(18);

    queued.release();
    const next = await start(home);
    expect(await taskWhen(next.client, taskId, isEnded)).toMatchObject({ status: "completed" });
    expect(queued.lines().filter((line) => line.startsWith("started"))).toHaveLength(1);
  });
});

test("a confirmation that was asked of an anonymous caller is dismissed when the call is deferred, and is not in its handle", async () => {
  const clock = new FakeClock();
  const config = { hosts: { "my-host": { limitSeconds: 1.2 } } };
  const server = await openServer({ in: "http", commands: path.join(fixtures, "questions/commands"), config, clock });
  const client = await server.client(
    { revision: "2025-11-25", name: "my-host", capabilities: { elicitation: {} } },
    { isAnonymous: true },
  );
  const { input, lines } = gate();
  const handle = await settled(clock, client.call("files_erase", input));
  expect(client.received.filter(({ method }) => method === "elicitation/create")).toHaveLength(1);
  expect(handle.structuredContent?.data).not.toHaveProperty("questions");
  expect(handle.content?.[0]?.text).not.toContain("meanwhile tasks answer");
  const result = await settled(clock, client.call("task_result", { job_id: taskIdOf(handle) }));
  expect(result).toMatchObject({ isError: true, structuredContent: { success: false, data: {} } });
  expect(result.content?.[0]?.text).toContain(`«Erase ${input.file}?» was declined`);
  expect(lines()).toEqual([]);
});

test("`tasks show` finds a call by the short ID that `tasks list --live` shows", async () => {
  const commands = path.join(fixtures, "deferral/commands");
  const { home, cwd, client } = await openServer({ in: "memory", store: "sqlite", commands });
  const meanwhile = (...words: string[]) =>
    runCli(["--no-bundled", "--commands", commands, "tasks", ...words], { cwd, env: { MEANWHILE_HOME: home } });
  const work = gate();
  const call = (await client("2025-11-25")).startCall("work_gated", work.input);
  const shortId = await waitFor(
    async () => /^ *([0-9a-f]{8})\b.*work_gated/m.exec((await meanwhile("list", "--live")).stdout)?.[1],
  );
  const shown = await meanwhile("show", shortId, "--json");
  expect(shown).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(shown.stdout)).toMatchObject({
    taskId: expect.stringMatching(`^${shortId}-`),
    command: "work_gated",
    status: "working",
  });
  work.open();
  expect((await call.answer).result?.structuredContent).toMatchObject({ success: true });
});
