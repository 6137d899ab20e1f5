import { mkdtempSync, rmdirSync } from "node:fs";
import path from "node:path";
import {
  Client as ClientV2,
  type Transport as TransportV2,
  StreamableHTTPClientTransport as V2Http,
} from "@modelcontextprotocol/client";
import {
  createTaskSessionFromClient,
  resultFromTaskOutcome,
  TaskFailedError,
} from "@modelcontextprotocol/ext-tasks/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolResultSchema,
  ElicitRequestSchema,
  TaskStatusNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { metaKeys } from "../../src/wire/request-envelope.ts";
import { tasksExtension } from "../../src/wire/revisions.ts";
import type { TransportName } from "../helpers/clients.ts";
import { shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { openTraces } from "../helpers/place.ts";
import { overPipes, type SdkTransport, withQuickPolls } from "../helpers/sdk-transport.ts";
import { type ClientOptions, type LocalOptions, openServer, placeOf, type TestServer } from "../helpers/server.ts";
import { clientInfo, type Fields, type Message, type WireClient } from "../helpers/wire.ts";

/**
 * Core tasks of 2025-11-25, over both transports: with the clients that speak them, and by hand where a client hides
 * what matters.
 */

const commands = path.resolve(import.meta.dirname, "../fixtures/tasks/commands");
const transports = ["stdio", "HTTP"] as const;
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
const named = (taskId: string) => ({ [metaKeys.relatedTask]: { taskId } });
const accept = (content: object) => ({ action: "accept", content });
const ends = ["completed", "failed", "cancelled"];

const start = (transport: TransportName, options: LocalOptions = {}) =>
  openServer({ in: placeOf[transport], commands, ...options });
/** One server over each transport for all tests that look at nothing but their own tasks. */
const shared = { HTTP: shareAmongTests(() => start("HTTP")), stdio: shareAmongTests(() => start("stdio")) };
const share = (transport: TransportName) => shared[transport]();
const open = async (transport: TransportName, options: ClientOptions = {}) =>
  await (await share(transport)).client("tasks-2025", options);
/** For what others' tasks would show in: lists and estimates. */
const openAlone = async (transport: TransportName) => await (await start(transport)).client("tasks-2025");

/** Calls a tool as a task; what it is answered with. */
async function create(wire: WireClient, name: string, input: object = {}, more: object = {}): Promise<Fields> {
  const answer = await wire.request("tools/call", { name, arguments: input, task: { ttl: 600_000 }, ...more });
  expect(answer, `${name} as a task`).toMatchObject({ result: { task: { taskId: expect.any(String) } } });
  return answer.result?.task;
}

/** Polls until the task has one of these statuses. */
async function reach(wire: WireClient, taskId: string, ...statuses: string[]): Promise<Fields> {
  return await waitFor(async () => {
    const { result, error } = await wire.request("tasks/get", { taskId });
    if (result === undefined) throw new Error(`tasks/get was refused: ${JSON.stringify(error)}`);
    if (statuses.includes(result.status)) return result;
    if (ends.includes(result.status))
      throw new Error(`the task is ${result.status}, and was to be ${statuses.join(" or ")}`);
    return undefined;
  });
}

/** Makes a task of each kind and waits for its end. */
async function makeEnded(wire: WireClient) {
  const held = openTraces();
  const [counted, refused, stuck, stopped] = await Promise.all([
    create(wire, "work_count", { to: 1 }),
    create(wire, "work_fail"),
    create(wire, "work_protocol"),
    create(wire, "work_hold", { file: held.file }),
  ]);
  await wire.request("tasks/cancel", { taskId: stopped.taskId });
  const tasks = { counted, refused, stuck, stopped };
  for (const { taskId } of Object.values(tasks)) await reach(wire, taskId, ...ends);
  return tasks;
}

/** True when the answer is not there yet, although the server has answered others meanwhile. */
async function isWaiting(wire: WireClient, answer: Promise<Message>): Promise<boolean> {
  for (let n = 0; n < 5; n++) await wire.request("ping");
  return (await Promise.race([answer, Promise.resolve("waits")])) === "waits";
}

/** A result without what differs from run to run. */
function lasting({ _meta, ...result }: Fields): Fields {
  return JSON.parse(
    JSON.stringify(result)
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "then")
      .replace(/finished in [\d.]+ m?s/g, "finished"),
  );
}

describe("what is declared", () => {
  test("initialize declares tasks with tools/call and cancel, and list only for a caller who can be told from others", async () => {
    const [pipe, http] = await Promise.all([start("stdio"), share("HTTP")]);
    const everything = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
    expect((await pipe.client("tasks-2025")).initialized.capabilities.tasks).toEqual(everything);
    expect((await http.client("tasks-2025")).initialized.capabilities.tasks).toEqual(everything);

    const anonymous = await http.client("tasks-2025", { isAnonymous: true });
    expect(anonymous.initialized.capabilities.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } });
    expect(await anonymous.request("tasks/list")).toMatchObject({ error: { code: -32601 } });

    const supports = async (wire: WireClient) => {
      const { result } = await wire.request("tools/list");
      return result?.tools
        .filter(({ name }: Fields) => !name.startsWith("task_"))
        .map(({ execution }: Fields) => execution?.taskSupport);
    };
    expect(new Set(await supports(anonymous))).toEqual(new Set(["optional"]));
    const older = await pipe.client("2025-06-18");
    expect(older.initialized).toMatchObject({ protocolVersion: "2025-06-18", capabilities: { tools: {} } });
    expect(older.initialized.capabilities).not.toHaveProperty("tasks");
    expect(new Set(await supports(older))).toEqual(new Set([undefined]));
  });

  test.for(transports)(
    "params.task is ignored where no task capability was declared: on tools/list, and on tools/call of a 2025-06-18 client (%s)",
    async (transport) => {
      const served = await start(transport);
      const [newer, older] = await Promise.all([served.client("tasks-2025"), served.client("2025-06-18")]);
      const plainList = await newer.request("tools/list");
      const { result: listed } = await newer.request("tools/list", { task: { ttl: 60_000 } });
      expect(listed).toEqual(plainList.result);
      expect(listed?.tools.length).toBeGreaterThan(5);

      for (const task of [{ ttl: 60_000 }, {}, "yes"]) {
        const { result } = await older.request("tools/call", { name: "work_count", arguments: { to: 1 }, task });
        expect(result).toMatchObject({ structuredContent: { success: true, data: { counted: 1 } } });
        expect(result).not.toHaveProperty("task");
      }
      const { result } = await newer.request("tasks/list");
      expect(result).toEqual({ tasks: [] });
    },
  );

  test.for(transports)(
    "the extension's capability means nothing on 2025-11-25: a call without params.task is answered as to a client without tasks (%s)",
    async (transport) => {
      const served = await start(transport);
      const capabilities = { extensions: { [tasksExtension]: {} } };
      const [declaring, plain] = await Promise.all([
        served.client("tasks-2025", { capabilities }),
        served.client("tasks-2025"),
      ]);
      const answers = await Promise.all(
        [declaring, plain].map(async (wire) => {
          const counted = await wire.request("tools/call", {
            name: "work_count",
            arguments: { to: 1 },
            _meta: { "meanwhile/new": true },
          });
          // Longer than anybody waits: whoever takes no tasks gets a plain handle.
          const { file } = openTraces();
          const held = await wire.request("tools/call", {
            name: "work_hold",
            arguments: { file, expectedSeconds: 3600 },
          });
          return { counted: counted.result, held: held.result };
        }),
      );
      for (const { counted, held } of answers) {
        expect(counted).toMatchObject({ structuredContent: { success: true, data: { counted: 1 } } });
        expect(held).toMatchObject({
          structuredContent: {
            success: true,
            data: { job_id: expect.any(String), next_action: { tool: "task_result" } },
          },
        });
        for (const result of [counted, held])
          expect(Object.keys(result ?? {}).toSorted()).toEqual(["_meta", "content", "structuredContent"]);
      }
      expect(lasting(answers[0]?.counted ?? {})).toEqual(lasting(answers[1]?.counted ?? {}));
    },
  );
});

describe("making a task", () => {
  test.for(transports)(
    "tools/call with params.task answers at once with a task: a string id, working, createdAt, lastUpdatedAt, ttl, pollInterval, and no result (%s)",
    async (transport) => {
      const wire = await openAlone(transport);
      const { file, release, lines } = openTraces();
      // The command does not end before it is let go, so an answer can only be one about a task.
      const { result } = await wire.request("tools/call", {
        name: "work_hold",
        arguments: { file, expectedSeconds: 20 },
        task: { ttl: 60_000 },
      });
      const { task, ...others } = result ?? {};
      const { statusMessage: _words, ...facts } = task;
      expect(facts).toEqual({
        taskId: expect.stringMatching(/^[\x21-\x7e]{20,}$/),
        status: "working",
        createdAt: time,
        lastUpdatedAt: time,
        ttl: expect.any(Number),
        pollInterval: 1000,
      });
      expect(Math.abs(Date.parse(facts.createdAt) - Date.now())).toBeLessThan(20_000);
      // From creation to the end of keeping: it grows while the task lives.
      expect(facts.ttl).toBeGreaterThanOrEqual(60_000);
      expect(facts.ttl).toBeLessThan(80_000);
      expect(others).toEqual({
        _meta: { "io.modelcontextprotocol/model-immediate-response": expect.stringContaining(facts.taskId) },
      });

      release();
      expect(await reach(wire, facts.taskId, "completed")).toMatchObject({
        taskId: facts.taskId,
        createdAt: facts.createdAt,
      });
      expect(lines()).toEqual(["started", "released"]);
    },
  );

  test.for(transports)(
    "a taskId that the client sends along is not used: the server makes its own (%s)",
    async (transport) => {
      const wire = await open(transport);
      const mine = "11111111-1111-4111-8111-111111111111";
      const more = { task: { ttl: 60_000, taskId: mine }, taskId: mine, _meta: { ...named(mine), taskId: mine } };
      const first = await create(wire, "quick_echo", { text: "a" }, more);
      const second = await create(wire, "quick_echo", { text: "a" }, more);
      expect(new Set([mine, first.taskId, second.taskId]).size).toBe(3);
      expect(await wire.request("tasks/get", { taskId: mine })).toMatchObject({ error: { code: -32602 } });
      expect(await reach(wire, first.taskId, "completed")).toMatchObject({ taskId: first.taskId });
    },
  );

  test("pollInterval is a twentieth of what the author expects, who sees the arguments with their defaults", async () => {
    const wire = await openAlone("stdio");
    expect(await create(wire, "work_hold", { file: openTraces().file, expectedSeconds: 60 })).toMatchObject({
      pollInterval: 3000,
    });
    expect(await create(wire, "work_hold", { file: openTraces().file, expectedSeconds: 3600 })).toMatchObject({
      pollInterval: 5000,
    });
    expect(await create(wire, "work_hold", { file: openTraces().file })).toMatchObject({ pollInterval: 500 });
  });

  test("over HTTP every tasks request is one POST, answered by one JSON body or one stream that ends with its response", async () => {
    const wire = await open("HTTP", { capabilities: { elicitation: {} }, hasNoStream: true });
    const { file, release } = openTraces();
    const { taskId } = await create(wire, "ask_name", { file });
    const waiting = wire.request("tasks/result", { taskId, _meta: { progressToken: "result" } });
    // No stream is open but that of tasks/result: the question has to come on it.
    const question = await wire.comes("elicitation/create");
    await reach(wire, taskId, "input_required");
    await wire.request("tasks/list");
    await wire.respond(question.id, accept({ name: "Ada" }));
    release();
    expect(await waiting).toMatchObject({ result: { structuredContent: { data: { greeting: "Hello, Ada!" } } } });
    await wire.request("tasks/cancel", { taskId });
    await waitFor(
      () => wire.exchanges.every(({ isOver }) => isOver),
      () => `these bodies never ended: ${JSON.stringify(wire.exchanges.filter(({ isOver }) => !isOver))}`,
    );

    const methods = new Set<string>();
    for (const { method, status, type, messages } of wire.exchanges) {
      if (method === "answer" || method.startsWith("notifications/")) {
        expect({ method, status, messages }).toEqual({ method, status: 202, messages: [] });
        continue;
      }
      methods.add(method);
      expect({ method, status }).toEqual({ method, status: 200 });
      const responses = messages.filter((message) => message.method === undefined);
      expect(responses, `${method}: one response`).toHaveLength(1);
      expect(messages.at(-1), `${method}: it is the last`).toBe(responses[0]);
      if (type.startsWith("application/json")) expect(messages).toHaveLength(1);
      else expect(type, method).toMatch(/^text\/event-stream/);
    }
    expect([...methods]).toEqual(
      expect.arrayContaining(["tools/call", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel"]),
    );
    const ofResult = wire.exchanges.find(({ method }) => method === "tasks/result");
    expect(
      ofResult?.messages
        .filter(({ method }) => method !== "notifications/progress")
        .map(({ method }) => method ?? "response"),
    ).toEqual(["elicitation/create", "response"]);
    expect(ofResult?.messages).toContainEqual(expect.objectContaining({ method: "notifications/progress" }));
  });
});

describe("questions", () => {
  test.for(transports)(
    "a question goes out once, as elicitation/create with the task's id in _meta, and its answer takes the task out of input_required (%s)",
    async (transport) => {
      const wire = await open(transport, { capabilities: { elicitation: {} } });
      const { file, release, lines } = openTraces();
      const { taskId } = await create(wire, "ask_name", { file });
      const question = await wire.comes("elicitation/create");
      expect(question).toMatchObject({
        id: expect.anything(),
        params: {
          message: "What is your name?",
          requestedSchema: {
            type: "object",
            properties: { name: { type: "string", minLength: 1 } },
            required: ["name"],
          },
          _meta: named(taskId),
        },
      });
      expect(await reach(wire, taskId, "input_required")).toMatchObject({
        statusMessage: expect.stringMatching(/^asks: What is your name\? \(to be answered by .* UTC\)$/),
      });
      // Who waits for the result has a stream on which the question could go out a second time.
      const waiting = wire.request("tasks/result", { taskId });
      expect(await isWaiting(wire, waiting)).toBe(true);

      await wire.respond(question.id, accept({ name: "Ada" }));
      expect(await reach(wire, taskId, "working")).toMatchObject({ taskId });
      release();
      expect((await waiting).result).toMatchObject({ structuredContent: { data: { greeting: "Hello, Ada!" } } });
      expect(wire.of("elicitation/create")).toHaveLength(1);
      expect(lines()).toEqual(["started", "answered Ada"]);
    },
  );

  test("a question that nobody could be shown goes out as soon as the client opens its stream", async () => {
    const wire = await open("HTTP", { capabilities: { elicitation: {} }, hasNoStream: true });
    const { file, release } = openTraces();
    release();
    const { taskId } = await create(wire, "ask_name", { file });
    await reach(wire, taskId, "input_required");
    expect(wire.of("elicitation/create")).toEqual([]);
    await wire.openStream();
    await wire.respond((await wire.comes("elicitation/create")).id, accept({ name: "Ada" }));
    await reach(wire, taskId, "completed");
  });

  test.for(transports)(
    "a client without elicitation is not asked, and its task says what it waits for (%s)",
    async (transport) => {
      const wire = await open(transport);
      const { file } = openTraces();
      const { taskId } = await create(wire, "ask_name", { file });
      expect(await reach(wire, taskId, "input_required")).toMatchObject({
        statusMessage: expect.stringContaining("What is your name?"),
      });
      const waiting = wire.request("tasks/result", { taskId });
      expect(await isWaiting(wire, waiting)).toBe(true);
      expect(wire.of("elicitation/create")).toEqual([]);
      await wire.request("tasks/cancel", { taskId });
      expect(await waiting).toMatchObject({ result: { isError: true } });
    },
  );
});

describe("results", () => {
  test.for(transports)(
    "tasks/result of a completed, a failed and a cancelled task answers at once with its final result or JSON-RPC error (%s)",
    async (transport) => {
      const wire = await open(transport);
      const { counted, refused, stuck, stopped } = await makeEnded(wire);
      const results = await Promise.all(
        [counted, refused, stuck, stopped].map(({ taskId }) => wire.request("tasks/result", { taskId })),
      );
      expect(results).toMatchObject([
        { result: { structuredContent: { success: true, data: { counted: 1 } } } },
        {
          result: {
            isError: true,
            structuredContent: { success: false, messages: [{ type: "error", text: "The tank is empty." }] },
          },
        },
        { error: { code: -32042 } },
        { result: { isError: true, content: [{ type: "text", text: expect.stringContaining("Cancelled") }] } },
      ]);
      const again = await Promise.all(
        [counted, refused, stuck, stopped].map(({ taskId }) => wire.request("tasks/result", { taskId })),
      );
      expect(again.map(({ result, error }) => ({ result, error }))).toEqual(
        results.map(({ result, error }) => ({ result, error })),
      );
    },
  );

  test.for(transports)(
    "tasks/result waits while the task is working or input_required, and answers when it ends (%s)",
    async (transport) => {
      const wire = await open(transport, { capabilities: { elicitation: {} } });
      const [holding, asking, stopping] = [openTraces(), openTraces(), openTraces()];
      const held = await create(wire, "work_hold", { file: holding.file });
      const asked = await create(wire, "ask_name", { file: asking.file });
      const stopped = await create(wire, "work_hold", { file: stopping.file });
      const question = await wire.comes("elicitation/create");
      await reach(wire, asked.taskId, "input_required");

      const results = [held, asked, stopped].map(({ taskId }) => wire.request("tasks/result", { taskId }));
      expect(await Promise.all(results.map((result) => isWaiting(wire, result)))).toEqual([true, true, true]);
      holding.release();
      expect(await results[0]).toMatchObject({
        result: { structuredContent: { data: { released: true } }, _meta: named(held.taskId) },
      });
      asking.release();
      await wire.respond(question.id, accept({ name: "Ada" }));
      expect(await results[1]).toMatchObject({
        result: { structuredContent: { data: { greeting: "Hello, Ada!" } }, _meta: named(asked.taskId) },
      });
      await wire.request("tasks/cancel", { taskId: stopped.taskId });
      expect(await results[2]).toMatchObject({ result: { isError: true, _meta: named(stopped.taskId) } });
    },
  );

  test.for(transports)(
    "tasks/result is what the same call gives without a task, isError included, with the related task in _meta (%s)",
    async (transport) => {
      const wire = await open(transport);
      const calls = [
        { name: "work_count", arguments: { to: 2, label: "a" } },
        { name: "work_fail", arguments: {} },
        { name: "quick_echo", arguments: { text: "again" } },
      ];
      for (const call of calls) {
        const direct = await wire.request("tools/call", call);
        const { taskId } = await create(wire, call.name, call.arguments);
        const { result } = await wire.request("tasks/result", { taskId });
        expect(lasting(result ?? {}), call.name).toEqual(lasting(direct.result ?? {}));
        expect(result?._meta, call.name).toMatchObject(named(taskId));
        expect(direct.result?._meta, call.name).not.toHaveProperty(metaKeys.relatedTask);
        expect(result?.isError, call.name).toBe(call.name === "work_fail" ? true : undefined);
      }
    },
  );

  test.for(transports)(
    "a call that ends in a JSON-RPC error gives the same error from tasks/result (%s)",
    async (transport) => {
      const wire = await open(transport);
      const direct = await wire.request("tools/call", { name: "work_protocol" });
      expect(direct.error).toEqual({ code: -32042, message: "The valve is stuck.", data: { valve: 7 } });
      const { taskId } = await create(wire, "work_protocol");
      const { error } = await wire.request("tasks/result", { taskId });
      expect(error).toEqual(direct.error);
      expect(await reach(wire, taskId, "failed")).toMatchObject({
        statusMessage: expect.stringContaining("The valve is stuck."),
      });
    },
  );
});

describe("which task is meant", () => {
  test.for(transports)(
    "question, progress and result of a task name it in _meta; the answers of tasks/get, tasks/list and tasks/cancel do not (%s)",
    async (transport) => {
      const wire = await open(transport, { capabilities: { elicitation: {} } });
      const { file, release } = openTraces();
      const { taskId } = await create(wire, "ask_name", { file }, { _meta: { progressToken: "call" } });
      const progress = await wire.comes("notifications/progress", ({ params }) => params?.progressToken === "call");
      expect(progress.params?._meta).toMatchObject(named(taskId));
      const question = await wire.comes("elicitation/create");
      expect(question.params?._meta).toEqual({ ...named(taskId), "meanwhile/answerUntil": expect.any(String) });
      const waiting = wire.request("tasks/result", { taskId, _meta: { progressToken: "result" } });
      const onResult = await wire.comes("notifications/progress", ({ params }) => params?.progressToken === "result");
      expect(onResult.params?._meta).toMatchObject(named(taskId));
      await wire.respond(question.id, accept({ name: "Ada" }));
      release();
      expect((await waiting).result?._meta).toMatchObject(named(taskId));

      const held = await create(wire, "work_hold", { file: openTraces().file });
      const answers = await Promise.all([
        wire.request("tasks/get", { taskId }),
        wire.request("tasks/list"),
        wire.request("tasks/cancel", { taskId: held.taskId }),
      ]);
      for (const { result } of answers) {
        expect(result).toBeDefined();
        expect(JSON.stringify(result)).not.toContain(metaKeys.relatedTask);
      }
      expect(
        wire.received
          .filter(({ params }) => params?._meta?.[metaKeys.relatedTask] !== undefined)
          .map(({ params }) => params?._meta[metaKeys.relatedTask]),
      ).toEqual(expect.arrayContaining([{ taskId }]));
    },
  );

  test.for(transports)(
    "tasks/get, tasks/result and tasks/cancel go by params.taskId, whatever related task their _meta names (%s)",
    async (transport) => {
      const wire = await open(transport);
      const [first, second] = [openTraces(), openTraces()];
      const counted = await create(wire, "work_count", { to: 1 });
      const held = await create(wire, "work_hold", { file: first.file });
      const other = await create(wire, "work_hold", { file: second.file });
      await reach(wire, counted.taskId, "completed");

      const _meta = named(held.taskId);
      expect((await wire.request("tasks/get", { taskId: counted.taskId, _meta })).result).toMatchObject({
        taskId: counted.taskId,
        status: "completed",
      });
      // Taken for the other, it would wait for ever.
      expect((await wire.request("tasks/result", { taskId: counted.taskId, _meta })).result).toMatchObject({
        structuredContent: { data: { counted: 1 } },
        _meta: named(counted.taskId),
      });
      expect((await wire.request("tasks/cancel", { taskId: other.taskId, _meta })).result).toMatchObject({
        taskId: other.taskId,
        status: "cancelled",
      });
      expect(
        (await wire.request("tasks/get", { taskId: held.taskId, _meta: named(counted.taskId) })).result,
      ).toMatchObject({ status: "working" });
      for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
        expect(await wire.request(method, { _meta }), method).toMatchObject({ error: { code: -32602 } });
      }
    },
  );
});

describe("tasks/list", () => {
  /** Walks all pages; `between` is done after the first. */
  async function walk(
    wire: WireClient,
    params: object = {},
    between: () => Promise<unknown> = async () => undefined,
  ): Promise<Fields[][]> {
    const pages: Fields[][] = [];
    let cursor: string | undefined;
    do {
      const { result, error } = await wire.request("tasks/list", {
        ...params,
        ...(cursor !== undefined && { cursor }),
      });
      expect(error).toBeUndefined();
      pages.push(result?.tasks);
      cursor = result?.nextCursor;
      if (pages.length === 1) await between();
    } while (cursor !== undefined);
    return pages;
  }

  const idsOf = (pages: Fields[][]): string[] => pages.flat().map(({ taskId }) => taskId);

  test.for(transports)(
    "tasks/list gives a nextCursor while there is more, and every task that tasks/get finds exactly once (%s)",
    async (transport) => {
      const wire = await openAlone(transport);
      const { file, lines } = openTraces();
      // A call is no task as long as its client waits for it.
      void wire.request("tools/call", { name: "work_hold", arguments: { file } });
      await waitFor(() => lines().includes("started"));
      const ids: string[] = [];
      for (let n = 0; n < 103; n++) {
        ids.push((await create(wire, "quick_echo", { text: `${n}` })).taskId);
        // Client and server may share this process: others have their turn, as they have between two processes.
        await new Promise(setImmediate);
      }
      await Promise.all(ids.map((taskId) => reach(wire, taskId, "completed")));

      const pages = await walk(wire);
      expect(pages.map(({ length }) => length)).toEqual([100, 3]);
      expect(idsOf(pages).toSorted()).toEqual(ids.toSorted());
      const got = await Promise.all(ids.map((taskId) => wire.request("tasks/get", { taskId })));
      const byId = new Map(got.map(({ result }) => [result?.taskId, result]));
      for (const task of pages.flat()) expect(task).toEqual(byId.get(task.taskId));

      // One that is made between two pages moves none of the others.
      const walked = await walk(wire, { limit: 40 }, () => create(wire, "quick_echo", { text: "late" }));
      const listed = idsOf(walked).filter((taskId) => ids.includes(taskId));
      expect(listed.toSorted()).toEqual(ids.toSorted());
      expect(walked.length).toBe(3);
    },
  );

  test.for(transports)("tasks/list takes a limit from 1 to 100 and refuses any other (%s)", async (transport) => {
    const wire = await openAlone(transport);
    for (let n = 0; n < 3; n++) await create(wire, "quick_echo", { text: `${n}` });
    expect((await wire.request("tasks/list", { limit: 1 })).result).toMatchObject({
      tasks: [{}],
      nextCursor: expect.any(String),
    });
    expect((await wire.request("tasks/list", { limit: 3 })).result).toEqual({
      tasks: [expect.anything(), expect.anything(), expect.anything()],
    });
    expect((await wire.request("tasks/list", { limit: 100 })).result?.tasks).toHaveLength(3);
    for (const limit of [0, -1, 101, 1.5, "5", [1]]) {
      expect(await wire.request("tasks/list", { limit }), JSON.stringify(limit)).toMatchObject({
        error: { code: -32602 },
      });
    }
  });
});

describe("a store that fails", () => {
  const secretless = { code: -32603, message: "Internal error" };
  const unopened = {
    code: -32603,
    message: "The task database cannot be opened; whoever runs the server finds the reason in its log.",
  };

  async function refusesAll(wire: WireClient, taskId: string, told = secretless): Promise<void> {
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"]) {
      expect((await wire.request(method, { taskId })).error, method).toEqual(told);
    }
    const { error } = await wire.request("tools/call", { name: "quick_echo", arguments: { text: "a" }, task: {} });
    expect(error, "tools/call").toEqual(told);
  }

  test.for(transports)(
    "a store that fails is -32603 from every tasks method, and nothing of its inside is told (%s)",
    async (transport) => {
      const served = await start(transport, { store: "sqlite" });
      const wire = await served.client("tasks-2025");
      const { file, release } = openTraces();
      const { taskId } = await create(wire, "work_hold", { file });
      await reach(wire, taskId, "working");
      const db = new Database(path.join(served.home, "tasks.db"));
      onTestFinished(() => void db.close());
      db.exec("alter table tasks rename to hidden");
      await refusesAll(wire, taskId);
      // What is mended works at once, and the work has gone on.
      db.exec("alter table hidden rename to tasks");
      expect((await wire.request("tasks/get", { taskId })).result).toMatchObject({ taskId, status: "working" });
      release();
      await reach(wire, taskId, "completed");
    },
  );

  test("one that cannot even be opened is -32603 as well, with a sentence that names no path", async () => {
    const served = await start("stdio", {
      store: "sqlite",
      env: { MEANWHILE_STORE: mkdtempSync(path.join(temporaryFolder(), "store-")) },
    });
    await refusesAll(await served.client("tasks-2025"), "11111111-1111-4111-8111-111111111111", unopened);
  });

  test("one that cannot even be opened takes away neither the list of tools nor, once it is mended, the tools", async () => {
    const store = mkdtempSync(path.join(temporaryFolder(), "store-"));
    const wire = await (await start("stdio", { env: { MEANWHILE_STORE: store }, store: "sqlite" })).client(
      "tasks-2025",
    );
    const listed = await wire.request("tools/list");
    expect(JSON.stringify(listed)).not.toContain(store);
    expect(listed.result?.tools).toContainEqual(expect.objectContaining({ name: "quick_echo" }));
    rmdirSync(store);
    expect((await wire.request("tools/list")).result?.tools).toContainEqual(
      expect.objectContaining({ name: "quick_echo" }),
    );
    expect((await create(wire, "quick_echo", { text: "a" })).status).toBe("working");
  });
});

/** An SDK's transport, and whether the server can send by itself: over HTTP once the GET stream is open. */
async function transportTo(
  served: TestServer,
  Http: new (url: URL, options: { requestInit: RequestInit; fetch: typeof fetch }) => unknown,
) {
  const target = await served.target();
  let hasStream = "pipes" in target;
  const watched: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method === "GET" && response.ok) hasStream = true;
    return response;
  };
  const transport =
    "url" in target
      ? new Http(new URL(target.url), { requestInit: { headers: { ...target.headers } }, fetch: watched })
      : overPipes((target as Extract<typeof target, { pipes: unknown }>).pipes);
  return { transport: withQuickPolls(transport as SdkTransport), isOpen: () => hasStream };
}

/** An SDK's client with what it was told; it and its server are gone after the test. */
async function connectV1(served: TestServer, answer?: (message: string) => Fields) {
  const client = new Client(clientInfo, { capabilities: answer === undefined ? {} : { elicitation: {} } });
  const statuses: { taskId: string; status: string }[] = [];
  const asked: Fields[] = [];
  client.setNotificationHandler(
    TaskStatusNotificationSchema,
    ({ params: { taskId, status } }) => void statuses.push({ taskId, status }),
  );
  if (answer !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params);
      return answer(params.message) as { action: "accept" };
    });
  }
  const { transport, isOpen } = await transportTo(served, StreamableHTTPClientTransport);
  onTestFinished(() => client.close());
  await client.connect(transport as Transport);
  await waitFor(isOpen);
  const { tasks } = client.experimental;
  const statusesOf = (taskId: string) => statuses.filter((note) => note.taskId === taskId).map(({ status }) => status);
  /** Calls as a task; the messages of the SDK's own driver, as they come. */
  const stream = (name: string, input: Fields, onprogress?: (progress: { progress: number }) => void) =>
    tasks.callToolStream({ name, arguments: input }, CallToolResultSchema, {
      task: { ttl: 60_000 },
      ...(onprogress !== undefined && { onprogress }),
    });
  return { client, tasks, asked, statusesOf, stream };
}

async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const message of stream) all.push(message);
  return all;
}

describe.for(transports)("SDK v1 1.32.2 over %s", (transport) => {
  test("creates a task, polls it, sees its progress and fetches its result", async () => {
    const { client, stream, statusesOf } = await connectV1(await share(transport));
    // With the list at hand the SDK checks results against their schemas.
    await client.listTools();
    const values: number[] = [];
    const messages = await collect(stream("work_count", { to: 5 }, ({ progress }) => void values.push(progress)));
    const types = messages.map(({ type }) => type);
    expect(types[0]).toBe("taskCreated");
    expect(types.at(-1)).toBe("result");
    expect(types.slice(1, -1).length).toBeGreaterThanOrEqual(2);
    expect(new Set(types.slice(1, -1))).toEqual(new Set(["taskStatus"]));
    const shown = messages.flatMap((message) =>
      message.type === "taskCreated" || message.type === "taskStatus" ? [message.task] : [],
    );
    expect(shown.map(({ status }) => status)).toEqual([...shown.slice(1).map(() => "working"), "completed"]);
    expect(messages.at(-1)).toMatchObject({ result: { structuredContent: { success: true, data: { counted: 5 } } } });
    expect(values.length).toBeGreaterThanOrEqual(3);
    expect(values).toEqual([...new Set(values)].sort((a, b) => a - b));
    expect(values.at(-1)).toBe(5);
    const taskId = shown[0]?.taskId as string;
    await waitFor(() => statusesOf(taskId).length > 0);
    expect(statusesOf(taskId)).toEqual(["completed"]);
  });

  test("answers a question of a task, and hears of every status", async () => {
    const { tasks, asked, stream, statusesOf } = await connectV1(await share(transport), () => accept({ name: "Ada" }));
    const { file, release, lines } = openTraces();
    const driver = stream("ask_name", { file });
    const { value: created } = await driver.next();
    const { taskId } = (created as { task: { taskId: string } }).task;
    await waitFor(() => statusesOf(taskId).includes("working"));
    expect(await tasks.getTask(taskId)).toMatchObject({ taskId, status: "working" });
    release();
    expect((await collect(driver)).at(-1)).toMatchObject({
      type: "result",
      result: { structuredContent: { data: { greeting: "Hello, Ada!" } } },
    });
    expect(asked).toMatchObject([{ message: "What is your name?", _meta: named(taskId) }]);
    await waitFor(() => statusesOf(taskId).includes("completed"));
    expect(statusesOf(taskId)).toEqual(["input_required", "working", "completed"]);
    expect(lines()).toEqual(["started", "answered Ada"]);
  });

  test("cancels a task, which stops the work, and lists what there is", async () => {
    const { tasks, stream, statusesOf } = await connectV1(await start(transport));
    const { file, lines } = openTraces();
    const driver = stream("work_hold", { file });
    const { value: created } = await driver.next();
    const { taskId } = (created as { task: { taskId: string } }).task;
    await waitFor(() => lines().includes("started"));
    expect(await tasks.cancelTask(taskId)).toMatchObject({ taskId, status: "cancelled" });
    await waitFor(
      () => lines().length > 1,
      () => "the work was never told to stop",
    );
    expect(lines()).toEqual(["started", "stopped: Cancelled"]);
    expect((await collect(driver)).at(-1)).toMatchObject({
      type: "error",
      error: { message: expect.stringContaining("was cancelled") },
    });
    await waitFor(() => statusesOf(taskId).length > 0);
    expect(statusesOf(taskId)).toEqual(["cancelled"]);

    const [failed] = await collect(stream("work_fail", {}));
    const failedId = (failed as { task: { taskId: string } }).task.taskId;
    expect(await tasks.getTaskResult(failedId, CallToolResultSchema)).toMatchObject({
      isError: true,
      _meta: named(failedId),
    });
    const { tasks: listed, nextCursor } = await tasks.listTasks();
    expect(listed).toHaveLength(2);
    expect(Object.fromEntries(listed.map((task) => [task.taskId, task.status]))).toEqual({
      [taskId]: "cancelled",
      [failedId]: "failed",
    });
    expect(nextCursor).toBeUndefined();
  });
});

test.for(transports)(
  "SDK v2 2.4.0 with ext-tasks 0.2.2 drives tasks of 2025-11-25, questions included (%s)",
  async (transport) => {
    const served = await start(transport);
    const client = new ClientV2(clientInfo, { capabilities: { elicitation: { form: {} } } });
    const { transport: link, isOpen } = await transportTo(served, V2Http);
    onTestFinished(() => client.close());
    await client.connect(link as TransportV2);
    await waitFor(isOpen);
    expect(client.getNegotiatedProtocolVersion()).toBe("2025-11-25");
    const asked: unknown[] = [];
    const session = createTaskSessionFromClient(client, {
      endpointId: "scenario",
      onInputRequest: (async (request: unknown, { taskId }: { taskId?: string }) => {
        asked.push({ request, taskId });
        return accept({ name: "Ada" });
      }) as never,
    });
    onTestFinished(() => session.close());
    const task = { preference: "require" } as const;

    const counting = await session.callTool("work_count", { to: 2 }, { task });
    expect(counting.kind).toBe("task");
    expect(resultFromTaskOutcome((await counting.settle()).outcome)).toMatchObject({
      structuredContent: { data: { counted: 2 } },
    });

    const { file, release } = openTraces();
    release();
    const asking = await session.callTool("ask_name", { file }, { task });
    expect(resultFromTaskOutcome((await asking.settle()).outcome)).toMatchObject({
      structuredContent: { data: { greeting: "Hello, Ada!" } },
    });
    expect(asked).toMatchObject([
      { request: { kind: "elicitation", params: { message: "What is your name?" } }, taskId: asking.handle?.taskId },
    ]);

    const held = openTraces();
    const holding = await session.callTool("work_hold", { file: held.file }, { task });
    await waitFor(() => held.lines().includes("started"));
    await holding.cancel();
    expect((await holding.settle()).outcome.status).toBe("cancelled");
    await waitFor(() => held.lines().includes("stopped: Cancelled"));

    const { outcome } = await (await session.callTool("work_fail", {}, { task })).settle();
    expect(outcome).toMatchObject({ status: "failed", error: expect.any(TaskFailedError) });
    expect((await session.listTasks()).tasks.map(({ status }) => status).toSorted()).toEqual([
      "cancelled",
      "completed",
      "completed",
      "failed",
    ]);
  },
);

test("errorsAsCompleted: true reports a tool's error as completed, for clients that never fetch the result of a failed task", async () => {
  const served = await start("stdio", { config: { errorsAsCompleted: true } });
  const { stream, tasks } = await connectV1(served);
  const messages = await collect(stream("work_fail", {}));
  expect(messages.at(-1)).toMatchObject({
    type: "result",
    result: { isError: true, structuredContent: { messages: [{ text: "The tank is empty." }] } },
  });
  expect((await tasks.listTasks()).tasks).toMatchObject([{ status: "completed" }]);
  // An error of the protocol is none of the tool's: completed, its result could not be fetched.
  const stuck = await collect(stream("work_protocol", {}));
  expect(stuck.at(-1)).toMatchObject({ type: "error" });
  expect(stuck.at(-2)).toMatchObject({ type: "taskStatus", task: { status: "failed" } });

  const usual = await connectV1(await start("stdio"));
  const refused = await collect(usual.stream("work_fail", {}));
  expect(refused.at(-2)).toMatchObject({ type: "taskStatus", task: { status: "failed" } });
  expect(refused.at(-1)).toMatchObject({ type: "error", error: { message: expect.stringMatching(/Task .* failed/) } });
});
