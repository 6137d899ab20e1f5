import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport as PairV1 } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer as ServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer as ServerV2 } from "@modelcontextprotocol/server";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { durable } from "../../src/embed/durable.ts";

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });

function makeV1() {
  const server = new ServerV1({ name: "one", version: "1.0.0", title: "Number one" });
  server.registerTool("echo", { description: "Echo", inputSchema: { word: z.string() } }, ({ word }) => text(word));
  return server;
}

function makeV2() {
  const server = new ServerV2({ name: "two", version: "2.0.0" });
  server.registerTool("echo", { description: "Echo", inputSchema: z.object({ word: z.string() }) }, ({ word }) =>
    text(word),
  );
  return server;
}

test.each([
  ["SDK v1", () => durable(makeV1())],
  ["SDK v1, a factory", () => durable(makeV1)],
  ["SDK v1, the low level", () => durable(makeV1().server)],
  ["SDK v2", () => durable(makeV2())],
  ["SDK v2, a factory", () => durable(makeV2)],
])("a server of %s is served as it is", async (_name, wrap) => {
  const server = wrap();
  onTestFinished(() => server.close());
  const [near, far] = PairV1.createLinkedPair();
  await server.connect(far);
  const client = new ClientV1({ name: "test", version: "1" });
  await client.connect(near);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain("echo");
  expect(await client.callTool({ name: "echo", arguments: { word: "hello" } })).toMatchObject(text("hello"));
  expect(await server.call("echo", { word: "here" })).toMatchObject(text("here"));
  await client.close();
});

test("a tool with the name of a follow-up tool does not take its place", async () => {
  const lines: string[] = [];
  const server = durable(makeOther(), { log: (line) => void lines.push(line) });
  onTestFinished(() => server.close());
  const [near, far] = PairV1.createLinkedPair();
  await server.connect(far);
  const client = new ClientV1({ name: "test", version: "1" });
  await client.connect(near);
  const { tools } = await client.listTools();
  expect(tools.filter(({ name }) => name === "task_result")).toMatchObject([
    { description: expect.stringContaining("Get the result of a job") },
  ]);
  expect(lines.join()).toContain("task_result of the server is not served");
  const other = durable(makeOther(), { followUpTools: false });
  onTestFinished(() => other.close());
  expect(await other.call("task_result")).toMatchObject(text("theirs"));
});

function makeOther() {
  const server = makeV1();
  server.registerTool("task_result", { description: "Theirs" }, () => text("theirs"));
  return server;
}
