import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { PassThrough } from "node:stream";
import { pathToFileURL } from "node:url";
import { Client as Client2, InMemoryTransport as InMemory2 } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport as InMemory1 } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { createServer, type EmbeddedServer } from "../../src/embed/create-server.ts";
import { durable } from "../../src/embed/durable.ts";
import type { ServerOptions } from "../../src/embed/server-options.ts";
import type { TaskProgress } from "../../src/task/task.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { overStreams, WireClient } from "../helpers/wire.ts";

const add = defineCommand({
  name: "sum add",
  summary: "Adds",
  input: z.object({ a: z.number(), b: z.number() }),
  output: z.object({ sum: z.number() }),
  effects: "read",
  run: ({ a, b }) => ({ sum: a + b }),
});

const who = defineCommand({
  name: "who",
  summary: "Says who calls",
  effects: "read",
  run: (_input, task) => ({ caller: task.caller, home: task.home }),
});

const ask = defineCommand({
  name: "report publish",
  summary: "Asks, then publishes",
  async run(_input, task) {
    task.progress({ done: 1, total: 2, message: "half" });
    const { publish } = await task.ask("Publish it?", z.object({ publish: z.boolean() }));
    return { published: publish };
  },
});

/** Runs until it is let go, or stopped. */
function gated(effects: "read" | "write" = "write") {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const command = defineCommand({
    name: "gate",
    summary: "Waits",
    effects,
    async run(_input, task) {
      begun.resolve();
      const stopped = new Promise<never>((_, reject) =>
        task.signal.addEventListener("abort", () => reject(task.signal.reason)),
      );
      await Promise.race([gate.promise, stopped]);
      return { done: true };
    },
  });
  return { command, begun: begun.promise, open: () => gate.resolve() };
}

function open(options: Partial<ServerOptions> = {}): EmbeddedServer {
  const server = createServer({ name: "acme", version: "1.2.3", commands: [add, who, ask], ...options });
  onTestFinished(() => server.close());
  return server;
}

const dataOf = (result: object) =>
  (result as { readonly structuredContent: { readonly data: unknown } }).structuredContent.data;

describe("Its options", () => {
  test.for<[title: string, options: Record<string, unknown>, sentence: string]>([
    ["no name", { name: undefined }, "createServer: `name` must be text, and it is missing"],
    ["no version", { version: 1 }, "createServer: `version` must be text"],
    ["one that is none", { stroe: ":memory:" }, "createServer: `stroe` is not an option; did you mean `store`?"],
    [
      "a database that is none",
      { store: "mysql://localhost/tasks" },
      'createServer: `store` must be ":memory:", the path of a file, or postgres://user:password@host/database',
    ],
    ["an address that is none", { publicUrl: "acme.example" }, "createServer: `publicUrl` must be an address"],
    ["a folder that is not there", { commands: "./no-such-folder" }, "and there is no such folder"],
    ["a folder elsewhere", { commands: new URL("https://a.example/") }, "which is no folder of this machine"],
    ["something else as commands", { commands: 1 }, "createServer: `commands` must be a list of commands, or a folder"],
    ["a command without a name", { commands: [{ ...add }] }, "`commands`, number 1, is not a command"],
    ["a wrong setting", { deferral: { patience: 1 } }, "createServer: `deferral.patience` is not a setting"],
    ["a wrong number", { graceSeconds: -1 }, "createServer: `graceSeconds` must be seconds from 0 to 600"],
    ["no function", { identify: "me" }, "createServer: `identify` must be a function"],
  ])("are refused at once by name: %s", ([, wrong, sentence]) => {
    const options = { name: "acme", version: "1", commands: [add], ...wrong } as unknown as ServerOptions;
    expect(() => createServer(options)).toThrow(sentence);
  });

  test("name folders of command files: as a path, as a URL, or several", async () => {
    const command = (word: string) =>
      `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({ word: "${word}" }) });\n`;
    const [one, two] = [temporaryFolder(), temporaryFolder()];
    writeFiles(one, { "a/b.ts": command("one") });
    writeFiles(two, { "c.ts": command("two") });
    for (const commands of [one, pathToFileURL(one), [one, pathToFileURL(two)]]) {
      const server = open({ commands, toolPrefix: "x" });
      expect(dataOf(await server.call("x_a_b"))).toEqual({ word: "one" });
    }
    expect(dataOf(await open({ commands: [one, two] }).call("c"))).toEqual({ word: "two" });
  });
});

describe("A call", () => {
  test("gets what a client of MCP gets", async () => {
    const server = open();
    const result = await server.call("sum_add", { a: 1, b: 2 });
    expect(result).toMatchObject({ content: [{ type: "text" }], structuredContent: { success: true } });
    expect(dataOf(result)).toEqual({ sum: 3 });
    expect(await server.call("sum_add", { a: "1", b: 2 })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("`a`") }],
    });
    await expect(server.call("sum_ad")).rejects.toMatchObject({
      code: -32602,
      message: 'Unknown tool "sum_ad"; did you mean sum_add?',
    });
  });

  test("is the process's own, or of a caller whom the app names; others' tasks are not there for either", async () => {
    const server = open();
    expect(dataOf(await server.call("who"))).toMatchObject({ caller: { kind: "local" }, home: process.cwd() });
    const ann = { kind: "app", id: "ann", scopes: ["read"] } as const;
    expect(dataOf(await server.call("who", {}, { caller: ann }))).toMatchObject({
      caller: { kind: "app", id: "ann", scopes: ["read"], groups: [] },
    });
    await expect(server.call("who", {}, { caller: { kind: "app", id: "" } })).rejects.toThrow(
      'A caller must be { kind: "app", id }',
    );
    await expect(server.call("who", {}, { caller: { kind: "app", id: "é".repeat(501) } })).rejects.toThrow(
      "The `id` of a caller has at most 1000 bytes",
    );
    const waiting = server.call("report_publish", {}, { caller: ann });
    const { taskId } = await vi.waitFor(async () => {
      const [task] = (await server.tasks.list({ caller: ann })).tasks;
      expect(task?.status).toBe("input_required");
      return task as { taskId: string };
    });
    for (const caller of [undefined, { kind: "app", id: "bob" }, { kind: "anonymous" }] as const) {
      expect(await server.tasks.get(taskId, { caller })).toBeUndefined();
      expect((await server.tasks.list({ caller })).tasks).toEqual([]);
      await expect(server.tasks.cancel(taskId, { caller })).rejects.toThrow("There is no such task");
    }
    expect(await server.tasks.cancel(taskId, { caller: ann })).toBe(true);
    expect(await waiting).toMatchObject({ isError: true });
  });

  test("of the process or of stdio is of the project's local user: servers of one name on one store share their tasks, and others see none", async () => {
    const store = path.join(temporaryFolder(), "tasks.db");
    const [one, replica, other] = [open({ store }), open({ store }), open({ store, name: "other" })];
    const waiting = one.call("report_publish");
    const { taskId } = await vi.waitFor(async () => {
      const [task] = (await one.tasks.list()).tasks;
      expect(task?.status).toBe("input_required");
      return task as { taskId: string };
    });
    const overStdio = async (server: EmbeddedServer) => {
      const [theirs, ours] = InMemory2.createLinkedPair();
      await server.connect(theirs);
      const client = new Client2({ name: "test", version: "1" });
      await client.connect(ours);
      onTestFinished(() => client.close());
      return JSON.stringify(await client.callTool({ name: "task_status", arguments: { job_id: taskId } }));
    };
    for (const server of [one, replica]) {
      expect(await server.tasks.get(taskId)).toMatchObject({ status: "input_required" });
      expect(await overStdio(server)).toContain("Publish it?");
    }
    expect(await other.tasks.get(taskId)).toBeUndefined();
    expect(await overStdio(other)).toContain("There is no such task");
    await expect(other.tasks.cancel(taskId)).rejects.toThrow("There is no such task");
    expect((await other.tasks.list()).tasks).toEqual([]);
    expect(await replica.tasks.cancel(taskId)).toBe(true);
    expect(await waiting).toMatchObject({ isError: true });
  });

  test("that asks waits as a task until somebody answers, and tells how far it is", async () => {
    const server = open();
    const seen: TaskProgress[] = [];
    const waiting = server.call("report_publish", {}, { onProgress: (progress) => seen.push(progress) });
    const task = await vi.waitFor(async () => {
      const [first] = (await server.tasks.list({ statuses: ["input_required"] })).tasks;
      expect(first?.questions).toHaveLength(1);
      return first as NonNullable<typeof first>;
    });
    const [question] = task.questions;
    expect(question).toMatchObject({ message: "Publish it?", isConfirmation: false });
    const key = question?.key ?? "";
    await expect(server.tasks.answer(task.taskId, { [key]: { publish: true } as never })).rejects.toThrow(
      `The answer to "${key}" must be { action: "accept", content: { … } }`,
    );
    expect(await server.tasks.answer(task.taskId, { [key]: { action: "accept", content: { publish: true } } })).toBe(
      true,
    );
    expect(dataOf(await waiting)).toEqual({ published: true });
    const ended = await server.tasks.wait(task.taskId);
    expect(ended).toMatchObject({ status: "completed", tool: "report_publish", questions: [] });
    expect(dataOf(ended.result ?? {})).toEqual({ published: true });
    expect(seen).toContainEqual(expect.objectContaining({ value: 1, total: 2, message: "half" }));
  });

  test("is answered in the call itself, where that brings an answer along", async () => {
    const server = open();
    const answer = () => ({ action: "accept" as const, content: { publish: false } });
    expect(dataOf(await server.call("report_publish", {}, { answer }))).toEqual({ published: false });
    const fail = () => {
      throw new Error("no idea");
    };
    expect(await server.call("report_publish", {}, { answer: fail })).toMatchObject({ isError: true });
  });

  test("that is taken back stops its run, and rejects with the reason", async () => {
    const { command, begun } = gated();
    const server = open({ commands: [command] });
    const stop = new AbortController();
    const waiting = server.call("gate", {}, { signal: stop.signal });
    await begun;
    stop.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(server.call("gate", {}, { signal: stop.signal })).rejects.toThrow("enough");
  });
});

describe("A transport", () => {
  test("of SDK v1 carries a client: tools, a question, a cancel", async () => {
    const server = open();
    const [theirs, ours] = InMemory1.createLinkedPair();
    await server.connect(ours);
    const client = new Client1({ name: "one", version: "1" }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(
      (await import("@modelcontextprotocol/sdk/types.js")).ElicitRequestSchema,
      () => ({ action: "accept", content: { publish: true } }) as const,
    );
    await client.connect(theirs);
    expect(client.getServerVersion()).toMatchObject({ name: "acme", version: "1.2.3" });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("sum_add");
    expect(dataOf(await client.callTool({ name: "report_publish", arguments: {} }))).toEqual({ published: true });
    await client.close();
  });

  test("of SDK v2 carries a client, and is closed with the server", async () => {
    const server = open();
    const [theirs, ours] = InMemory2.createLinkedPair();
    await server.connect(ours, { caller: { kind: "app", id: "ann" } });
    const client = new Client2({ name: "two", version: "1" });
    await client.connect(theirs);
    expect(dataOf(await client.callTool({ name: "who", arguments: {} }))).toMatchObject({
      caller: { kind: "app", id: "ann" },
    });
    const closed = new Promise<void>((resolve) => {
      client.onclose = resolve;
    });
    await server.close();
    await closed;
  });

  test("cannot smuggle in what is no message, nor share a value", async () => {
    const server = open();
    const sent: { id?: unknown; error?: { message: string }; result?: unknown }[] = [];
    const transport = {
      onmessage: undefined as ((message: unknown) => void) | undefined,
      start: async () => {},
      send: async (message: object) => void sent.push(message),
      close: async () => {},
    };
    await server.connect(transport);
    const cyclic: Record<string, unknown> = { jsonrpc: "2.0", id: 1, method: "ping" };
    cyclic.params = { cyclic };
    for (const message of [cyclic, undefined, [], { jsonrpc: "2.0", id: {}, method: "ping" }, 10n])
      transport.onmessage?.(message);
    expect(sent.map(({ id, error }) => [id, typeof error?.message])).toEqual(Array(5).fill([null, "string"]));
    const { command, begun, open: letGo } = gated();
    const slow = open({ commands: [command] });
    await slow.connect(transport);
    sent.length = 0;
    transport.onmessage?.({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "gate", arguments: {} } });
    await begun;
    transport.onmessage?.({ jsonrpc: "2.0", id: 7, method: "ping" });
    expect(sent).toMatchObject([{ id: null, error: { message: expect.stringContaining("still running") } }]);
    letGo();
    await vi.waitFor(() => expect(sent).toHaveLength(2), { timeout: 50_000 });
  });
});

describe("Streams", () => {
  test("of the app's own are served until the client closes them; the app's stdout stays its own", async () => {
    const server = open();
    const [input, output] = [new PassThrough(), new PassThrough()];
    const before = Object.getOwnPropertyDescriptor(process.stdout, "write");
    const served = server.stdio({ input, output });
    const client = new WireClient(
      overStreams(input, output, async () => void input.end()),
      { revision: "2025-06-18" },
    );
    await client.begin();
    expect(dataOf(await client.call("sum_add", { a: 2, b: 2 }))).toEqual({ sum: 4 });
    await client.close();
    await served;
    expect(Object.getOwnPropertyDescriptor(process.stdout, "write")).toEqual(before);
  });
});

describe("HTTP", () => {
  const call = (name: string, progressToken?: string) =>
    JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: {
        name,
        arguments: {},
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "web", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {},
          ...(progressToken !== undefined && { progressToken }),
        },
      },
    });
  const headersOf = (name: string, more: Record<string, string> = {}) => ({
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
    ...more,
  });
  const identify = async ({ headers }: { readonly headers: Readonly<Record<string, string | undefined>> }) =>
    headers.authorization === "Bearer ann" ? ({ kind: "app", id: "ann" } as const) : undefined;
  const requestOf = (more: Record<string, string> = {}) =>
    new Request("http://127.0.0.1/any/path", { method: "POST", headers: headersOf("who", more), body: call("who") });

  test("by the web's fetch: a caller whom the app identifies, or names; others do not come in", async () => {
    const server = open({ identify });
    const { fetch } = server;
    const known = await fetch(requestOf({ authorization: "Bearer ann" }));
    expect(known.status).toBe(200);
    expect(await known.text()).toContain('"id":"ann"');
    expect((await fetch(requestOf())).status).toBe(401);
    expect(await (await fetch(requestOf(), { caller: { kind: "app", id: "bob" } })).text()).toContain('"id":"bob"');
  });

  test("without `identify`: the app asks for the progress of anonymous callers by their tokens", async () => {
    const { command, begun, open: letGo } = gated();
    const server = open({ commands: [command] });
    const body = call("gate", "tok-1");
    const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers: headersOf("gate"), body });
    const answer = server.fetch(request).then((response) => response.text());
    await begun;
    const caller = { kind: "anonymous" } as const;
    await vi.waitFor(async () =>
      expect(await server.progressOf("tok-1", { caller })).toMatchObject({ ok: true, progress: { tool: "gate" } }),
    );
    expect(await server.listProgress({ caller })).toMatchObject([{ token: "tok-1" }]);
    expect(await server.progressOf("tok-1"), "they are not the user of this process").toMatchObject({ ok: false });
    expect(await server.progressOf("tok-1", { caller: { kind: "app", id: "ann" } })).toMatchObject({ ok: false });
    await expect(server.progressOf("tok-1", { caller: { kind: "somebody" } as never })).rejects.toThrow(TypeError);
    letGo();
    expect(await answer).toContain('"done":true');
  });

  test("by node's request and response, where nobody is asked who they are", async () => {
    const server = open();
    const http = createHttpServer(server.node);
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void http.close());
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
    const post = () => fetch(url, { method: "POST", headers: headersOf("who"), body: call("who") });
    const answer = await post();
    expect(await answer.text()).toContain('"kind":"anonymous"');
    await server.close();
    expect((await post()).status).toBe(503);
  });

  test("that cannot be opened is answered with 500, and the log says why; by the next time it may be mended", async () => {
    const lines: string[] = [];
    const folder = writeFiles(temporaryFolder(), {});
    const server = open({ commands: folder, log: (line) => lines.push(line) });
    const twice = { "a-b.mjs": "", "a_b.mjs": "" };
    writeFiles(folder, twice);
    expect((await server.fetch(requestOf())).status).toBe(500);
    await expect(server.call("who")).rejects.toThrow("Two commands are called a_b");
    expect(lines).toHaveLength(2);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      msg: expect.stringContaining("the server could not be opened: Two commands are called a_b"),
    });
    rmSync(path.join(folder, "a_b.mjs"));
    await expect(server.call("who")).rejects.toThrow("Unknown tool");
  });

  test("of another framework is refused with what to hand over", () => {
    const server = open();
    expect(() => server.node({} as never, {} as never)).toThrow("in Fastify these are `request.raw` and `reply.raw`");
  });

  test("whose response is none, is told so and logged, also when it is the one that opens the server", async () => {
    const lines: string[] = [];
    const left: unknown[] = [];
    const onLeft = (error: unknown) => void left.push(error);
    process.on("unhandledRejection", onLeft);
    onTestFinished(() => void process.off("unhandledRejection", onLeft));
    const server = open({ log: (line) => lines.push(line) });
    const answered = Promise.withResolvers<number>();
    server.node({ rawHeaders: [] }, { writeHead: (status) => answered.resolve(status), end: () => undefined });
    expect(await answered.promise).toBe(500);
    const broken = () => {
      throw new Error("no more");
    };
    open({ log: (line) => lines.push(line) }).node({ rawHeaders: [] }, { writeHead: broken, end: broken });
    await vi.waitFor(() => expect(lines).toHaveLength(2), { timeout: 50_000 });
    expect(lines[0]).toContain("a request could not be answered");
    expect(left).toEqual([]);
  });

  test("after close: 503 and a sentence", async () => {
    const server = open();
    await server.close();
    const refused = await server.fetch(requestOf());
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({
      error: { message: "This server was closed; make another with createServer()." },
    });
  });
});

describe("progressOf and listProgress", () => {
  const countUp = (gate: Promise<void>) => async (progress: (report: { done: number; total: number }) => void) => {
    progress({ done: 1, total: 4 });
    await gate;
  };

  test.each<[string, (gate: Promise<void>) => EmbeddedServer]>([
    [
      "createServer",
      (gate) =>
        open({
          commands: [
            defineCommand({
              name: "count",
              summary: "Counts",
              run: async (_input, task) => {
                await countUp(gate)((report) => task.progress(report));
                return {};
              },
            }),
          ],
        }),
    ],
    [
      "durable",
      (gate) => {
        const server = new McpServer({ name: "one", version: "1.0.0" });
        server.registerTool("count", { description: "Counts" }, async ({ sendNotification, _meta }) => {
          const progressToken = _meta?.progressToken ?? "";
          const sent: Promise<void>[] = [];
          await countUp(gate)(({ done, total }) => {
            const params = { progressToken, progress: done, total };
            sent.push(sendNotification({ method: "notifications/progress", params }));
          });
          await Promise.all(sent);
          return { content: [] };
        });
        const durably = durable(server);
        onTestFinished(() => durably.close());
        return durably;
      },
    ],
  ])("of a server made by %s tell how far a caller's live call is", async (_name, openWith) => {
    const gate = Promise.withResolvers<void>();
    const server = openWith(gate.promise);
    expect(await server.progressOf("abc-1")).toMatchObject({ ok: false, error: "token_not_found" });
    const caller = { kind: "app", id: "ann" } as const;
    const [theirs, ours] = InMemory1.createLinkedPair();
    await server.connect(ours, { caller });
    const client = new Client1({ name: "one", version: "1" });
    await client.connect(theirs);
    const call = client.callTool({ name: "count", arguments: {}, _meta: { progressToken: "abc-1" } });
    const listed = await vi.waitFor(async () => {
      const [first] = await server.listProgress({ caller });
      expect(first).toMatchObject({ token: "abc-1", tool: "count", percentage: 25 });
      return first;
    });
    expect(await server.progressOf("abc-1", { caller })).toEqual({ ok: true, progress: listed, others: [] });
    expect(await server.listProgress()).toEqual([]);
    expect(await server.progressOf("abc-1", { caller: { kind: "app", id: "bob" } })).toMatchObject({ ok: false });
    gate.resolve();
    await call;
    await vi.waitFor(async () => expect(await server.listProgress({ caller })).toEqual([]));
    await client.close();
  });
});

test("Nobody is told to type what no terminal knows: a confirmation is for the app", async () => {
  const drop = defineCommand({ name: "table drop", summary: "Drops it", effects: "destroy", run: () => ({}) });
  const server = open({ commands: [drop], graceSeconds: 0 });
  const [theirs, ours] = InMemory1.createLinkedPair();
  await server.connect(ours);
  const client = new Client1({ name: "one", version: "1" });
  await client.connect(theirs);
  const handle = await client.callTool({ name: "table_drop", arguments: {} });
  const text = JSON.stringify(handle);
  expect(text).toContain("Only a person may answer that, in the app that runs this server.");
  const [task] = (await server.tasks.list()).tasks;
  const [question] = task?.questions ?? [];
  const answers = { [question?.key ?? ""]: { confirm: true } };
  const refused = await client.callTool({ name: "task_answer", arguments: { job_id: task?.taskId, answers } });
  expect(JSON.stringify(refused)).toContain("in the app that runs this server");
  expect(text + JSON.stringify(refused)).not.toContain("meanwhile tasks");
  const yes = { action: "accept", content: { confirm: true } } as const;
  expect(await server.tasks.answer(task?.taskId ?? "", { [question?.key ?? ""]: yes })).toBe(true);
  expect(await server.tasks.wait(task?.taskId ?? "")).toMatchObject({ status: "completed" });
  await client.close();
});

describe("Closed", () => {
  test("it says so, whatever is asked of it, and as often as it is closed", async () => {
    const server = open();
    await server.call("who");
    await Promise.all([server.close(), server.close()]);
    const text = "This server was closed; make another with createServer().";
    for (const asked of [
      () => server.call("who"),
      () => server.tasks.list(),
      () => server.ready(),
      () => server.stdio(),
      () => server.connect(InMemory2.createLinkedPair()[0]),
    ])
      await expect(asked()).rejects.toThrow(text);
  });

  test("while a call runs: it ends within the grace, or the call says which task it is", async () => {
    const { command, begun, open: letGo } = gated();
    const server = open({ commands: [command], graceSeconds: 600 });
    const waiting = server.call("gate");
    await begun;
    const closing = server.close();
    const { isError, content } = await waiting;
    expect(isError).toBe(true);
    expect(content[0]?.text).toMatch(/^The server was closed\. gate is the task [\w-]+; where tasks are kept/);
    letGo();
    await closing;
  });

  test("while nothing was ever opened, it leaves nothing behind", async () => {
    const folder = temporaryFolder();
    const server = open({ store: path.join(folder, "tasks.db") });
    await server.close();
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("A store in a file", () => {
  test("is made with its folder, for its user alone; what lies above is left as it is", async () => {
    const folder = temporaryFolder();
    const before = statSync(folder).mode;
    const store = path.join(folder, "data", "deep", "tasks.db");
    const { command, begun, open: letGo } = gated();
    const server = open({ store, commands: [command, who, ask], graceSeconds: 0 });
    const waiting = server.call("gate");
    await begun;
    expect(dataOf(await server.call("who"))).toMatchObject({ home: path.dirname(store) });
    void server.call("report_publish").catch(() => undefined);
    await vi.waitFor(() => expect(existsSync(store)).toBe(true), { timeout: 50_000 });
    expect((statSync(store).mode & 0o777).toString(8)).toBe("600");
    expect((statSync(path.dirname(store)).mode & 0o777).toString(8)).toBe("700");
    expect(statSync(folder).mode).toBe(before);
    letGo();
    await waiting;
  });

  test("has what an earlier server of that name has left, and a question that was parked", async () => {
    const store = path.join(temporaryFolder(), "tasks.db");
    const first = open({ store, graceSeconds: 0, commands: [ask, who] });
    const waiting = first.call("report_publish");
    const [task] = await vi.waitFor(
      async () => {
        const { tasks } = await first.tasks.list();
        expect(tasks[0]?.status).toBe("input_required");
        return tasks;
      },
      { timeout: 50_000 },
    );
    await first.close();
    expect(await waiting).toMatchObject({ isError: true });
    const other = open({ store, name: "another", commands: [ask] });
    const second = open({ store, commands: [ask] });
    await other.ready();
    const known = await second.tasks.get(task?.taskId ?? "");
    expect(known?.tool).toBe("report_publish");
  });

  test.for<[effects: "read" | "write", status: string]>([
    ["read", "completed"],
    ["write", "failed"],
  ])(
    "has what was running when the server was closed, whole: what only reads runs again, %s",
    async ([effects, status]) => {
      const store = path.join(temporaryFolder(), "tasks.db");
      const { command, begun } = gated(effects);
      const first = open({ store, commands: [command], graceSeconds: 0 });
      const waiting = first.call("gate");
      await begun;
      await first.close();
      const { content } = await waiting;
      const taskId = /the task ([\w-]+)/.exec(String(content[0]?.text))?.[1] ?? "";
      const again = gated(effects);
      again.open();
      const second = open({ store, commands: [again.command] });
      expect(await second.tasks.wait(taskId)).toMatchObject({ taskId, tool: "gate", status });
    },
  );
});
