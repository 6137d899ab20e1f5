import { mkdtempSync } from "node:fs";
import path from "node:path";
import { resultFromTaskOutcome, type SerializedTaskReference } from "@modelcontextprotocol/ext-tasks/client";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { metaKeys } from "../../src/wire/request-envelope.ts";
import { tasksExtension } from "../../src/wire/revisions.ts";
import type { TransportName } from "../helpers/clients.ts";
import { connectExtTasks } from "../helpers/ext-tasks.ts";
import { FakeClock, pass } from "../helpers/fake-clock.ts";
import { shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { openTraces } from "../helpers/place.ts";
import { type LocalOptions, openServer, placeOf, type TestServer } from "../helpers/server.ts";
import type { Fields, Message, WireClient } from "../helpers/wire.ts";

/**
 * The tasks extension of 2026-07-28, over both transports: with ext-tasks on the SDK's client, and by hand where a
 * client hides what matters.
 */

const commands = path.resolve(import.meta.dirname, "../fixtures/tasks/commands");
const transports = ["stdio", "HTTP"] as const;
const revision = "2026-07-28";
const elicitation = { form: {} };
const withTasks = { elicitation, extensions: { [tasksExtension]: {} } };
const subscriptionKey = "io.modelcontextprotocol/subscriptionId";
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
const accept = (content: object) => ({ action: "accept", content });
const ends = ["completed", "failed", "cancelled"];

const start = (transport: TransportName, options: LocalOptions = {}) =>
  openServer({ in: placeOf[transport], commands, ...options });
const connect = (served: TestServer, capabilities: object = withTasks) => served.client(revision, { capabilities });
/** One server over each transport for all tests that look at nothing but their own tasks. */
const shared = { HTTP: shareAmongTests(() => start("HTTP")), stdio: shareAmongTests(() => start("stdio")) };
const share = (transport: TransportName) => shared[transport]();
const open = async (transport: TransportName) => await connect(await share(transport));
const call = (wire: WireClient, name: string, input: object = {}, more: object = {}) =>
  wire.request("tools/call", { name, arguments: input, ...more });

/** Calls a tool and expects a handle. */
async function create(wire: WireClient, name: string, input: object = {}): Promise<Fields> {
  const { result, error } = await call(wire, name, input);
  expect(result ?? error, name).toMatchObject({ resultType: "task", taskId: expect.any(String) });
  return result as Fields;
}

/** Polls until the task has one of these statuses. */
async function reach(wire: WireClient, taskId: string, ...statuses: string[]): Promise<Fields> {
  return await look(wire, taskId, ({ status }) => statuses.includes(status));
}

/** Polls until the task is as it is to be. */
async function look(wire: WireClient, taskId: string, fits: (task: Fields) => boolean): Promise<Fields> {
  return await waitFor(async () => {
    const { result, error } = await wire.request("tasks/get", { taskId });
    if (result === undefined) throw new Error(`tasks/get was refused: ${JSON.stringify(error)}`);
    if (fits(result)) return result;
    if (ends.includes(result.status)) throw new Error(`the task has ended otherwise: ${JSON.stringify(result)}`);
    return undefined;
  });
}

/** Polls until so many questions are open. */
async function waitForOpen(wire: WireClient, taskId: string, count: number): Promise<[string, Fields][]> {
  const { inputRequests } = await look(wire, taskId, (task) => Object.keys(task.inputRequests ?? {}).length === count);
  return Object.entries(inputRequests);
}

/** A result without what the SDK stamps on every one. */
const bare = ({ result }: Message) => {
  const { _meta, ...fields } = result ?? {};
  return fields;
};

/** A result without what differs from run to run. */
function lasting({ _meta, ...result }: Fields): Fields {
  return JSON.parse(
    JSON.stringify(result)
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "then")
      .replace(/finished in [\d.]+ m?s/g, "finished"),
  );
}

describe("what is declared", () => {
  test.for(transports)(
    "server/discover declares the extension as an empty object, and nothing of the tasks capability of 2025-11-25 (%s)",
    async (transport) => {
      const wire = await open(transport);
      const { result } = await wire.request("server/discover");
      expect(result?.supportedVersions).toContain(revision);
      expect(result?.capabilities.extensions).toEqual({ [tasksExtension]: {} });
      expect(result?.capabilities).toHaveProperty("tools");
      expect(result?.capabilities).not.toHaveProperty("tasks");
      const { result: listed } = await wire.request("tools/list");
      expect(listed?.tools.length).toBeGreaterThan(5);
      expect(listed?.tools.filter((tool: Fields) => "execution" in tool)).toEqual([]);
    },
  );

  test.for(transports)(
    "a client that declares only the tasks capability of 2025-11-25 gets no handle (%s)",
    async (transport) => {
      const served = await share(transport);
      const core = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
      for (const capabilities of [
        { elicitation, tasks: core },
        { elicitation, tasks: core, extensions: {}, experimental: { [tasksExtension]: {} } },
      ]) {
        const wire = await connect(served, capabilities);
        expect(bare(await call(wire, "work_count", { to: 1 }))).toMatchObject({
          resultType: "complete",
          structuredContent: { data: { counted: 1 } },
        });
        // Longer than anybody waits: whoever takes no tasks gets a plain handle.
        const held = bare(await call(wire, "work_hold", { file: openTraces().file, expectedSeconds: 3600 }));
        expect(held).toMatchObject({
          resultType: "complete",
          structuredContent: { data: { job_id: expect.any(String) } },
        });
        expect(held).not.toHaveProperty("taskId");
      }
    },
  );

  test.for(transports)("params.task is an unknown field: it makes no task and is no error (%s)", async (transport) => {
    const served = await share(transport);
    const [taking, plain] = await Promise.all([connect(served), connect(served, { elicitation })]);
    for (const task of [{ ttl: 1 }, {}, { ttl: -1 }, "yes", null]) {
      const quick = bare(await call(taking, "quick_echo", { text: "a" }, { task }));
      expect(quick, JSON.stringify(task)).toMatchObject({
        resultType: "complete",
        structuredContent: { data: { text: "a" } },
      });
    }
    const counted = bare(await call(plain, "work_count", { to: 1 }, { task: { ttl: 1 } }));
    expect(counted).toMatchObject({ resultType: "complete", structuredContent: { data: { counted: 1 } } });
    // The server made this one by itself, and keeps it as long as it keeps any.
    const handle = bare(await call(taking, "work_count", { to: 1 }, { task: { ttl: 1 } }));
    expect(handle).toMatchObject({ resultType: "task" });
    expect(handle.ttlMs).toBeGreaterThanOrEqual(24 * 60 * 60 * 1000);
    expect(handle).not.toHaveProperty("task");
  });
});

describe("handles", () => {
  test.for(transports)(
    "tools/call of a long command answers with a flat handle of resultType task, which ext-tasks drives to the result (%s)",
    async (transport) => {
      const served = await start(transport);
      const wire = await connect(served);
      const { file, release } = openTraces();
      // The command does not end before it is let go, so an answer can only be one about a task.
      const { statusMessage: _words, ...handle } = bare(await call(wire, "work_hold", { file, expectedSeconds: 20 }));
      expect(handle).toEqual({
        resultType: "task",
        taskId: expect.stringMatching(/^[\x21-\x7e]{20,}$/),
        status: "working",
        createdAt: time,
        lastUpdatedAt: time,
        ttlMs: expect.any(Number),
        pollIntervalMs: 1000,
      });
      release();
      await reach(wire, handle.taskId, "completed");

      const { session, errors } = await connectV2(served);
      const execution = await session.callTool("work_count", { to: 3 });
      expect(execution.kind).toBe("task");
      const seen: string[] = [];
      const { outcome } = await execution.settle({
        onEvent: (event) =>
          void (event.type === "task" && seen.push(`${event.task.status} ${event.task.statusMessage ?? ""}`)),
      });
      expect(resultFromTaskOutcome(outcome)).toMatchObject({
        structuredContent: { success: true, data: { counted: 3 } },
      });
      expect(seen.at(-1)).toMatch(/^completed/);
      const quick = await session.callTool("quick_echo", { text: "a" });
      expect(quick.kind).toBe("immediate");
      expect(resultFromTaskOutcome((await quick.settle()).outcome)).toMatchObject({
        structuredContent: { data: { text: "a" } },
      });
      expect(errors).toEqual([]);
    },
  );

  test.for(transports)(
    "only a handle has resultType task: inline results, tasks/get, tasks/update and tasks/cancel are complete (%s)",
    async (transport) => {
      const wire = await open(transport);
      const { file } = openTraces();
      const handle = await create(wire, "work_hold", { file });
      const asking = await create(wire, "ask_two", { table: "1" });
      const failed = await create(wire, "work_protocol");
      const answers: [string, Message][] = [
        ["tools/call", await call(wire, "quick_echo", { text: "a" })],
        ["tools/call of bad arguments", await call(wire, "work_hold", { file: 5 })],
        ["tools/list", await wire.request("tools/list")],
        ["tasks/get, working", await wire.request("tasks/get", { taskId: handle.taskId })],
        ["tasks/get, input_required", { result: await reach(wire, asking.taskId, "input_required") }],
        ["tasks/get, failed", { result: await reach(wire, failed.taskId, "failed") }],
        ["tasks/update", await wire.request("tasks/update", { taskId: asking.taskId, inputResponses: {} })],
        ["tasks/cancel", await wire.request("tasks/cancel", { taskId: handle.taskId })],
        ["tasks/get, cancelled", { result: await reach(wire, handle.taskId, "cancelled") }],
        ["tasks/cancel, again", await wire.request("tasks/cancel", { taskId: handle.taskId })],
      ];
      expect(answers.map(([what, { result }]) => [what, result?.resultType])).toEqual(
        answers.map(([what]) => [what, "complete"]),
      );
    },
  );

  test.for(transports)(
    "tasks/get finds a task from the moment its handle arrives, also on another connection and in another process (%s)",
    async (transport) => {
      const served = await start(transport, { store: "sqlite" });
      const elsewhere = await start("stdio", { home: served.home, cwd: served.cwd, store: "sqlite" });
      const [wire, second, other] = await Promise.all([connect(served), connect(served), connect(elsewhere)]);
      await Promise.all([second, other].map((each) => each.request("tools/list")));
      for (let n = 0; n < 10; n++) {
        const { taskId, createdAt } = await create(wire, "work_hold", { file: openTraces().file });
        const found = await Promise.all([wire, second, other].map((each) => each.request("tasks/get", { taskId })));
        expect(found.map(bare)).toEqual(
          [1, 2, 3].map(() => expect.objectContaining({ taskId, status: "working", createdAt })),
        );
      }
    },
  );
});

describe("tasks/get", () => {
  /** The fields beside those that every task has. */
  const ownFields = (task: Fields) => {
    const {
      resultType,
      taskId,
      status: _status,
      statusMessage: _words,
      createdAt,
      lastUpdatedAt,
      ttlMs,
      pollIntervalMs,
      _meta,
      ...own
    } = task;
    expect({ resultType, taskId, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs }).toEqual({
      resultType: "complete",
      taskId: expect.any(String),
      createdAt: time,
      lastUpdatedAt: time,
      ttlMs: expect.any(Number),
      pollIntervalMs: expect.any(Number),
    });
    return own;
  };

  test.for(transports)(
    "tasks/get answers working, input_required, completed, failed and cancelled, each with its own inputRequests, result or error (%s)",
    async (transport) => {
      const wire = await open(transport);
      const held = await create(wire, "work_hold", { file: openTraces().file });
      // There is no progress for tasks but this line.
      const working = await look(wire, held.taskId, ({ statusMessage }) => statusMessage?.startsWith("Holding (50%"));
      expect(working.status).toBe("working");
      expect(ownFields(working)).toEqual({});

      const asking = await create(wire, "ask_two", { table: "1" });
      // Both are asked side by side; each is seen as soon as it is there.
      await waitForOpen(wire, asking.taskId, 2);
      const { inputRequests, ...others } = ownFields(await reach(wire, asking.taskId, "input_required"));
      expect(others).toEqual({});
      const requestedSchema = { type: "object", properties: { choice: { type: "string" } }, required: ["choice"] };
      expect(
        Object.values(inputRequests as Fields).toSorted((a, b) => a.params.message.localeCompare(b.params.message)),
      ).toMatchObject([
        { method: "elicitation/create", params: { message: "What will you drink?", requestedSchema } },
        { method: "elicitation/create", params: { message: "What will you eat?", requestedSchema } },
      ]);

      const counted = await create(wire, "work_count", { to: 1 });
      const { result, ...noMore } = ownFields(await reach(wire, counted.taskId, "completed"));
      expect(noMore).toEqual({});
      expect(result).toMatchObject({
        content: [{ type: "text" }],
        structuredContent: { success: true, data: { counted: 1 } },
      });

      const stuck = await create(wire, "work_protocol");
      expect(ownFields(await reach(wire, stuck.taskId, "failed"))).toEqual({
        error: { code: -32042, message: "The valve is stuck.", data: { valve: 7 } },
      });

      await wire.request("tasks/cancel", { taskId: held.taskId });
      expect(ownFields(await reach(wire, held.taskId, "cancelled"))).toEqual({});
    },
  );

  test.for(transports)(
    "the inlined result is what the same call gives without a task, isError included, marked complete and without a related task (%s)",
    async (transport) => {
      const served = await share(transport);
      const [taking, plain] = await Promise.all([connect(served), connect(served, { elicitation })]);
      const calls = [
        { name: "work_count", input: { to: 2, label: "a" } },
        { name: "work_fail", input: {} },
      ];
      for (const { name, input } of calls) {
        const direct = await call(plain, name, input);
        const { taskId } = await create(taking, name, input);
        const { result } = await reach(taking, taskId, "completed");
        expect(result.resultType, name).toBe("complete");
        expect(lasting(result), name).toEqual(lasting(direct.result ?? {}));
        expect(result.isError, name).toBe(name === "work_fail" ? true : undefined);
        expect(JSON.stringify(result), name).not.toContain(metaKeys.relatedTask);
      }
    },
  );

  test.for(transports)(
    "a call that ends in a JSON-RPC error is failed, with that same error inlined (%s)",
    async (transport) => {
      const served = await share(transport);
      const [taking, plain] = await Promise.all([connect(served), connect(served, { elicitation })]);
      const direct = await call(plain, "work_protocol");
      expect(direct.error).toEqual({ code: -32042, message: "The valve is stuck.", data: { valve: 7 } });
      const { taskId } = await create(taking, "work_protocol");
      const failed = await reach(taking, taskId, "failed");
      expect(failed.error).toEqual(direct.error);
      expect(failed).not.toHaveProperty("result");
      const { session } = await connectV2(served);
      const { outcome } = await (await session.callTool("work_protocol")).settle();
      expect(outcome).toMatchObject({ status: "failed", error: { code: -32042, message: "The valve is stuck." } });
    },
  );
});

describe("tasks/update and tasks/cancel", () => {
  test.for(transports)(
    "tasks/update is acknowledged with an empty complete result, and the task goes on with the answer (%s)",
    async (transport) => {
      const served = await share(transport);
      const wire = await connect(served);
      const { taskId } = await create(wire, "ask_two", { table: "1" });
      const open = await waitForOpen(wire, taskId, 2);
      const keyOf = (words: string) => open.find(([, { params }]) => params.message.includes(words))?.[0] as string;
      const eaten = await wire.request("tasks/update", {
        taskId,
        inputResponses: { [keyOf("eat")]: accept({ choice: "soup" }) },
      });
      expect(bare(eaten)).toEqual({ resultType: "complete" });
      expect((await waitForOpen(wire, taskId, 1)).map(([key]) => key)).toEqual([keyOf("drink")]);
      // An answer that does not fit is refused while the question is still open.
      expect(
        await wire.request("tasks/update", { taskId, inputResponses: { [keyOf("drink")]: accept({ choice: 5 }) } }),
      ).toMatchObject({
        error: { code: -32602, message: expect.stringContaining("choice") },
      });
      await wire.request("tasks/update", { taskId, inputResponses: { [keyOf("drink")]: accept({ choice: "tea" }) } });
      expect(await reach(wire, taskId, "completed")).toMatchObject({
        result: { structuredContent: { data: { order: "soup and tea" } } },
      });
      expect(
        bare(
          await wire.request("tasks/update", {
            taskId,
            inputResponses: { [keyOf("eat")]: accept({ choice: "cake" }) },
          }),
        ),
      ).toEqual({
        resultType: "complete",
      });

      const { file, release, lines } = openTraces();
      const { session, asked, errors } = await connectV2(served, { "What is your name?": accept({ name: "Ada" }) });
      const asking = await session.callTool("ask_name", { file });
      await waitFor(() => lines().includes("answered Ada"));
      release();
      expect(resultFromTaskOutcome((await asking.settle()).outcome)).toMatchObject({
        structuredContent: { data: { greeting: "Hello, Ada!" } },
      });
      expect(asked).toEqual(["What is your name?"]);
      expect(lines()).toEqual(["started", "answered Ada"]);
      expect(errors).toEqual([]);
    },
  );

  test.for(transports)(
    "a question that is declined ends the task as completed, with isError (%s)",
    async (transport) => {
      const { session } = await connectV2(await share(transport), { "What is your name?": { action: "decline" } });
      const { outcome } = await (await session.callTool("ask_name", { file: openTraces().file })).settle();
      expect(outcome).toMatchObject({
        status: "completed",
        result: { isError: true, content: [{ text: expect.stringContaining("was declined") }] },
      });
    },
  );

  test.for(transports)(
    "tasks/cancel is acknowledged with an empty complete result, and the work is stopped (%s)",
    async (transport) => {
      const served = await share(transport);
      const wire = await connect(served);
      const { file, lines } = openTraces();
      const { taskId } = await create(wire, "work_hold", { file });
      await waitFor(() => lines().includes("started"));
      // One known client sends it twice within a few milliseconds.
      const acknowledged = await Promise.all([1, 2].map(() => wire.request("tasks/cancel", { taskId })));
      expect(acknowledged.map(bare)).toEqual([{ resultType: "complete" }, { resultType: "complete" }]);
      await waitFor(
        () => lines().length > 1,
        () => "the work was never told to stop",
      );
      expect(await reach(wire, taskId, "cancelled")).toMatchObject({
        statusMessage: expect.stringContaining("Cancelled"),
      });
      expect(bare(await wire.request("tasks/cancel", { taskId }))).toEqual({ resultType: "complete" });
      expect(lines()).toEqual(["started", "stopped: Cancelled"]);

      const second = openTraces();
      const { session } = await connectV2(served);
      const holding = await session.callTool("work_hold", { file: second.file });
      await waitFor(() => second.lines().includes("started"));
      await holding.cancel();
      expect((await holding.settle()).outcome.status).toBe("cancelled");
      await waitFor(() => second.lines().includes("stopped: Cancelled"));
    },
  );
});

describe("coming back", () => {
  test.for(transports)(
    "a task is resumed by its reference, after detaching and on another connection (%s)",
    async (transport) => {
      const served = await share(transport);
      const first = await connectV2(served);
      const { file, release, lines } = openTraces();
      const begun = await first.session.callTool("work_hold", { file });
      if (begun.kind !== "task") throw new Error("work_hold was not given as a task");
      await waitFor(() => lines().includes("started"));
      const reference = JSON.parse(JSON.stringify(begun.serializeReference())) as SerializedTaskReference;
      await begun.detach();
      // ext-tasks lets go of a task one turn after it has said so.
      await new Promise((resolve) => setImmediate(resolve));

      const again = await first.session.resumeTask(reference);
      await again.detach();
      const second = await connectV2(served);
      const resumed = await second.session.resumeTask(reference);
      expect(resumed.handle?.taskId).toBe(begun.handle.taskId);
      release();
      expect(resultFromTaskOutcome((await resumed.settle()).outcome)).toMatchObject({
        structuredContent: { data: { released: true } },
      });
      // Detaching has stopped nothing and started nothing.
      expect(lines()).toEqual(["started", "released"]);
      const ended = await second.session.resumeTask({ ...reference });
      expect((await ended.settle()).outcome.status).toBe("completed");
      await expect(second.session.resumeTask({ ...reference, taskId: "nope" as never })).rejects.toThrow();
    },
  );
});

describe("before there is a task", () => {
  test.for(transports)(
    "what a command asks before it starts goes by input_required, without a task; the answer gets the handle (%s)",
    async (transport) => {
      const served = await start(transport);
      const [wire, listing] = await Promise.all([connect(served), served.client("2025-11-25")]);
      const { file, lines } = openTraces();
      const asked = bare(await call(wire, "ask_first", { file }));
      expect(asked).toMatchObject({ resultType: "input_required", requestState: expect.any(String) });
      expect(asked).not.toHaveProperty("taskId");
      const [[key, request] = []] = Object.entries<Fields>(asked.inputRequests);
      expect(request).toMatchObject({ method: "elicitation/create", params: { message: "Who is it for?" } });
      expect((await listing.request("tasks/list")).result).toEqual({ tasks: [] });
      expect(lines()).toEqual([]);

      const answer = { inputResponses: { [key as string]: accept({ name: "Ada" }) }, requestState: asked.requestState };
      const handle = bare(await call(wire, "ask_first", { file }, answer));
      expect(handle).toMatchObject({ resultType: "task", status: "working" });
      expect(await reach(wire, handle.taskId, "completed")).toMatchObject({
        result: { structuredContent: { data: { greeting: "Hello, Ada!" } } },
      });
      expect(lines()).toEqual(["started"]);
      expect((await listing.request("tasks/list")).result).toMatchObject({
        tasks: [{ taskId: handle.taskId, status: "completed" }],
      });

      const second = openTraces();
      const { session, asked: shown } = await connectV2(served, { "Who is it for?": accept({ name: "Grace" }) });
      const execution = await session.callTool("ask_first", { file: second.file });
      expect(execution.kind).toBe("task");
      expect(resultFromTaskOutcome((await execution.settle()).outcome)).toMatchObject({
        structuredContent: { data: { greeting: "Hello, Grace!" } },
      });
      expect(shown).toEqual(["Who is it for?"]);
      expect(second.lines()).toEqual(["started"]);
    },
  );

  test("a call that nobody declared long becomes a task after ten seconds, without starting again", async () => {
    for (const transport of transports) {
      const clock = new FakeClock();
      const wire = await connect(await start(transport, { clock }));
      const { file, lines, release, shows } = openTraces();
      let isAnswered = false;
      const answer = call(wire, "work_late", { file }).finally(() => (isAnswered = true));
      await shows("started");
      await pass(clock, 9_990);
      expect(isAnswered, transport).toBe(false);
      await pass(clock, 10);
      const handle = bare(await answer);
      expect(handle, transport).toMatchObject({ resultType: "task", status: "working" });
      expect(await reach(wire, handle.taskId, "working")).toMatchObject({ createdAt: handle.createdAt });
      release();
      expect(await reach(wire, handle.taskId, "completed")).toMatchObject({
        result: { structuredContent: { data: { released: true } } },
      });
      expect(lines()).toEqual(["started", "released"]);
    }
  });
});

describe("subscriptions/listen with taskIds", () => {
  const acknowledged = "notifications/subscriptions/acknowledged";

  test.for(transports)(
    "a client hears of its task from where it is to its end, with question and result in it (%s)",
    async (transport) => {
      const wire = await open(transport);
      const { file, release } = openTraces();
      const { taskId } = await create(wire, "ask_name", { file });
      await reach(wire, taskId, "input_required");
      const listening = wire.start("subscriptions/listen", { notifications: { taskIds: [taskId] } });
      const asking = await wire.comes("notifications/tasks", ({ params }) => params?.status === "input_required");
      const key = Object.keys(asking.params?.inputRequests)[0] as string;
      expect(asking.params?.inputRequests).toEqual({
        [key]: expect.objectContaining({ method: "elicitation/create" }),
      });
      await wire.request("tasks/update", { taskId, inputResponses: { [key]: accept({ name: "Ada" }) } });
      await wire.comes("notifications/tasks", ({ params }) => params?.status === "working");
      release();
      const completed = await wire.comes("notifications/tasks", ({ params }) => params?.status === "completed");
      expect(completed.params?.result).toMatchObject({
        resultType: "complete",
        structuredContent: { data: { greeting: "Hello, Ada!" } },
      });

      const pushed = wire.received.filter(({ method }) => method !== undefined);
      expect(pushed[0]).toMatchObject({ method: acknowledged, params: { notifications: { taskIds: [taskId] } } });
      expect(pushed[0]?.params?.notifications).toEqual({ taskIds: [taskId] });
      for (const { method, params } of pushed)
        expect([method, params?._meta?.[subscriptionKey]]).toEqual([method, listening.id]);
      const news = wire.of("notifications/tasks").map(({ params }) => params as Fields);
      const statuses = news.map(({ status }) => status as string);
      expect(statuses.filter((status, at) => status !== statuses[at - 1])).toEqual([
        "input_required",
        "working",
        "completed",
      ]);
      for (const params of news) {
        expect(params).toMatchObject({
          taskId,
          createdAt: time,
          lastUpdatedAt: time,
          ttlMs: expect.any(Number),
          pollIntervalMs: expect.any(Number),
        });
        expect(params).not.toHaveProperty("resultType");
      }
      // What tasks/get says now is what was pushed last.
      const { resultType: _type, ...got } = bare(await wire.request("tasks/get", { taskId }));
      const { _meta, ...last } = news.at(-1) as Fields;
      expect(last).toEqual(got);
    },
  );

  test.for(transports)("the SDK's own client listens, and hears of the end (%s)", async (transport) => {
    const served = await share(transport);
    const { client, session } = await connectV2(served);
    const news: Fields[] = [];
    const anything = {
      "~standard": { version: 1 as const, vendor: "test", validate: (value: unknown) => ({ value: value as Fields }) },
    };
    client.setNotificationHandler(
      "notifications/tasks" as never,
      { params: anything } as never,
      ((params: Fields) => void news.push(params)) as never,
    );
    const { file, release } = openTraces();
    const execution = await session.callTool("work_hold", { file });
    const subscription = await client.listen({ taskIds: [execution.handle?.taskId] } as never);
    release();
    await waitFor(
      () => news.find(({ status }) => status === "completed"),
      () => `no end was heard of: ${JSON.stringify(news)}`,
    );
    expect(news.at(-1)).toMatchObject({
      taskId: execution.handle?.taskId,
      result: { structuredContent: { data: { released: true } } },
    });
    await subscription.close();
    expect((await execution.settle()).outcome.status).toBe("completed");
  });

  test("ids that are unknown or somebody else's are left out of the acknowledgement, and nothing is heard of them", async () => {
    const served = await start("HTTP", { store: "sqlite" });
    const piped = await start("stdio", { home: served.home, cwd: served.cwd, store: "sqlite" });
    const stranger = await served.client(revision, { capabilities: withTasks, isAnonymous: true });
    const theirs = openTraces();
    const foreign = await create(stranger, "work_hold", { file: theirs.file });
    for (const wire of [await connect(served), await connect(piped)]) {
      expect(await wire.request("tasks/get", { taskId: foreign.taskId })).toMatchObject({ error: { code: -32602 } });
      const mine = openTraces();
      const { taskId } = await create(wire, "work_hold", { file: mine.file });
      const unknown = "11111111-1111-4111-8111-111111111111";
      wire.start("subscriptions/listen", {
        notifications: { taskIds: [foreign.taskId, unknown, taskId, 5, null, taskId] },
      });
      expect((await wire.comes(acknowledged)).params?.notifications).toEqual({ taskIds: [taskId] });
      mine.release();
      await wire.comes("notifications/tasks", ({ params }) => params?.status === "completed");
      expect(new Set(wire.of("notifications/tasks").map(({ params }) => params?.taskId))).toEqual(new Set([taskId]));
    }
    // Whoever made it can be found by its id alone, and hears of it.
    stranger.start("subscriptions/listen", { notifications: { taskIds: [foreign.taskId] } });
    expect((await stranger.comes(acknowledged)).params?.notifications).toEqual({ taskIds: [foreign.taskId] });
    theirs.release();
    await stranger.comes("notifications/tasks", ({ params }) => params?.status === "completed");
  });

  test.for(transports)(
    "listening ends when the client closes it; the task goes on, and nothing more is sent (%s)",
    async (transport) => {
      const wire = await open(transport);
      const { file, release, lines } = openTraces();
      const { taskId } = await create(wire, "work_hold", { file });
      const first = wire.start("subscriptions/listen", { notifications: { taskIds: [taskId] } });
      await wire.comes("notifications/tasks");
      first.stop();
      // A second one is a subscription of its own, under its own id.
      const second = wire.start("subscriptions/listen", { notifications: { taskIds: [taskId] } });
      await wire.comes("notifications/tasks", ({ params }) => params?._meta[subscriptionKey] === second.id);
      release();
      await wire.comes(
        "notifications/tasks",
        ({ params }) => params?._meta[subscriptionKey] === second.id && params.status === "completed",
      );
      const ofFirst = wire
        .of("notifications/tasks")
        .filter(({ params }) => params?._meta[subscriptionKey] === first.id);
      expect(ofFirst.map(({ params }) => params?.status)).not.toContain("completed");
      second.stop();
      expect(lines()).toEqual(["started", "released"]);
      expect(bare(await call(wire, "quick_echo", { text: "still here" }))).toMatchObject({
        structuredContent: { data: { text: "still here" } },
      });
    },
  );
});

describe("a store that fails", () => {
  const secretless = { code: -32603, message: "Internal error" };
  const unopened = {
    code: -32603,
    message: "The task database cannot be opened; whoever runs the server finds the reason in its log.",
  };

  async function refusesAll(wire: WireClient, taskId: string, told = secretless): Promise<void> {
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const { error } = await wire.request(method, {
        taskId,
        ...(method === "tasks/update" && { inputResponses: { q1: accept({ name: "Ada" }) } }),
      });
      expect(error, method).toEqual(told);
    }
    expect((await call(wire, "work_count", { to: 1 })).error, "tools/call").toEqual(told);
  }

  test.for(transports)(
    "a store that fails is -32603 from every tasks method, and nothing of its inside is told (%s)",
    async (transport) => {
      const served = await start(transport, { store: "sqlite" });
      const wire = await connect(served);
      const { file, release } = openTraces();
      const { taskId } = await create(wire, "work_hold", { file });
      const db = new Database(path.join(served.home, "tasks.db"));
      onTestFinished(() => void db.close());
      db.exec("alter table tasks rename to hidden");
      await refusesAll(wire, taskId);
      expect(wire.exchanges.map(({ status }) => status)).toEqual(wire.exchanges.map(() => 200));
      // What is mended works at once, and the work has gone on.
      db.exec("alter table hidden rename to tasks");
      await reach(wire, taskId, "working");
      release();
      await reach(wire, taskId, "completed");
    },
  );

  test("one that cannot even be opened is -32603 as well, with a sentence that names no path", async () => {
    const served = await start("stdio", {
      store: "sqlite",
      env: { MEANWHILE_STORE: mkdtempSync(path.join(temporaryFolder(), "store-")) },
    });
    await refusesAll(await connect(served), "11111111-1111-4111-8111-111111111111", unopened);
  });
});

/**
 * The SDK's client with ext-tasks on it, which answers questions with what was put down for them; both are gone after
 * the test.
 */
async function connectV2(served: TestServer, answers: Readonly<Record<string, object>> = {}) {
  const asked: string[] = [];
  const answer = (_method: string, { message }: Fields) => {
    asked.push(message);
    return answers[message] ?? { action: "cancel" };
  };
  return { ...(await connectExtTasks(await served.target(), { capabilities: { elicitation }, answer })), asked };
}
