import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { type TaskGeneration, taskGenerations } from "../../src/wire/revisions.ts";
import { type Started, waitFor } from "../helpers/meanwhile.ts";
import { isEnded, openPlace, openTraces, type Place, startTask, taskWhen } from "../helpers/place.ts";
import { gate, Project, taskIdOf } from "../helpers/project.ts";
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

/**
 * What is left behind in the database, and in other people's hands, when calls have been answered, cancelled, handed
 * out or cut short.
 */

const commands = path.resolve(import.meta.dirname, "../fixtures/rules/commands");
const deaths = path.resolve(import.meta.dirname, "../fixtures/leftovers/commands");

interface Row {
  readonly task_id: string;
  readonly command: string;
  readonly status: string;
  readonly is_call: number;
  readonly attempts: number;
}

/** Every row there is, whoever's and whatever it is. */
function rowsOf(home: string): Row[] {
  const db = new Database(path.join(home, "tasks.db"), { readonly: true });
  try {
    return db.prepare<[], Row>("select task_id, command, status, is_call, attempts from tasks").all();
  } finally {
    db.close();
  }
}

/** Holds the database as another writer would, until it is let go. */
async function holdStore(home: string): Promise<() => void> {
  const db = new Database(path.join(home, "tasks.db"));
  onTestFinished(() => void db.close());
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

const ways: readonly { readonly title: string; readonly connect: (place: Place) => Promise<Call> }[] = [
  { title: "2025-11-25 over stdio", connect: async (place) => calling(await place.startPipe("2025-11-25")) },
  { title: "2026-07-28 over stdio", connect: async (place) => calling(await place.startPipe("2026-07-28")) },
  {
    title: "2025-11-25 over HTTP, in a session",
    connect: async (place) =>
      calling(await SessionClient.begin((await place.startHttp()).url, { headers: place.local() })),
  },
  {
    title: "2026-07-28 over HTTP",
    connect: async (place) => calling(new ModernClient((await place.startHttp()).url, { headers: place.local() })),
  },
  {
    title: "2025-11-25 over HTTP, without a session",
    connect: async (place) => {
      const { url } = await place.startHttp();
      return async (name, input, _meta) => {
        const body = JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name, arguments: input, _meta },
        });
        const stream = await exchange(url, { headers: { "content-type": "application/json", ...place.local() }, body });
        await stream.over;
        return stream.messages.find(({ method }) => method === undefined) as Pick<Answer, "result" | "error">;
      };
    },
  },
];

test.for(ways)("ten answered calls of 150 ms leave no row at all ($title)", async ({ connect }) => {
  const place = openPlace({ commands });
  const call = await connect(place);
  await call("report_steps", { at: 1, steps: 1, gapMs: 1 }, {});
  const gates = Array.from({ length: 10 }, openTraces);
  const calls = gates.map(({ file }, at) =>
    call("work_hold", { file }, at % 2 === 0 ? {} : { progressToken: `token ${at}` }),
  );
  await waitFor(
    () => rowsOf(place.home).length === 10,
    () => `while they run, ten calls are on record, and not ${JSON.stringify(rowsOf(place.home))}`,
  );
  await sleep(100);
  for (const { release } of gates) release();
  for (const { result } of await Promise.all(calls))
    expect(result).toMatchObject({ structuredContent: { success: true } });
  await waitFor(
    () => rowsOf(place.home).length === 0,
    () => `${rowsOf(place.home).length} rows were left: ${JSON.stringify(rowsOf(place.home))}`,
  );
});

/** Does the same for both taskGenerations, side by side. */
const onBoth = (work: (revision: TaskGeneration) => Promise<void>) => async () =>
  void (await Promise.all(taskGenerations.map(work)));

describe("a cancelled call", () => {
  test(
    "that was just being handed out, while the database was busy, is stopped: nobody has its handle",
    onBoth(async (revision) => {
      // It would be handed out after 3 s.
      const place = openPlace({ commands, config: { hosts: { scenario: { limitSeconds: 4 } } } });
      const pipe = await place.startPipe(revision);
      const traces = openTraces();
      const begun = pipe.start("tools/call", { name: "work_hold", arguments: { file: traces.file } });
      await traces.shows("started");
      await waitFor(() => rowsOf(place.home).length === 1);
      const letGo = await holdStore(place.home);
      await sleep(3_500);
      await pipe.notify("notifications/cancelled", { requestId: begun.id });
      await sleep(200);
      letGo();
      await waitFor(
        () => traces.lines().includes("stopped: Cancelled"),
        () => `${revision}: the work was not stopped: ${traces.lines().join(" | ")}`,
      );
      await waitFor(
        () => rowsOf(place.home).every(({ status }) => status === "cancelled"),
        () => `${revision}: it lives on: ${JSON.stringify(rowsOf(place.home))}`,
      );
      expect(answersTo(pipe, begun), revision).toEqual([]);
      expect(traces.lines(), revision).toHaveLength(2);
    }),
  );

  test(
    "whose command is slow to stop is never made a task",
    onBoth(async (revision) => {
      // It would be handed out after 3 s.
      const place = openPlace({ commands, config: { hosts: { scenario: { limitSeconds: 4 } } } });
      const pipe = await place.startPipe(revision);
      const traces = openTraces();
      const begun = pipe.start("tools/call", { name: "work_hold", arguments: { file: traces.file, isDeaf: true } });
      await traces.shows("started");
      await waitFor(() => rowsOf(place.home).length === 1);
      await pipe.notify("notifications/cancelled", { requestId: begun.id });
      await traces.shows("stopped: Cancelled");
      await sleep(3_500);
      expect(
        rowsOf(place.home).filter(({ is_call }) => is_call === 0),
        revision,
      ).toEqual([]);
      traces.release();
      await traces.shows("finished");
      await waitFor(
        () => rowsOf(place.home).length === 0,
        () => `${revision}: rows were left: ${JSON.stringify(rowsOf(place.home))}`,
      );
      expect(answersTo(pipe, begun), revision).toEqual([]);
    }),
  );
});

const answersTo = ({ received }: WireClient, { id }: Begun) => received.filter((message) => message.id === id);

describe("a server that was told to stop", () => {
  test("refuses new calls in one sentence, makes tasks of those it has begun, and leaves no call behind", async () => {
    const place = openPlace({ commands, isApart: true });
    const server = await place.startHttp();
    const headers = place.local();
    const core = await SessionClient.begin(server.url, { headers });
    const [begun, late] = [openTraces(), openTraces()];
    const running = core.start("tools/call", { name: "work_change", arguments: { file: begun.file } });
    await begun.shows("started");
    await stop(server);
    const callers: readonly WireClient[] = [
      core,
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
    expect(rowsOf(place.home)).toMatchObject([{ task_id: handle.job_id, status: "completed", is_call: 0 }]);
  });

  test("begins nothing that is queued, whatever makes room for it: the next server does", async () => {
    const place = openPlace({ commands, isApart: true });
    const server = await place.startHttp();
    const headers = place.local();
    const core = await SessionClient.begin(server.url, { headers });
    const holders = Array.from({ length: 16 }, openTraces);
    for (const { file } of holders) await startTask(core, "work_change", { file });
    for (const { shows } of holders) await shows("started");
    const [queued, inline] = [openTraces(), openTraces()];
    const { taskId } = await startTask(core, "work_long", { file: queued.file });
    const running = core.start("tools/call", { name: "work_change", arguments: { file: inline.file } });
    await inline.shows("started");
    await stop(server);
    expect((await running.answer).result?.structuredContent.data).toMatchObject({
      status: "working",
      next_action: { tool: "task_result" },
    });
    holders[0]?.release();
    await holders[0]?.shows("finished");
    await sleep(300);
    for (const { release } of [...holders, inline]) release();
    expect(await server.exited).toBe(0);
    expect(queued.lines()).toEqual([]);
    const rows = rowsOf(place.home);
    expect(rows.filter(({ task_id }) => task_id === taskId)).toMatchObject([{ status: "queued", attempts: 0 }]);
    expect(rows.filter(({ status, is_call }) => status === "completed" && is_call === 0)).toHaveLength(17);
    expect(rows).toHaveLength(18);

    queued.release();
    const next = await SessionClient.begin((await place.startHttp()).url, { headers });
    expect(await taskWhen(next, taskId, isEnded)).toMatchObject({ status: "completed" });
    expect(queued.lines().filter((line) => line.startsWith("started"))).toHaveLength(1);
  });
});

/** Resolves once it has heard of it. */
async function stop({ child, stderr }: Started): Promise<void> {
  child.kill("SIGTERM");
  await waitFor(() => stderr().includes("Stopping."));
}

test("a command whose own process dies is answered with a sentence, and leaves nothing", async () => {
  const place = openPlace({ commands: deaths, isApart: true });
  const pipe = await place.startPipe("2025-11-25");
  const [alive, dead] = await Promise.all(
    [true, false].map((lives) => pipe.request("tools/call", { name: "child_die", arguments: { lives } })),
  );
  expect(alive?.result?.structuredContent).toMatchObject({ success: true });
  const sentence = "Its process ended by itself (SIGKILL).";
  expect(dead?.result).toMatchObject({
    isError: true,
    structuredContent: { success: false, data: {}, messages: [{ type: "error", text: sentence }] },
  });
  expect(dead?.result?.content[0].text).toContain(sentence);
  await waitFor(() => rowsOf(place.home).length === 0);
});

describe("what an anonymous caller was asked to confirm, when its call is handed out", () => {
  /** Its person does nothing for 0.9 s. */
  async function handOut() {
    const project = new Project({ hosts: { "my-host": { limitSeconds: 1.2 } } });
    const client = await project.http({
      revision: "2025-11-25",
      name: "my-host",
      capabilities: { elicitation: {} },
      isAnonymous: true,
    });
    const { input, lines } = gate();
    const handle = await client.call("files_erase", input);
    expect(client.received.filter(({ method }) => method === "elicitation/create")).toHaveLength(1);
    return { client, input, lines, handle };
  }

  test("is dismissed: nobody could confirm it any more", async () => {
    const { client, input, lines, handle } = await handOut();
    const result = await client.call("task_result", { job_id: taskIdOf(handle) });
    expect(result).toMatchObject({ isError: true, structuredContent: { success: false, data: {} } });
    expect(result.content?.[0]?.text).toContain(`«Erase ${input.file}?» was declined`);
    expect(lines()).toEqual([]);
  });

  test("is not in the handle, which would send somebody to answer what is closed", async () => {
    const { handle } = await handOut();
    expect(handle.structuredContent?.data).not.toHaveProperty("questions");
    expect(handle.content?.[0]?.text).not.toContain("meanwhile tasks answer");
  });
});

test("`meanwhile tasks show` finds a call by the short id that `tasks list --live` shows", async () => {
  const project = new Project();
  const client = await project.stdio({ revision: "2025-11-25" });
  const work = gate();
  const call = client.startCall("work_gated", work.input);
  await work.seen("started");
  const shortId = await waitFor(
    async () => /^ *([0-9a-f]{8})\b.*work_gated/m.exec((await project.terminal("tasks", "list", "--live")).stdout)?.[1],
  );
  const shown = await project.terminal("tasks", "show", shortId, "--json");
  expect(shown).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(shown.stdout)).toMatchObject({
    taskId: expect.stringMatching(`^${shortId}-`),
    command: "work_gated",
    status: "working",
  });
  work.open();
  expect((await call.answer).result?.structuredContent).toMatchObject({ success: true });
});
