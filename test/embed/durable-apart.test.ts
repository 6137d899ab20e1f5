import { EventEmitter } from "node:events";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, onTestFinished, test } from "vitest";
import type { EmbeddedServer } from "../../src/embed/create-server.ts";
import { durable } from "../../src/embed/durable.ts";

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
const form = { type: "object" as const, properties: { word: { type: "string" as const } } };

/** A client that answers every question with its own name, and what it was asked. */
async function connect(server: EmbeddedServer, name: string) {
  const asked: string[] = [];
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far, { caller: { kind: "app", id: name } });
  const client = new Client({ name, version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { word: `word of ${name}` } };
  });
  await client.connect(near);
  onTestFinished(() => client.close());
  return { client, asked };
}

/** Bob's tool waits for what Alice's tool sets off, and then asks, outside of its own request. */
function makeEntangled() {
  const events = new EventEmitter();
  const server = new McpServer({ name: "entangled", version: "1" });
  const ask = (message: string) => server.server.elicitInput({ message, requestedSchema: form });
  server.registerTool("wait", { description: "Waits" }, async () => {
    const answer = await new Promise<unknown>((resolve) =>
      events.once("go", () => ask("question for bob").then(resolve, (error: Error) => resolve(error.message))),
    );
    return text(JSON.stringify(answer));
  });
  server.registerTool("go", { description: "Goes" }, () => {
    events.emit("go");
    return text("gone");
  });
  server.registerTool("plain", { description: "Asks" }, async () => text(JSON.stringify(await ask("who?"))));
  return { server, events };
}

test("what one caller's code asks in the middle of another's call is put to neither, and says how to ask", async () => {
  const { server: inner, events } = makeEntangled();
  const server = durable(inner, { logLevel: "error" });
  onTestFinished(() => server.close());
  const alice = await connect(server, "alice");
  const bob = await connect(server, "bob");
  const waiting = bob.client.callTool({ name: "wait" });
  await expect.poll(() => events.listenerCount("go")).toBe(1);
  await alice.client.callTool({ name: "go" });
  expect(JSON.stringify(await waiting)).toContain("durable(() => makeServer())");
  expect([alice.asked, bob.asked]).toEqual([[], []]);
  // Where nobody else is served at the moment, there is nothing to mistake.
  expect(JSON.stringify(await alice.client.callTool({ name: "plain" }))).toContain("word of alice");
});

test("a server that is made for each has nothing of one caller's for another, also without sessions", async () => {
  let made = 0;
  const make = () => {
    made += 1;
    let held = "nothing";
    const server = new McpServer({ name: "holding", version: "1" });
    server.registerTool("hold", { description: "Holds" }, () => {
      const before = held;
      held = "a secret";
      return text(before);
    });
    return server;
  };
  const server = durable(make);
  onTestFinished(() => server.close());
  const callers = [{ kind: "app", id: "alice" } as const, { kind: "app", id: "bob" } as const];
  for (const caller of callers) expect(await server.call("hold", {}, { caller })).toEqual(text("nothing"));
  expect(await server.call("hold", {}, { caller: { kind: "app", id: "alice" } })).toEqual(text("a secret"));
  const stranger = async () => {
    const answer = await server.fetch(modernCall("hold"));
    return ((await answer.json()) as { result: unknown }).result;
  };
  expect([await stranger(), await stranger()]).toMatchObject([text("nothing"), text("nothing")]);
  expect(made).toBe(5);
});

function modernCall(name: string): Request {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return new Request("http://localhost/mcp", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name, arguments: {}, _meta: meta },
    }),
  });
}
