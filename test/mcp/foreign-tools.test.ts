import { expect, test } from "vitest";
import { metaKeys } from "../../src/wire/request-envelope.ts";
import { foreign, serveForeign } from "../helpers/foreign.ts";
import type { Fields, WireClient } from "../helpers/wire.ts";

const listing = {
  title: "Their tool",
  description: "First line.\n\nMore of it.",
  icons: [{ src: "https://example.com/a.png" }],
  annotations: { readOnlyHint: true, title: "Shown", openWorldHint: false },
  inputSchema: { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false },
  outputSchema: {
    type: "object",
    properties: { node: { $ref: "#/$defs/node" }, self: { $ref: "#" }, word: { const: { $ref: "#/not/one" } } },
    $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
  },
  _meta: { "their/key": 1 },
};

async function serve() {
  const bare = foreign(async () => ({ content: [] }), { name: "bare" });
  const full = foreign(async (input) => ({ content: [{ type: "text", text: JSON.stringify(input) }] }), listing);
  return await serveForeign({ bare, full }, { settings: { prompts: true } });
}

async function listFor(revision: string): Promise<Fields> {
  const server = await serve();
  const client = await server.connect({ revision });
  const { result } = await server.settled(client.request("tools/list"));
  return Object.fromEntries(((result?.tools ?? []) as Fields[]).map((tool) => [tool.name, tool]));
}

test("a foreign tool is listed as its server lists it, and may be a task", async () => {
  const { full, bare } = await listFor("2025-11-25");
  const { outputSchema, _meta, execution, name, ...own } = full;
  const { outputSchema: _output, _meta: _theirs, ...theirs } = listing;
  expect(JSON.stringify(own, Object.keys(own).toSorted())).toBe(JSON.stringify(theirs, Object.keys(own).toSorted()));
  expect(own).toEqual(theirs);
  expect({ name, execution }).toEqual({ name: "full", execution: { taskSupport: "optional" } });
  expect(_meta).toEqual({ "their/key": 1, "meanwhile/tool": { async: false } });
  expect(outputSchema.anyOf).toHaveLength(2);
  expect(bare).not.toHaveProperty("outputSchema");
  expect(bare).not.toHaveProperty("annotations");
});

test("what a foreign output schema points at is found where it now stands", async () => {
  const { full } = await listFor("2026-07-28");
  expect(full).not.toHaveProperty("execution");
  expect(full.outputSchema).toMatchObject({
    type: "object",
    anyOf: [
      {
        properties: {
          node: { $ref: "#/anyOf/0/$defs/node" },
          self: { $ref: "#/anyOf/0" },
          word: { const: { $ref: "#/not/one" } },
        },
        $defs: { node: { properties: { next: { $ref: "#/anyOf/0/$defs/node" } } } },
      },
      { required: ["messages"] },
    ],
  });
});

test("arguments reach a foreign tool as they are, fitting or not, and nothing is said of them", async () => {
  const server = await serve();
  const client = await server.connect({ revision: "2025-11-25" });
  const result = await server.settled(client.call("full", { wrong: 1 }));
  expect(result).toEqual({ content: [{ type: "text", text: '{"wrong":1}' }] });
});

test("foreign tools are no prompts", async () => {
  const server = await serve();
  const client = await server.connect({ revision: "2025-11-25" });
  expect((await server.settled(client.request("prompts/list"))).result?.prompts).toEqual([]);
  expect((await server.settled(client.request("prompts/get", { name: "full" }))).error?.message).toMatch(/not found/);
});

test("what a foreign server tells goes to the client that waits; its own bookkeeping and unwanted lines do not", async () => {
  const chatty = foreign(async (_input, relay) => {
    for (const level of ["debug", "warning", "no level"])
      relay.notify("notifications/message", { level, data: { a: 1 }, logger: "theirs", extra: true });
    relay.notify("notifications/resources/updated", { uri: "test://a" });
    relay.notify("notifications/cancelled", { requestId: 1 });
    relay.notify("notifications/progress", { progressToken: 1, progress: 1 });
    relay.notify("notifications/tasks/status", { taskId: "x" });
    relay.notify("tools/call", { name: "bare" });
    return { content: [] };
  });
  const server = await serveForeign({ chatty });
  const client = await server.connect({ revision: "2025-11-25" });
  await server.settled(client.request("logging/setLevel", { level: "warning" }));
  await server.settled(client.call("chatty"));
  expect(client.received.filter(({ method }) => method !== undefined)).toEqual([
    {
      jsonrpc: "2.0",
      method: "notifications/message",
      params: { level: "warning", data: { a: 1 }, logger: "theirs", extra: true },
    },
    { jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri: "test://a" } },
  ]);
});

test("the run of a foreign tool knows its client", async () => {
  const origins: unknown[] = [];
  const knows = foreign(async (_input, { origin }) => {
    origins.push(origin);
    return { content: [] };
  });
  const server = await serveForeign({ knows });
  const capabilities = { sampling: {}, roots: { listChanged: true }, experimental: { x: {} } };
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    const client: WireClient = await server.connect({ revision, capabilities });
    await server.settled(client.call("knows"));
  }
  const declared = { sampling: {}, roots: { listChanged: true } };
  expect(origins).toMatchObject([
    { door: "mcp", folder: server.cwd, client: { isModern: false, capabilities: declared } },
    { door: "mcp", folder: server.cwd, client: { isModern: true, capabilities: declared } },
  ]);
  // What a client has said with its request is said to whoever works on it, but for the token of its progress.
  expect(origins).toMatchObject([{}, { client: { meta: { [metaKeys.clientCapabilities]: capabilities } } }]);
});
