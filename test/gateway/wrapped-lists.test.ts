import { Client } from "@modelcontextprotocol/client";
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { describe, expect, test } from "vitest";
import { modernRevision } from "../../src/wire/revisions.ts";
import { foreign } from "../helpers/foreign.ts";
import { namesIn, textIn } from "../helpers/gateway.ts";
import { wrapHere } from "../helpers/gateway-here.ts";
import { cleanUp } from "../helpers/home.ts";
import { type Asked, plainTool, scriptedUpstream } from "../helpers/scripted-upstream.ts";
import { overPipes } from "../helpers/sdk-transport.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { clientInfo, type Fields, handleOf, type Result, takesTasks, type WireClient } from "../helpers/wire.ts";
import { openWrapped } from "../helpers/wrapped.ts";

const five = ["task_result", "task_status", "task_cancel", "task_list", "task_answer"];
/** Its clients get a handle after 0.09 s. */
const hasty = { hosts: { [clientInfo.name]: { limitSeconds: 0.12, isExtended: false } } };

const outputSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  type: "object",
  properties: { count: { type: "number" } },
  required: ["count"],
  additionalProperties: false,
};
const tool = (name: string) => ({
  ...plainTool(name),
  description: "Counts.",
  execution: { taskSupport: "forbidden" },
  outputSchema,
});
const counted = { content: [{ type: "text", text: "3" }], structuredContent: { count: 3 } };

/** A server whose tool `count` ends when it may. */
function slowUpstream() {
  const gate = Promise.withResolvers<void>();
  const answer = async ({ id, method, params }: Asked) => {
    if (method !== "tools/call") return undefined;
    if (params.name === "fails") return [{ jsonrpc: "2.0", id, error: null }];
    await gate.promise;
    return [{ jsonrpc: "2.0", id, result: counted }];
  };
  cleanUp(gate.resolve);
  return { open: gate.resolve, upstream: scriptedUpstream({ tools: () => [tool("count"), tool("fails")], answer }) };
}

const listed = async (client: WireClient, capabilities?: object) => {
  const options = capabilities === undefined ? {} : { capabilities };
  return ((await client.request("tools/list", {}, options)).result as Fields).tools as Fields[];
};

describe("the list of a wrapped server", () => {
  const manyTools = Array.from({ length: 50 }, (_, at) => tool(`tool-${at}`));
  const bytesOf = (tools: readonly object[]) => Buffer.byteLength(JSON.stringify(tools));

  test("has at most 800 bytes more than the upstream's own, however many tools there are", async () => {
    const client = await (await wrapHere(scriptedUpstream({ tools: () => manyTools }))).connect("stdio", {
      revision: modernRevision,
      capabilities: takesTasks,
    });
    const all = await listed(client);
    expect(all.map(({ name }) => name)).toEqual(["task_result", ...manyTools.map(({ name }) => name)]);
    expect(bytesOf(all) - bytesOf(manyTools)).toBeLessThanOrEqual(800);
  });

  test("has at most 40 bytes more for each output schema where a client may get a handle", async () => {
    const gateway = await wrapHere(scriptedUpstream({ tools: () => manyTools }));
    const client = await gateway.connect("stdio", { revision: "2025-11-25" });
    expect(bytesOf(await listed(client)) - bytesOf(manyTools)).toBeLessThanOrEqual(800 + manyTools.length * 40);
  });

  test("has the upstream's tools word for word for a client that takes tasks of 2026-07-28", async () => {
    const gateway = await wrapHere(scriptedUpstream({ tools: () => manyTools }));
    const client = await gateway.connect("stdio", { revision: modernRevision, capabilities: takesTasks });
    const theirs = manyTools.map(({ execution: _of2025, ...rest }) => rest);
    expect((await listed(client)).slice(1)).toEqual(theirs);
    // Also while other clients are listed schemas that admit a handle.
    const older = await gateway.connect("stdio", { revision: "2025-11-25" });
    const { $schema, type, ...own } = outputSchema;
    expect((await listed(older))[1]?.outputSchema).toEqual({ $schema, type, anyOf: [own, expect.anything()] });
    expect((await listed(client)).slice(1)).toEqual(theirs);
  });

  test("admits a result and a handle where a client may get a handle", async () => {
    const { upstream, open } = slowUpstream();
    const client = await (await wrapHere(upstream, hasty)).connect("stdio", { revision: "2025-11-25" });
    const schema = (await listed(client)).find(({ name }) => name === "count")?.outputSchema;
    const { default: Ajv } = await import("ajv/dist/2020.js");
    const fits = new Ajv.default({ strict: false, validateSchema: false }).compile({ ...schema, $schema: undefined });
    const handle = await client.call("count");
    expect(fits(handle.structuredContent)).toBe(true);
    expect(fits(counted.structuredContent)).toBe(true);
    expect(fits({ count: "three" })).toBe(false);
    open();
    expect(await client.call("task_result", { job_id: handleOf(handle).job_id })).toMatchObject(counted);
  });
});

describe("follow-up tools", () => {
  test.each([
    ["2025-06-18", {}, "stdio"],
    ["2025-11-25", {}, "http"],
    [modernRevision, {}, "stdio"],
    [modernRevision, takesTasks, "http"],
  ] as const)("of a wrapped entry: task_result alone (%s)", async (revision, capabilities, door) => {
    const gateway = await wrapHere(scriptedUpstream());
    const client = await gateway.connect(door, { revision, capabilities });
    expect(await namesIn(client, "tools")).toEqual(["task_result", "count"]);
  });

  test("of a project's own server: five, and one for a client that takes tasks of 2026-07-28", async () => {
    const server = await openServer({ in: "http", commands: { work: foreign(async () => ({ content: [] })) } });
    for (const over of ["stdio", "http"] as const) {
      for (const revision of ["2025-06-18", "2025-11-25", modernRevision]) {
        const client = await server.client({ revision }, { over });
        expect((await namesIn(client, "tools")).filter((name) => name.startsWith("task_"))).toEqual(five);
      }
      const client = await server.client("tasks-2026", { over });
      expect((await namesIn(client, "tools")).filter((name) => name.startsWith("task_"))).toEqual(["task_result"]);
    }
  });

  test("an anonymous caller's task_result wants a job_id", async () => {
    const client = await (await wrapHere(scriptedUpstream())).connect("http", { revision: "2025-11-25" });
    const [alone] = await listed(client);
    expect([alone?.inputSchema.required, alone?.description]).toEqual([
      ["job_id"],
      expect.not.stringContaining("newest"),
    ]);
    const refused = await client.call("task_result");
    expect([refused.isError, textIn(refused)]).toEqual([
      true,
      "`job_id` is missing; it is in the answer to the first call.",
    ]);
  });
});

describe("a client that was listed the tools' own schemas, and calls without declaring tasks", () => {
  const handleIn = ({ content, isError, structuredContent }: Result) => {
    expect([isError, structuredContent]).toEqual([true, undefined]);
    const text = content?.[0]?.text ?? "";
    expect(text).toContain("count is still running. It goes on by itself. Get its result with task_result");
    return JSON.parse(text.slice(text.indexOf("\n"))) as { job_id: string };
  };

  test.each(["stdio", "http"] as const)("gets the handle as text (%s)", async (door) => {
    const { upstream, open } = slowUpstream();
    const client = await (await wrapHere(upstream, hasty)).connect(door, { revision: modernRevision });
    const call = async () =>
      (await client.request("tools/call", { name: "count", arguments: {} }, { capabilities: {} })).result as Result;
    await listed(client, takesTasks);
    const { job_id } = handleIn(await call());
    const failed = await client.call("fails");
    expect([failed.isError, failed.structuredContent]).toEqual([true, undefined]);
    // The next list says otherwise.
    await listed(client, {});
    expect(handleOf(await call()).job_id).toEqual(expect.any(String));
    open();
    expect(await client.call("task_result", { job_id })).toMatchObject(counted);
  });

  test("over HTTP another client of the caller is told apart by its name and version", async () => {
    const { upstream } = slowUpstream();
    const gateway = await wrapHere(upstream, { hosts: { other: { limitSeconds: 0.12, isExtended: false } } });
    await listed(await gateway.connect("http", { revision: modernRevision }), takesTasks);
    const other = await gateway.connect("http", { revision: modernRevision, name: "other" });
    expect(handleOf(await other.call("count")).job_id).toEqual(expect.any(String));
  });

  test("is an SDK v2, which takes it, and checks results against the schema", async () => {
    const { upstream, open } = slowUpstream();
    const gateway = await wrapHere(upstream, hasty);
    const transport = overPipes(gateway.openPipes());
    const send = transport.send.bind(transport);
    // What a host does whose calls go another way than its lists.
    transport.send = async (message: Fields) => {
      if (message.method === "tools/call") delete capabilitiesIn(message).extensions;
      await send(message);
    };
    const client = new Client(clientInfo, {
      capabilities: takesTasks,
      versionNegotiation: { mode: { pin: modernRevision } },
    });
    cleanUp(() => client.close());
    await client.connect(transport as never);
    await client.listTools();
    const { job_id } = handleIn((await client.callTool({ name: "count", arguments: {} })) as Result);
    const failed = await client.callTool({ name: "fails", arguments: {} });
    expect(textIn(failed as never)).toContain("not valid JSON-RPC");
    open();
    expect(await client.callTool({ name: "task_result", arguments: { job_id } })).toMatchObject(counted);
    expect(await client.callTool({ name: "count", arguments: {} })).toMatchObject(counted);
  });

  test.each([
    ["an SDK v1, which can declare none,", () => new V1Client(clientInfo, { capabilities: {} })],
    ["an SDK v2 that declares none", () => new Client(clientInfo, { capabilities: {} })],
  ] as const)("and %s gets a handle that fits the schema it was listed", async (_title, connect) => {
    const { upstream, open } = slowUpstream();
    const gateway = await wrapHere(upstream, hasty);
    const client = connect();
    cleanUp(() => client.close());
    await client.connect(overPipes(gateway.openPipes()) as never);
    await client.listTools();
    const { job_id } = handleOf((await client.callTool({ name: "count", arguments: {} })) as unknown as Result);
    expect(await client.callTool({ name: "fails", arguments: {} })).toMatchObject({ isError: true });
    open();
    expect(await client.callTool({ name: "task_result", arguments: { job_id } })).toMatchObject(counted);
    expect(await client.callTool({ name: "count", arguments: {} })).toMatchObject(counted);
  });
});

const capabilitiesIn = ({ params }: Fields) => params._meta["io.modelcontextprotocol/clientCapabilities"] as Fields;

test("the task of such a client that fails here has no structured content that the tool's schema refuses", async () => {
  const { upstream } = slowUpstream();
  const options = { revision: modernRevision, capabilities: takesTasks };
  const client = await (await wrapHere(upstream)).connect("stdio", options);
  const begun = await client.call("fails", {}, { meta: { "meanwhile/task": {} } });
  const ended = await waitFor(async () => {
    const { result } = await client.request("tasks/get", { taskId: begun.taskId });
    return result?.status === "completed" && (result.result as Result);
  });
  expect([ended.isError, ended.structuredContent]).toEqual([true, undefined]);
  expect(textIn(ended as never)).toContain("not valid JSON-RPC");
});

describe("a method that a wrapped server does not have is unknown, as it is directly", () => {
  const methods = [
    ["prompts/list", {}],
    ["prompts/get", { name: "greet" }],
    ["resources/list", {}],
    ["resources/templates/list", {}],
    ["resources/read", { uri: "note://one" }],
    ["completion/complete", { ref: { type: "ref/prompt", name: "greet" }, argument: { name: "a", value: "" } }],
  ] as const;

  test.each(["2025-11-25", modernRevision])("to a client of %s", async (revision) => {
    const gateway = await wrapHere(scriptedUpstream());
    for (const door of ["stdio", "http"] as const) {
      const client = await gateway.connect(door, { revision });
      for (const [method, params] of methods) {
        const { error } = await client.request(method, params);
        expect([method, error?.code]).toEqual([method, -32601]);
      }
      if (revision === "2025-11-25")
        expect((await client.request("logging/setLevel", { level: "info" })).error?.code).toBe(-32601);
    }
  });

  test.each(["2025-11-25", modernRevision])("nor does a server in durable() have it (%s)", async (revision) => {
    const make = () => {
      const server = new McpServer({ name: "tools alone", version: "1" });
      server.registerTool("count", {}, () => ({ content: [] }));
      return server;
    };
    const client = await (await openWrapped(make)).connect("stdio", { revision });
    for (const [method, params] of methods) {
      const { error } = await client.request(method, params);
      expect([method, error?.code]).toEqual([method, -32601]);
    }
    if (revision === "2025-11-25")
      expect((await client.request("logging/setLevel", { level: "info" })).error?.code).toBe(-32601);
    expect(await namesIn(client, "tools")).toContain("count");
  });

  test("so is tools/list of one without tools, which declares none", async () => {
    const prompts = { prompts: [{ name: "greet" }] };
    const upstream = scriptedUpstream({
      capabilities: { prompts: {} },
      answer: ({ id, method }) =>
        method === "prompts/list"
          ? [{ jsonrpc: "2.0", id, result: prompts }]
          : method === "tools/list"
            ? [{ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } }]
            : undefined,
    });
    const gateway = await wrapHere(upstream);
    const client = await gateway.connect("stdio", { revision: "2025-11-25" });
    expect(client.initialized.capabilities).not.toHaveProperty("tools");
    expect((await client.request("tools/list")).error?.code).toBe(-32601);
    expect(await namesIn(client, "prompts")).toEqual(["greet"]);
    const modern = await gateway.connect("stdio", { revision: modernRevision });
    expect((await modern.request("server/discover")).result?.capabilities).not.toHaveProperty("tools");
  });
});
