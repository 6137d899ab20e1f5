import path from "node:path";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { sleep } from "../../src/clock.ts";
import { taskGenerations } from "../../src/wire/revisions.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { shareAmongTests } from "../helpers/home.ts";
import { isEnded, openTraces, startTask, taskWhen } from "../helpers/place.ts";
import { commandsOn, timedTest } from "../helpers/rules.ts";
import { type LocalOptions, openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { type Answer, exchange, type Fields, takesTasks, type WireClient } from "../helpers/wire.ts";

/** Where 2025-11-25 and 2026-07-28 ask for opposite things, one server does both, by the revision of the request. */

/** One server, and an HTTP client of each revision, both the local user. */
async function openBoth(options: Partial<LocalOptions> = {}) {
  const clock = new FakeClock();
  const server = await openServer({ in: "http", commands: commandsOn(clock), clock, ...options });
  const core = await server.client("2025-11-25", { hasNoStream: true });
  const modern = await server.client("tasks-2026");
  return {
    ...{ clock, server, core, modern },
    both: [core, modern] as const,
    local: { authorization: `Bearer ${server.token()}` },
    url: await server.url(),
    pause: (ms: number) => sleep(clock, ms),
    /** A stdio client. */
    pipe: (revision: string, capabilities: object = {}) => server.client({ revision, capabilities }, { over: "stdio" }),
  };
}

/** Its database is a file, so that another connection can hold its lock. */
const openOnFile = (config: object = {}) => openBoth({ store: "sqlite", config });

/**
 * For the tests that look at nothing but their own tasks; those that look for a task need a server on which there is no
 * other.
 */
const shared = shareAmongTests(() => openBoth());

const listed = async (core: WireClient): Promise<Fields[]> => (await core.request("tasks/list")).result?.tasks ?? [];

describe("E1", () => {
  test(
    "E1: a client of 2025-11-25 that drops its stream has cancelled nothing: the call runs on as a task, and its caller finds the result",
    timedTest(
      () => openBoth(),
      async ({ server, core }) => {
        const traces = openTraces();
        const begun = core.start("tools/call", { name: "work_hold", arguments: { file: traces.file } });
        await traces.shows("started");
        expect(await listed(core)).toEqual([]);
        begun.drop();

        const later = await server.client("2025-11-25", { hasNoStream: true });
        const found = await waitFor(async () => (await listed(later))[0]);
        expect(found).toMatchObject({ status: "working" });
        traces.release();
        const { result } = await later.request("tasks/result", { taskId: found.taskId });
        expect(result).toMatchObject({ structuredContent: { success: true, data: { pid: process.pid, attempt: 1 } } });
        expect(traces.lines()).toEqual([`started ${process.pid}`, `finished ${process.pid}`]);
        expect(await listed(later)).toHaveLength(1);
      },
    ),
  );

  test(
    "E1: a client of 2025-11-25 that closes its pipe has cancelled nothing: its call becomes a task that the next server finishes",
    timedTest(
      () => openOnFile(),
      async ({ clock, server, pipe: openPipe }) => {
        const traces = openTraces();
        const pipe = await openPipe("2025-11-25");
        const begun = pipe.start("tools/call", { name: "work_hold", arguments: { file: traces.file } });
        await traces.shows("started");
        begun.drop();
        await server.close();
        const { home, cwd } = server;
        const next = await openServer({ in: "memory", commands: commandsOn(clock), clock, store: "sqlite", home, cwd });
        const later = await next.client("2025-11-25");
        const [found] = await listed(later);
        expect(found).toMatchObject({ status: "working" });
        traces.release();
        const { result } = await later.request("tasks/result", { taskId: found?.taskId });
        expect(result).toMatchObject({ structuredContent: { success: true } });
        expect(traces.lines().filter((line) => line.startsWith("started"))).toHaveLength(2);
      },
    ),
  );

  test(
    "E1: on 2026-07-28 dropping the stream cancels the call, whatever its client takes and its command does",
    timedTest(
      () => openBoth(),
      async ({ core, modern, pause }) => {
        const cases = [
          { capabilities: {}, isDeaf: false },
          // It would have been given a task a little later.
          { capabilities: takesTasks, isDeaf: false },
          { capabilities: {}, isDeaf: true },
        ];
        const calls = cases.map(({ capabilities, isDeaf }) => {
          const traces = openTraces();
          return {
            traces,
            isDeaf,
            begun: modern.start(
              "tools/call",
              { name: "work_hold", arguments: { file: traces.file, isDeaf } },
              { capabilities },
            ),
          };
        });
        for (const { traces } of calls) await traces.shows("started");
        // By now the calls are on record, and could be mistaken for tasks.
        await pause(150);
        for (const { begun, traces, isDeaf } of calls) {
          begun.drop();
          await traces.shows("stopped: Cancelled");
          traces.release();
          if (isDeaf) await traces.shows("finished");
          expect(traces.lines().filter((line) => line.startsWith("started"))).toHaveLength(1);
        }
        await pause(200);
        // Nobody could ever ask for them again, so nothing of them is kept.
        expect(await listed(core)).toEqual([]);
      },
    ),
  );

  test(
    "E1: on 2026-07-28 a task that was handed out lives on, whatever stream its client drops",
    timedTest(
      () => openBoth({ config: { deferral: { patienceSeconds: 0.2 } } }),
      async ({ modern, pause }) => {
        // Handed out from the start, and handed out late.
        for (const name of ["work_long", "work_hold"]) {
          const traces = openTraces();
          const { taskId } = await startTask(modern, name, { file: traces.file });
          const { stream } = await modern.listen([taskId]);
          const looking = modern.start("tasks/get", { taskId });
          stream.drop();
          looking.drop();
          await traces.shows("started");
          await pause(100);
          traces.release();
          const task = await taskWhen(modern, taskId, isEnded);
          expect(task, name).toMatchObject({
            status: "completed",
            result: { structuredContent: { data: { attempt: 1 } } },
          });
          expect(traces.lines().filter((line) => line.startsWith("stopped"))).toEqual([]);
        }
      },
    ),
  );

  test.for([
    ["a task from the start", "work_long", takesTasks],
    ["a call that becomes a task", "work_hold", takesTasks],
    ["a call that is answered with a plain handle", "work_hold", {}],
  ] as const)(
    "E1: on 2026-07-28 a task whose handle cannot be sent any more is cancelled, since nobody could ever find it: %s",
    ([, name, capabilities]) =>
      timedTest(
        () =>
          openOnFile({
            deferral: { patienceSeconds: 0.2 },
            hosts: { scenario: { limitSeconds: 0.4 } },
          }),
        async ({ server, core, modern, pause }) => {
          const traces = openTraces();
          // As long as somebody else is writing, no task can be made, and no handle sent.
          const stopWriting = await holdStore(server.home);
          const begun = modern.start("tools/call", { name, arguments: { file: traces.file } }, { capabilities });
          // It has come in: its run has begun, or what came after it is answered.
          if (name === "work_hold") await traces.shows("started");
          else await modern.request("server/discover");
          await pause(700);
          expect(begun.messages).toEqual([]);
          begun.drop();
          await pause(200);
          stopWriting();
          if (name === "work_hold") await traces.shows("stopped: Cancelled");
          else
            expect(await waitFor(async () => (await listed(core)).find(isEnded))).toMatchObject({
              status: "cancelled",
              statusMessage: "The client went away before it got the task's id.",
            });
          await pause(200);
          expect((await listed(core)).filter(({ status }) => status !== "cancelled")).toEqual([]);
        },
      )(),
  );

  test(
    "E1: on 2026-07-28 a call over a pipe that is cancelled before it got its handle leaves no task that nobody could find",
    timedTest(
      () => openOnFile(),
      async ({ server, pause, pipe: openPipe }) => {
        const [modern, core] = [await openPipe("2026-07-28", takesTasks), await openPipe("2025-11-25")];
        const traces = openTraces();
        expect(await listed(core)).toEqual([]);
        await modern.request("tools/call", { name: "report_steps", arguments: { at: 1, steps: 1, gapMs: 1 } });
        const stopWriting = await holdStore(server.home);
        const begun = modern.start("tools/call", { name: "work_long", arguments: { file: traces.file } });
        await pause(300);
        await modern.notify("notifications/cancelled", { requestId: begun.id });
        await pause(200);
        stopWriting();
        await pause(1_000);
        expect(modern.received.filter(({ id }) => id === begun.id)).toEqual([]);
        expect((await listed(core)).filter(({ status }) => status !== "cancelled")).toEqual([]);
      },
    ),
  );

  test(
    "E1: a client of 2025-11-25 that drops its stream before it got its task finds the task in its list",
    timedTest(
      () => openOnFile(),
      async ({ server, core, pause }) => {
        const traces = openTraces();
        const stopWriting = await holdStore(server.home);
        const begun = core.start("tools/call", { name: "work_long", arguments: { file: traces.file }, task: {} });
        await core.request("ping");
        await pause(500);
        begun.drop();
        await pause(300);
        stopWriting();
        const task = await waitFor(async () => (await listed(core))[0]);
        traces.release();
        expect(await taskWhen(core, task.taskId, isEnded)).toMatchObject({ status: "completed" });
      },
    ),
  );
});

test(
  "E2: a tool result with isError is failed on 2025-11-25, and completed on 2026-07-28",
  timedTest(shared, async ({ core, modern, both }) => {
    const isError = {
      isError: true,
      structuredContent: { success: false, messages: [{ type: "error", text: "The tank is empty." }] },
    };
    // Whoever made it, each sees the task in the words of its own revision.
    for (const maker of both) {
      const { taskId } = await startTask(maker, "work_fail");
      expect(await taskWhen(core, taskId, isEnded), `made on ${maker.revision}`).toMatchObject({
        status: "failed",
        statusMessage: "The tank is empty.",
      });
      const { result } = await core.request("tasks/result", { taskId });
      expect(result).toMatchObject(isError);
      const task = await taskWhen(modern, taskId, isEnded);
      expect(task, `made on ${maker.revision}`).toMatchObject({ status: "completed", result: isError });
      expect(task).not.toHaveProperty("error");
    }
    // An error of the protocol is no tool result, and `failed` on both.
    const { taskId } = await startTask(modern, "work_protocol");
    const task = await taskWhen(modern, taskId, isEnded);
    expect(task).toMatchObject({ status: "failed", error: { code: -32042 } });
    expect(task).not.toHaveProperty("result");
    expect(await taskWhen(core, taskId, isEnded)).toMatchObject({ status: "failed" });
  }),
);

test(
  "E3: cancelling an ended task is refused with -32602 on 2025-11-25, and acknowledged on 2026-07-28",
  timedTest(shared, async ({ core, modern }) => {
    const completed = await startTask(modern, "work_nap", { ms: 1 });
    const failed = await startTask(modern, "work_protocol");
    const saidNo = await startTask(modern, "work_fail");
    const cancelled = await startTask(modern, "work_long", { file: openTraces().file });
    await modern.request("tasks/cancel", { taskId: cancelled.taskId });
    for (const { taskId } of [completed, failed, saidNo, cancelled]) {
      const before = [await taskWhen(core, taskId, isEnded), await taskWhen(modern, taskId, isEnded)];
      for (let times = 1; times <= 2; times++) {
        expect(await core.request("tasks/cancel", { taskId })).toMatchObject({
          error: { code: -32602 },
          result: undefined,
        });
        const acknowledged = await modern.request("tasks/cancel", { taskId });
        expect(acknowledged).toMatchObject({ status: 200, error: undefined });
        expect(withoutServerInfo(acknowledged.result)).toEqual({ resultType: "complete" });
      }
      expect([await taskWhen(core, taskId, isEnded), await taskWhen(modern, taskId, isEnded)]).toEqual(before);
    }
  }),
);

test(
  "E4: on 2025-11-25 a task is cancelled before the answer and stays so; on 2026-07-28 it is acknowledged, and an ending that came first stands",
  timedTest(shared, async ({ core, modern, both, pause }) => {
    // The work goes on after the cancel, and its result comes too late.
    const deaf = openTraces();
    const { taskId } = await startTask(core, "work_long", { file: deaf.file, isDeaf: true });
    await deaf.shows("started");
    const cancelled = await core.request("tasks/cancel", { taskId });
    expect(cancelled.result).toMatchObject({ taskId, status: "cancelled" });
    const told = (await core.request("tasks/get", { taskId })).result;
    expect(told).toMatchObject({ status: "cancelled" });
    deaf.release();
    await deaf.shows("finished");
    await pause(200);
    expect((await core.request("tasks/get", { taskId })).result).toEqual(told);

    const obedient = openTraces();
    const other = await startTask(modern, "work_long", { file: obedient.file });
    await obedient.shows("started");
    expect(withoutServerInfo((await modern.request("tasks/cancel", { taskId: other.taskId })).result)).toEqual({
      resultType: "complete",
    });
    expect(await taskWhen(modern, other.taskId, isEnded)).toMatchObject({ status: "cancelled" });
    await obedient.shows("stopped: Cancelled");

    // A cancel against an ending: whichever was first stands, on both; a core client is told which it was.
    const endings = new Set<string>();
    const delays = [0, 3, 6, 9, 10, 11, 12, 14, 17, 25, 60, "long before the end", "after the end"] as const;
    for (const [canceller, delay] of both.flatMap((client) => delays.map((when) => [client, when] as const))) {
      const raced = await startTask(canceller, "work_nap", { ms: delay === "long before the end" ? 60_000 : 10 });
      if (delay === "after the end") await taskWhen(modern, raced.taskId, isEnded);
      else if (typeof delay === "number") await pause(delay);
      const answer = await canceller.request("tasks/cancel", { taskId: raced.taskId });
      const ended = await taskWhen(modern, raced.taskId, isEnded);
      endings.add(ended.status);
      if (canceller === modern) expect(answer.error).toBeUndefined();
      else if (answer.error === undefined)
        expect([answer.result?.status, ended.status]).toEqual(["cancelled", "cancelled"]);
      else expect([answer.error.code, ended.status]).toEqual([-32602, "completed"]);
      await pause(15);
      expect(await taskWhen(modern, raced.taskId, isEnded)).toEqual(ended);
    }
    expect([...endings].toSorted()).toEqual(["cancelled", "completed"]);
  }),
);

describe("E5", () => {
  const input = { gapMs: 210, total: 10 };
  const meta = { _meta: { progressToken: "the call's own" } };
  const progressOf = (client: WireClient) =>
    client.received.filter(({ method }) => method === "notifications/progress");

  test(
    "E5: a task's progress keeps the call's token until its end on 2025-11-25, and is sent on no stream on 2026-07-28",
    timedTest(shared, async ({ core, modern }) => {
      await core.openStream();
      const { taskId } = await startTask(core, "report_odd", input, meta);
      const related = { "io.modelcontextprotocol/related-task": { taskId } };
      await taskWhen(core, taskId, isEnded);
      const sent = progressOf(core);
      expect(sent.length).toBeGreaterThanOrEqual(3);
      for (const { params } of sent) expect(params).toMatchObject({ progressToken: "the call's own", _meta: related });
      expect(sent.at(-1)?.params).toMatchObject({ progress: 8, total: 10 });

      // On 2026-07-28: asked for by token, by log level and by listening, and still on no stream.
      const chatty = { _meta: { progressToken: "mine", "io.modelcontextprotocol/logLevel": "debug" } };
      const handle = await modern.request("tools/call", { name: "report_odd", arguments: input, ...chatty });
      const { stream } = await modern.listen([handle.result?.taskId], { toolsListChanged: true });
      const ended = await taskWhen(modern, handle.result?.taskId, isEnded);
      expect(ended).toMatchObject({ status: "completed" });
      await waitFor(() => stream.of("notifications/tasks").some(({ params }) => params?.status === "completed"));
      // What can be said of it is in the task.
      expect(stream.of("notifications/tasks").map(({ params }) => params?.statusMessage)).toContainEqual(
        expect.stringContaining("2 on attempt 1 (20%"),
      );
      const methods = new Set(modern.received.map(({ method }) => method));
      expect(methods).not.toContain("notifications/progress");
      expect(methods).not.toContain("notifications/message");
      expect(handle.messages).toHaveLength(1);
    }),
  );

  test.for(taskGenerations)("E5: the same over a pipe, on %s", (revision) =>
    timedTest(shared, async ({ pipe: openPipe }) => {
      const pipe = await openPipe(revision, revision === "2026-07-28" ? takesTasks : {});
      const chatty =
        revision === "2026-07-28" ? { _meta: { ...meta._meta, "io.modelcontextprotocol/logLevel": "debug" } } : meta;
      const { taskId } = await startTask(pipe, "report_odd", input, chatty);
      if (revision === "2026-07-28") pipe.start("subscriptions/listen", { notifications: { taskIds: [taskId] } });
      await taskWhen(pipe, taskId, isEnded);
      const created = pipe.received.findIndex(
        ({ result }) => result?.taskId === taskId || result?.task?.taskId === taskId,
      );
      const sent = progressOf(pipe);
      if (revision === "2025-11-25") {
        expect(sent.at(-1)?.params).toMatchObject({ progressToken: "the call's own", progress: 8 });
        // The client knows of the task before it hears of its progress.
        expect(pipe.received.indexOf(sent[0] as never)).toBeGreaterThan(created);
      } else {
        expect(sent).toEqual([]);
        expect(pipe.received.map(({ method }) => method)).not.toContain("notifications/message");
        expect(pipe.received.map(({ method }) => method)).toContain("notifications/tasks");
      }
    })(),
  );
});

test(
  "E6: tasks/list and tasks/result answer on 2025-11-25, and are unknown methods on 2026-07-28: -32601, HTTP 404",
  timedTest(
    () => openBoth(),
    async ({ core, modern, pipe: openPipe }) => {
      const { taskId } = await startTask(modern, "work_nap", { ms: 1 });
      await taskWhen(modern, taskId, isEnded);
      expect(await core.request("tasks/list")).toMatchObject({
        status: 200,
        result: { tasks: [{ taskId, status: "completed" }] },
      });
      expect(await core.request("tasks/result", { taskId })).toMatchObject({
        status: 200,
        result: { structuredContent: { success: true } },
      });
      const pipe = await openPipe("2026-07-28", takesTasks);
      for (const [method, params] of [
        ["tasks/list", {}],
        ["tasks/result", { taskId }],
      ] as const) {
        expect(await modern.request(method, params), method).toMatchObject({
          status: 404,
          error: { code: -32601 },
          result: undefined,
        });
        expect(await pipe.request(method, params), method).toMatchObject({
          error: { code: -32601 },
          result: undefined,
        });
      }
    },
  ),
);

describe("E7", () => {
  test.for(taskGenerations)(
    "E7: an id is taken as long as its call is outstanding, over a pipe on %s: the second call is refused, the first keeps its answer",
    (revision) =>
      timedTest(shared, async ({ pipe: openPipe }) => {
        const pipe = await openPipe(revision);
        const [first, second] = [openTraces(), openTraces()];
        pipe.start("tools/call", { name: "work_hold", arguments: { file: first.file } }, { id: "one" });
        await first.shows("started");
        pipe.start("tools/call", { name: "work_hold", arguments: { file: second.file } }, { id: "one" });
        const refusal = await waitFor(() => pipe.received.find(({ error }) => error !== undefined));
        // It answers nobody's call: under the id `one` it would end the first.
        expect(refusal).toMatchObject({ id: null, error: { code: -32600, message: expect.stringContaining('"one"') } });
        first.release();
        await waitFor(() => pipe.received.some(({ id }) => id === "one"));
        expect(pipe.received.filter(({ id }) => id === "one")).toMatchObject([
          { result: { structuredContent: { data: { pid: process.pid } } } },
        ]);
        expect(first.lines()).toHaveLength(2);
        expect(second.lines()).toEqual([]);
      })(),
  );

  test(
    "E7: in a session of 2025-11-25 the same; on 2026-07-28 every request over HTTP stands alone, and two of one id get each its own answer",
    timedTest(shared, async ({ core, modern }) => {
      for (const client of [core, modern]) {
        const [first, second] = [openTraces(), openTraces()];
        const begun = client.start("tools/call", { name: "work_hold", arguments: { file: first.file } }, { id: 7 });
        await first.shows("started");
        second.release();
        const again = await client.request(
          "tools/call",
          { name: "work_hold", arguments: { file: second.file } },
          { id: 7 },
        );
        if (client === core) {
          expect(again).toMatchObject({ status: 400, error: { code: -32600 } });
          expect(second.lines()).toEqual([]);
        } else expect(again).toMatchObject({ status: 200, result: { structuredContent: { success: true } } });
        first.release();
        expect((await begun.answer).result).toMatchObject({ structuredContent: { success: true } });
        expect(first.lines()).toHaveLength(2);
      }
    }),
  );

  test.for(taskGenerations)("E7: an id whose call was answered, with a task too, may be used again on %s", (revision) =>
    timedTest(shared, async ({ pipe: openPipe }) => {
      const pipe = await openPipe(revision, takesTasks);
      const asked = revision === "2025-11-25" ? { task: {} } : {};
      const traces = openTraces();
      const handle = await pipe.request(
        "tools/call",
        { name: "work_long", arguments: { file: traces.file }, ...asked },
        { id: 5 },
      );
      const taskId = handle.result?.taskId ?? handle.result?.task.taskId;
      expect(await pipe.request("tasks/get", { taskId }, { id: 5 })).toMatchObject({
        result: { taskId, status: "working" },
      });
      expect(await pipe.request("tasks/cancel", { taskId }, { id: 5 })).toMatchObject({ error: undefined });
    })(),
  );

  test(
    "E7: after a cancel the id is free, and what the cancelled call still brings is not the answer of the next",
    timedTest(shared, async ({ pause, pipe: openPipe }) => {
      const pipe = await openPipe("2025-11-25");
      const [first, second] = [openTraces(), openTraces()];
      pipe.start("tools/call", { name: "work_hold", arguments: { file: first.file, isDeaf: true } }, { id: 5 });
      await first.shows("started");
      await pipe.notify("notifications/cancelled", { requestId: 5 });
      const again = pipe.start("tools/call", { name: "work_hold", arguments: { file: second.file } }, { id: 5 });
      await second.shows("started");
      first.release();
      await first.shows("finished");
      await pause(100);
      expect(pipe.received.filter(({ id }) => id === 5)).toEqual([]);
      second.release();
      expect((await again.answer).result).toMatchObject({ structuredContent: { success: true } });
      expect(second.lines().at(-1)).toMatch(/^finished/);
      await pause(100);
      expect(pipe.received.filter(({ id }) => id === 5)).toHaveLength(1);
    }),
  );
});

test(
  "E8: a call that needs a task its client did not opt in to is -32601 on 2025-11-25, and -32021 with HTTP 400 on 2026-07-28",
  timedTest(shared, async ({ core, modern, pause, pipe: openPipe }) => {
    const traces = openTraces();
    const call = { name: "work_required", arguments: { file: traces.file } };
    expect(await core.request("tools/call", call)).toMatchObject({
      status: 200,
      error: { code: -32601, message: expect.stringContaining("params.task") },
    });
    const missing = {
      error: { code: -32021, data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } } },
      result: undefined,
    };
    // The older way to opt in is none here.
    for (const more of [{}, { task: {} }])
      for (const capabilities of [
        {},
        { tasks: { requests: { tools: { call: {} } } } },
        { extensions: { "io.example/other": {} } },
      ]) {
        expect(await modern.request("tools/call", { ...call, ...more }, { capabilities })).toMatchObject({
          status: 400,
          ...missing,
        });
      }
    const pipe = await openPipe("2026-07-28");
    expect(await pipe.request("tools/call", call)).toMatchObject(missing);
    await pause(100);
    expect(traces.lines()).toEqual([]);
    traces.release();
    for (const client of [core, modern]) {
      const { taskId } = await startTask(client, "work_required", call.arguments);
      expect(await taskWhen(client, taskId, isEnded)).toMatchObject({ status: "completed" });
    }
  }),
);

describe("E9", () => {
  test(
    "E9: 2025-11-25 has sessions, a GET stream and Last-Event-ID: who lost a stream gets the rest of it, once",
    timedTest(
      () => openBoth(),
      async ({ core, local, url }) => {
        expect(core.sessionId).toMatch(/^[\x21-\x7e]+$/);
        const traces = openTraces();
        const headers = { "content-type": "application/json", ...local, ...core.headersOf() };
        const body = JSON.stringify({
          jsonrpc: "2.0",
          id: "lost",
          method: "tools/call",
          params: { name: "work_hold", arguments: { file: traces.file } },
        });
        const stream = await exchange(url, { headers, body });
        await traces.shows("started");
        const lastEventId = await waitFor(() => stream.events.at(-1)?.id);
        stream.drop();
        await waitFor(async () => (await listed(core))[0]);
        const resumed = await core.openStream(lastEventId);
        expect(resumed.status).toBe(200);
        const answer = await waitFor(() => resumed.messages.find(({ id }) => id === "lost"));
        // The call runs on as a task; what the client gets is the way to it.
        const jobId: unknown = answer.result?.structuredContent.data.job_id;
        traces.release();
        expect(await core.request("tasks/result", { taskId: jobId })).toMatchObject({
          result: { structuredContent: { success: true, data: { attempt: 1 } } },
        });
        expect(resumed.messages.filter(({ id }) => id === "lost")).toHaveLength(1);

        const own = await core.openStream();
        expect(own.status).toBe(200);
        expect(own.headers.get("content-type")).toMatch(/^text\/event-stream/);
        const ended = await exchange(url, { method: "DELETE", headers: { ...local, ...core.headersOf() } });
        expect(ended.status).toBe(200);
        expect(await core.request("tasks/list")).toMatchObject({ status: 404 });
      },
    ),
  );

  test(
    "E9: 2026-07-28 has none of them: GET and DELETE are 405, a session id and a Last-Event-ID are ignored, no event has an id",
    timedTest(shared, async ({ core, modern, local, url }) => {
      const headers = { ...local, "mcp-protocol-version": "2026-07-28" };
      for (const method of ["GET", "DELETE"]) {
        for (const more of [{}, { "last-event-id": "1.x" }]) {
          const response = await exchange(url, {
            method,
            headers: { ...headers, accept: "text/event-stream", ...more },
          });
          expect([method, more, response.status]).toEqual([method, more, 405]);
        }
      }

      const traces = openTraces();
      traces.release();
      const call = { name: "work_hold", arguments: { file: traces.file }, _meta: { progressToken: 1 } };
      const ignored = { "mcp-session-id": core.sessionId, "last-event-id": "1.x" };
      const answers: Answer[] = [
        await modern.request("tools/call", call, { headers: ignored }),
        await modern.request("tools/call", call),
      ];
      for (const { status, result, headers: sent } of answers) {
        expect({ status, result }).toMatchObject({ status: 200, result: { structuredContent: { success: true } } });
        expect(sent.get("mcp-session-id")).toBeNull();
      }
      const reporting = await modern.request("tools/call", {
        name: "report_steps",
        arguments: { at: 1, steps: 3, gapMs: 110 },
        _meta: { progressToken: 1 },
      });
      expect(reporting.messages.map(({ method }) => method)).toEqual([
        "notifications/progress",
        "notifications/progress",
        "notifications/progress",
        undefined,
      ]);
      expect(reporting.text).not.toMatch(/^id:/m);
      const { taskId } = await startTask(modern, "work_nap", { ms: 50 });
      const { stream } = await modern.listen([taskId]);
      await waitFor(() => stream.of("notifications/tasks").some(({ params }) => isEnded(params ?? {})));
      expect(stream.events.map(({ id }) => id)).toEqual(stream.events.map(() => undefined));
      expect(stream.headers.get("mcp-session-id")).toBeNull();
    }),
  );
});

/** Results say who made them; that is nobody's concern here. */
function withoutServerInfo(result: Fields | undefined): Fields {
  const { _meta: meta, ...rest } = result ?? {};
  const { "io.modelcontextprotocol/serverInfo": _server, ...others } = (meta ?? {}) as Fields;
  return Object.keys(others).length === 0 ? rest : { ...rest, _meta: others };
}

/** Keeps everybody else from writing, as another process in the middle of a long write would. */
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
