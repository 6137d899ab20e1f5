import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer as ServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer as ServerV2 } from "@modelcontextprotocol/server";
import { expect, onTestFinished, test, vi } from "vitest";
import type { EmbeddedServer } from "../../src/embed/create-server.ts";
import { durable } from "../../src/embed/durable.ts";

/** What docs/embedding.md says that a tool of somebody's server sees, and what it does not. */

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
const told = (value: unknown) => text(JSON.stringify(value ?? null));

function open(server: EmbeddedServer): EmbeddedServer {
  onTestFinished(() => server.close());
  return server;
}

async function connect(server: EmbeddedServer): Promise<Client> {
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new Client({ name: "test", version: "1" });
  await client.connect(near);
  onTestFinished(() => client.close());
  return client;
}

/** A call over HTTP, as a client of 2026-07-28 sends it. */
async function post({ fetch }: EmbeddedServer, name: string): Promise<string> {
  const method = "tools/call";
  const response = await fetch(
    new Request("http://127.0.0.1/mcp", {
      method: "POST",
      headers: {
        ...{ "content-type": "application/json", accept: "application/json, text/event-stream" },
        ...{ "mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": name },
        authorization: "Bearer secret-of-ann",
      },
      body: JSON.stringify({
        ...{ jsonrpc: "2.0", id: 1, method },
        params: {
          ...{ name, arguments: {} },
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { name: "web", version: "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
          },
        },
      }),
    }),
  );
  return await response.text();
}

const identify = () => ({ kind: "app", id: "ann", client: "app", scopes: ["read"] }) as const;
const ann = { token: "", clientId: "app", scopes: ["read"], extra: { kind: "app", id: "ann", groups: [] } };

test.for<[base: string, make: () => ServerV1 | ServerV2]>([
  [
    "SDK v1",
    () => {
      const server = new ServerV1({ name: "one", version: "1" });
      server.registerTool("see", {}, ({ authInfo, requestInfo }) => told({ authInfo, request: requestInfo }));
      return server;
    },
  ],
  [
    "SDK v2",
    () => {
      const server = new ServerV2({ name: "two", version: "1" });
      server.registerTool("see", {}, ({ http }) => told({ authInfo: http?.authInfo, request: http?.req }));
      return server;
    },
  ],
])("It sees who calls, and neither the token nor the HTTP request: %s", async ([, make]) => {
  const server = open(durable(make(), { identify }));
  const answer = await post(server, "see");
  expect(answer).toContain(JSON.stringify(JSON.stringify({ authInfo: ann })));
  expect(answer).not.toContain("secret-of-ann");
  expect(await server.call("see")).toMatchObject(text("{}"));
});

function counting(): ServerV1 {
  const server = new ServerV1({ name: "counts", version: "1" });
  let count = 0;
  server.registerTool("count", {}, () => text(String(++count)));
  return server;
}

test("What it keeps, it keeps for all sessions of an instance, and for each session of a factory", async () => {
  const counts = async (server: EmbeddedServer) => {
    const clients = [await connect(server), await connect(server)];
    const results = [];
    for (const client of clients) results.push(await client.callTool({ name: "count", arguments: {} }));
    return results;
  };
  expect(await counts(open(durable(counting())))).toMatchObject([text("1"), text("2")]);
  expect(await counts(open(durable(counting)))).toMatchObject([text("1"), text("1")]);
});

/** Asks, and whatever comes of it, ends when it is let go. */
function asking(timeout?: number): { readonly server: ServerV1; readonly letGo: () => void } {
  const server = new ServerV1({ name: "asks", version: "1" });
  const gate = Promise.withResolvers<void>();
  server.registerTool("ask", {}, async () => {
    const form = {
      message: "Go?",
      requestedSchema: { type: "object" as const, properties: { go: { type: "boolean" as const } } },
    };
    const asked = server.server.elicitInput(form, timeout === undefined ? {} : { timeout });
    const { content } = await asked.catch((error: unknown) => ({ content: { error: String(error) } }));
    await gate.promise;
    return told(content);
  });
  server.registerTool("sample", {}, async () => {
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: "Hello" } }];
    return told(await server.server.createMessage({ messages, maxTokens: 1 }));
  });
  return { server, letGo: () => gate.resolve() };
}

test("Its form waits as a task where nobody can be shown it, and the app may answer", async () => {
  const { server: asks, letGo } = asking();
  letGo();
  const server = open(durable(asks));
  const waiting = server.call("ask");
  const task = await vi.waitFor(
    async () => {
      const [first] = (await server.tasks.list({ statuses: ["input_required"] })).tasks;
      if (first === undefined) throw new Error("nothing asks");
      return first;
    },
    { timeout: 50_000 },
  );
  const [question] = task.questions;
  expect(question?.message).toBe("Go?");
  await server.tasks.answer(task.taskId, { [question?.key ?? ""]: { action: "accept", content: { go: true } } });
  expect(await waiting).toMatchObject(told({ go: true }));
});

test("Its SDK's patience ends the question: it goes on, works, and nobody is asked any longer", async () => {
  const { server: asks, letGo } = asking(200);
  const server = open(durable(asks));
  const waiting = server.call("ask");
  await vi.waitFor(
    async () => {
      const [task] = (await server.tasks.list()).tasks;
      expect(task).toMatchObject({ status: "working", questions: [] });
    },
    { timeout: 50_000 },
  );
  letGo();
  expect(await waiting).toMatchObject({ content: [{ text: expect.stringContaining("timed out") }] });
});

test("A client's model is asked of a client that has one, and of no other", async () => {
  const server = open(durable(asking().server));
  const client = await connect(server);
  expect(await client.callTool({ name: "sample", arguments: {} })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("has not declared `sampling`") }],
  });
});
