import { PassThrough } from "node:stream";
import { InMemoryTransport as PairV1 } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server as LowV1 } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer as ServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { UrlElicitationRequiredError } from "@modelcontextprotocol/sdk/types.js";
import { InMemoryTransport as PairV2, McpServer as ServerV2 } from "@modelcontextprotocol/server";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { durable } from "../../src/embed/durable.ts";
import { type Fields, takesTasks } from "../helpers/wire.ts";
import { doors, openWrapped } from "../helpers/wrapped.ts";

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
const timeout = { timeout: 50_000 };

function makeServer(name = "one"): ServerV1 {
  const server = new ServerV1({ name, version: "1.0.0" });
  server.registerTool("who", { description: "Says who it is" }, () => text(name));
  return server;
}

test("a server that is connected already is refused, in one sentence that says what to do", async () => {
  const [mcpV1, lowV1, mcpV2] = [
    makeServer(),
    new LowV1({ name: "low", version: "1" }, { capabilities: { tools: {} } }),
    new ServerV2({ name: "two", version: "1" }),
  ];
  await mcpV1.connect(PairV1.createLinkedPair()[0]);
  await lowV1.connect(PairV1.createLinkedPair()[0]);
  await mcpV2.connect(PairV2.createLinkedPair()[0]);
  for (const server of [mcpV1, lowV1, mcpV2])
    expect(() => durable(server)).toThrow(
      "the server handed to durable() is connected already; hand it over before it is connected, and serve what durable() returns",
    );
});

test("one that its author connects elsewhere before it is first used is refused then, and the log says why", async () => {
  const given = makeServer();
  const { connect, logged } = await openWrapped(given);
  await given.connect(PairV1.createLinkedPair()[0]);
  const client = await connect("http", { revision: "2026-07-28" });
  const { status, error } = await client.request("tools/list");
  expect([status, error]).toEqual([500, { code: -32603, message: "Internal error" }]);
  expect(logged.join("\n")).toContain("connected already");
});

const overHttp = doors.filter(([door]) => door === "http");

test.each(overHttp)("a factory that throws once is asked again by the next client (%s, %s)", async (door, revision) => {
  let made = 0;
  const { connect, logged } = await openWrapped(() => {
    made += 1;
    // The first is for what all share, the second for the first session.
    if (made <= 1) throw new Error("the password is swordfish");
    return makeServer();
  });
  const first = await connect(door, { revision }).then(
    async (client) => await client.request("tools/list"),
    (error: unknown) => error,
  );
  expect(JSON.stringify(first) + String(first)).not.toContain("swordfish");
  expect(logged.join("\n")).toContain("the function handed to durable() made no server");
  const client = await connect(door, { revision });
  expect(await client.call("who")).toMatchObject(text("one"));
});

test.each(overHttp)(
  "a factory that always throws keeps nobody waiting, and tells nobody why (%s, %s)",
  async (door, revision) => {
    const { connect, logged, server } = await openWrapped(() => {
      throw new Error("the password is swordfish");
    });
    for (let n = 0; n < 2; n++) {
      const answer = await connect(door, { revision }).then(
        async (client) => await client.request("tools/call", { name: "who", arguments: {} }),
        (error: unknown) => error,
      );
      expect(JSON.stringify(answer) + String(answer)).not.toContain("swordfish");
    }
    await expect(server.call("who")).rejects.toThrow("The function handed to durable() made no server.");
    await expect(server.stdio({ input: new PassThrough(), output: new PassThrough() })).rejects.toThrow(
      "made no server",
    );
    expect(logged.filter((line) => line.includes("swordfish")).length).toBeGreaterThanOrEqual(2);
  },
);

test("a factory that throws for one session alone is told to that one, and the others go on", async () => {
  let isBroken = false;
  const { connect } = await openWrapped(() => {
    if (isBroken) throw new Error("swordfish");
    return makeServer();
  });
  const before = await connect("http", { revision: "2025-11-25" });
  isBroken = true;
  await expect(connect("http", { revision: "2025-11-25" })).rejects.toThrow();
  expect(await before.call("who")).toMatchObject(text("one"));
  // A stranger without a session has a server of its own for each call.
  const modern = await connect("http", { revision: "2026-07-28" });
  const { error } = await modern.request("tools/call", { name: "who", arguments: {} });
  expect(error).toEqual({
    code: -32603,
    message: "The server behind this address could not be started; its log says why.",
  });
  isBroken = false;
  expect(await modern.call("who")).toMatchObject(text("one"));
  expect(await (await connect("http", { revision: "2025-11-25" })).call("who")).toMatchObject(text("one"));
});

test("a factory that returns one server twice is told so in the log, and its clients that it could not be started", async () => {
  const only = makeServer();
  const { connect, logged } = await openWrapped(() => only);
  const modern = await connect("http", { revision: "2026-07-28" });
  expect((await modern.request("tools/call", { name: "who", arguments: {} })).error).toMatchObject({ code: -32603 });
  await expect(connect("http", { revision: "2025-11-25" })).rejects.toThrow();
  expect(
    logged.filter((line) => line.includes("returned a server that is connected already; make a new one each time")),
  ).toHaveLength(2);
});

/** Tools that begin, and end when they are let. */
function makeGated(gates: { readonly begun: string[]; release: Promise<void> }): ServerV1 {
  const server = makeServer();
  for (const [name, readOnlyHint] of [
    ["look", true],
    ["order", false],
  ] as const)
    server.registerTool(name, { description: name, annotations: { readOnlyHint } }, async () => {
      gates.begun.push(name);
      await gates.release;
      return text(`${name} is done`);
    });
  return server;
}

test.each(["one", "factory"] as const)(
  "a server closed by its author while tasks run (%s): what is safe runs again, the rest says so, the next client is served",
  async (kind) => {
    const released = Promise.withResolvers<void>();
    const gates = { begun: [] as string[], release: released.promise };
    const made: ServerV1[] = [];
    const make = () => {
      const server = makeGated(gates);
      made.push(server);
      return server;
    };
    const long = { long: true };
    const { connect } = await openWrapped(kind === "one" ? make() : make, { tools: { look: long, order: long } });
    const client = await connect("http", { revision: "2026-07-28", capabilities: takesTasks });
    const [look, order] = [await client.call("look"), await client.call("order")];
    await vi.waitFor(() => expect(gates.begun).toHaveLength(2), timeout);
    for (const server of made) await server.close();
    const stateOf = async (taskId: unknown) => (await client.request("tasks/get", { taskId })).result;
    await vi.waitFor(
      async () =>
        expect(await stateOf(order.taskId)).toMatchObject({
          status: "failed",
          error: { message: expect.stringContaining("outcome is unknown") },
        }),
      timeout,
    );
    await vi.waitFor(() => expect(gates.begun.filter((name) => name === "look")).toHaveLength(2), timeout);
    released.resolve();
    await vi.waitFor(
      async () =>
        expect(await stateOf(look.taskId)).toMatchObject({ status: "completed", result: text("look is done") }),
      timeout,
    );
    expect(gates.begun.filter((name) => name === "order")).toHaveLength(1);
    for (const [door, revision] of doors)
      expect(await (await connect(door, { revision })).call("who")).toMatchObject(text("one"));
  },
);

test("a tool that closes over something of its HTTP request still answers; the request itself it has not", async () => {
  const server = new ServerV1({ name: "one", version: "1.0.0" });
  server.registerTool(
    "headers",
    { description: "Looks at the request", inputSchema: { word: z.string() } },
    ({ word }, extra) => text(`${word}: ${String(extra.requestInfo?.headers?.authorization)}`),
  );
  const { connect } = await openWrapped(server);
  const client = await connect("http", { revision: "2025-11-25", headers: { authorization: "Bearer secret" } });
  expect(await client.call("headers", { word: "x" })).toMatchObject(text("x: undefined"));
});

test("a link that must be opened first is the error −32042 for clients that know it, word for word", async () => {
  const server = makeServer();
  const link = { mode: "url" as const, message: "Sign in", url: "https://example.com/in", elicitationId: "e1" };
  server.registerTool("private", { description: "Wants a link opened" }, () => {
    throw new UrlElicitationRequiredError([link], "Sign in first");
  });
  const { connect } = await openWrapped(server);
  for (const door of ["stdio", "http"] as const) {
    const older = await connect(door, { revision: "2025-11-25", capabilities: { elicitation: { url: {} } } });
    expect((await older.request("tools/call", { name: "private", arguments: {} })).error).toEqual({
      code: -32042,
      message: expect.stringContaining("Sign in first"),
      data: { elicitations: [link] },
    });
    const newer = await connect(door, { revision: "2026-07-28", capabilities: { elicitation: { url: {} } } });
    const { result } = await newer.request("tools/call", { name: "private", arguments: {} });
    const [asked] = Object.values((result as Fields).inputRequests as Fields);
    expect(asked).toMatchObject({ method: "elicitation/create", params: { mode: "url", url: link.url } });
  }
});

test("what is said of tools is checked by name, and asksFirst asks a client that takes tasks ahead of the task", async () => {
  const wrong = (said: object) => () => durable(makeServer(), { tools: { who: said } });
  expect(wrong({ asksFirst: "yes" })).toThrow("durable: `tools.who.asksFirst` must be true or false");
  expect(wrong({ taskSupport: "always" })).toThrow(
    'durable: `tools.who.taskSupport` must be "optional", "required" or "forbidden"',
  );
  const server = makeServer();
  server.registerTool("ask", { description: "Asks" }, async () => {
    const requestedSchema = { type: "object" as const, properties: { name: { type: "string" as const } } };
    const { content } = await server.server.elicitInput({ message: "Who?", requestedSchema });
    return text(`hello ${String(content?.name)}`);
  });
  const { connect } = await openWrapped(server, { tools: { ask: { long: true, asksFirst: true } } });
  const capabilities = { ...takesTasks, elicitation: {} };
  const client = await connect("http", { revision: "2026-07-28", capabilities });
  const call = { name: "ask", arguments: {} };
  const { resultType, inputRequests, requestState } = (await client.request("tools/call", call)).result as Fields;
  expect(resultType).toBe("input_required");
  const [key = ""] = Object.keys(inputRequests);
  const inputResponses = { [key]: { action: "accept", content: { name: "Ann" } } };
  const { result } = await client.request("tools/call", { ...call, requestState, inputResponses });
  expect(result).toMatchObject({ resultType: "task" });
  await vi.waitFor(
    async () =>
      expect((await client.request("tasks/get", { taskId: result?.taskId })).result).toMatchObject({
        status: "completed",
        result: text("hello Ann"),
      }),
    timeout,
  );
  // Who cannot be sent back with questions gets the task at once, and is asked by it.
  const silent = await connect("http", { revision: "2026-07-28", capabilities: takesTasks });
  expect(await silent.call("ask")).toMatchObject({ resultType: "task" });
});
