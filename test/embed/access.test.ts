import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { AccessRule } from "../../src/auth/access.ts";
import { defineCommand } from "../../src/command/command.ts";
import { createServer } from "../../src/embed/create-server.ts";
import { durable } from "../../src/embed/durable.ts";

const command = (name: string, scopes: readonly string[] = []) =>
  defineCommand({ name, summary: name, scopes, run: (_input, { caller }) => ({ id: caller.id }) });
const auth = {
  access: [
    { tools: "ops_*", groups: ["ops"] },
    { tools: "note_purge", scopes: ["notes:admin"] },
  ],
};
const app = (more: { readonly scopes?: readonly string[]; readonly groups?: readonly string[] } = {}) =>
  ({ kind: "app", id: "ada", ...more }) as const;

/** A request of 2025-06-18 without a session. */
const requestOf = (method: string, params: object) =>
  new Request("http://localhost/mcp", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });

describe("a server of an app", () => {
  const open = () => {
    const commands = [
      command("note read"),
      command("note write", ["notes:write"]),
      command("note purge"),
      command("ops drain"),
    ];
    const server = createServer({ name: "acme", version: "1.0.0", commands, auth });
    onTestFinished(() => server.close());
    return server;
  };

  test("holds the callers that the app names to scopes and groups, over HTTP and in calls", async () => {
    const server = open();
    const statusOf = async (name: string, caller: ReturnType<typeof app>) =>
      (await server.fetch(requestOf("tools/call", { name, arguments: {} }), { caller })).status;
    expect(await statusOf("note_read", app())).toBe(200);
    expect(await statusOf("note_write", app())).toBe(403);
    expect(await statusOf("note_write", app({ scopes: ["notes:write"] }))).toBe(200);
    await expect(server.call("note_write", {}, { caller: app() })).rejects.toThrow(
      'Calling "note_write" needs the scopes meanwhile:call, notes:write; the caller has no scope.',
    );
    await expect(server.call("note_purge", {}, { caller: app({ scopes: ["notes:write"] }) })).rejects.toThrow(
      "notes:admin",
    );
    expect((await server.call("note_write", {}, { caller: app({ scopes: ["notes:write"] }) })).isError).not.toBe(true);
    expect((await server.call("note_purge")).isError, "the program itself").not.toBe(true);
  });

  test("hides the tools of other groups", async () => {
    const server = open();
    const messageOf = (name: string, caller = app()) =>
      server.call(name, {}, { caller }).then(
        () => "called",
        (error: Error) => error.message.replaceAll(name, "NAME"),
      );
    expect(await messageOf("ops_drain")).toBe(await messageOf("ops_droin"));
    expect(await messageOf("ops_drain", app({ groups: ["ops"] }))).toBe("called");
    const listed = await server.fetch(requestOf("tools/list", {}), { caller: app() });
    expect(await listed.text()).not.toMatch(/ops_drain|note_purge|note_write/);
  });

  test("takes the rights of callers whose scopes name one of Meanwhile's", async () => {
    const server = open();
    const reader = app({ scopes: ["meanwhile:read"] });
    await expect(server.call("note_read", {}, { caller: reader })).rejects.toThrow("meanwhile:call");
    await expect(server.tasks.cancel("x", { caller: reader })).rejects.toThrow("meanwhile:call");
    expect(await server.tasks.get("x", { caller: reader })).toBeUndefined();
  });
});

test("a client over a transport has the rights of the caller that the app names for it", async () => {
  const server = createServer({ name: "acme", version: "1.0.0", commands: [command("note purge")], auth });
  onTestFinished(() => server.close());
  const connect = async (caller: ReturnType<typeof app>) => {
    const [theirs, ours] = InMemoryTransport.createLinkedPair();
    await server.connect(ours, { caller });
    const client = new Client({ name: "one", version: "1" });
    await client.connect(theirs);
    return client;
  };
  const purge = { name: "note_purge", arguments: {} };
  await expect((await connect(app())).callTool(purge)).rejects.toThrow("notes:admin");
  expect((await (await connect(app({ scopes: ["notes:admin"] }))).callTool(purge)).isError).not.toBe(true);
});

test("a wrapped server's tools are held to the same rules", async () => {
  const mcp = new McpServer({ name: "theirs", version: "1.0.0" });
  for (const name of ["ops_drain", "note_purge", "note_read"])
    mcp.registerTool(name, { description: name }, () => ({ content: [{ type: "text", text: "by hand" }] }));
  const server = durable(mcp, { auth });
  onTestFinished(() => server.close());
  const ask = async (method: string, params: object, caller = app()) => {
    const response = await server.fetch(requestOf(method, params), { caller });
    return { status: response.status, text: (await response.text()).replaceAll(/^id: .*$/gm, "") };
  };
  const call = (name: string, caller = app()) => ask("tools/call", { name, arguments: {} }, caller);
  expect((await call("note_read")).text).toContain("by hand");
  expect((await call("note_purge")).status).toBe(403);
  expect((await call("note_purge", app({ scopes: ["notes:admin"] }))).text).toContain("by hand");
  expect((await call("ops_drain", app({ groups: ["ops"] }))).text).toContain("by hand");
  const [hidden, unknown] = [await call("ops_drain"), await call("ops_droin")];
  expect(hidden.text.replaceAll("ops_drain", "NAME")).toBe(unknown.text.replaceAll("ops_droin", "NAME"));
  expect((await ask("tools/list", {})).text).not.toMatch(/ops_drain|note_purge/);
});

describe("a wrapped server that answers more than it lists", () => {
  const open = (access: readonly AccessRule[]) => {
    const done: string[] = [];
    const mcp = new Server({ name: "theirs", version: "1.0.0" }, { capabilities: { tools: {} } });
    const tools = [{ name: "ops_drain", inputSchema: { type: "object" as const } }];
    mcp.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
    mcp.setRequestHandler(CallToolRequestSchema, ({ params }) => {
      done.push(params.name);
      return { content: [] };
    });
    mcp.setRequestHandler(z.object({ method: z.literal("acme/wipe") }), ({ method }) => {
      done.push(method);
      return {};
    });
    const server = durable(mcp, { auth: { access } });
    onTestFinished(() => server.close());
    const ask = async (method: string, params: object, caller: ReturnType<typeof app>) =>
      (await server.fetch(requestOf(method, params), { caller })).text();
    return { done, ask };
  };

  test("is called by the names alone that rules can match", async () => {
    const { done, ask } = open([{ tools: "ops_*", scopes: ["ops"] }]);
    for (const name of ["OPS_DRAIN", "ops-drain", " ops_drain"])
      expect(await ask("tools/call", { name, arguments: {} }, app())).toContain("Unknown tool");
    expect(done).toEqual([]);
    await ask("tools/call", { name: "ops_drain", arguments: {} }, app({ scopes: ["ops"] }));
    expect(done).toEqual(["ops_drain"]);
  });

  test("is sent methods of its own for callers with meanwhile:call alone", async () => {
    const { done, ask } = open([]);
    expect(await ask("acme/wipe", {}, app({ scopes: ["meanwhile:read"] }))).toContain("meanwhile:call");
    expect(done).toEqual([]);
    await ask("acme/wipe", {}, app({ scopes: ["meanwhile:call"] }));
    expect(done).toEqual(["acme/wipe"]);
  });
});

test.each<[unknown, string]>([
  [{ access: [{ tools: "a b" }] }, "createServer: `auth.access.0.tools` must be a tool's name, or a pattern"],
  [{ access: [{ tools: "a" }, { tools: "a" }] }, 'each pattern once; "a" is there twice'],
  [{ access: [{}] }, "`auth.access.0` must be { tools, scopes, groups } with at least `tools`"],
  [{ access: [{ tools: "a", groups: [] }] }, "`auth.access.0.groups` must be a list of one or more groups"],
  [{ access: [{ tools: "a", scopes: ["a b"] }] }, "`auth.access.0.scopes` must be a list of scopes without spaces"],
  [{ access: [{ tools: "a", scopes: ["meanwhile:cal"] }] }, "those that begin with meanwhile: are meanwhile:read, "],
  [{ access: [{ tools: "a", scope: [] }] }, "did you mean `auth.access.0.scopes`?"],
  [{ issuers: [] }, "createServer: `auth` must be { access:"],
])("the option auth: %j is refused", (given, sentence) => {
  const options = { name: "acme", version: "1.0.0", commands: [command("a")], auth: given as typeof auth };
  expect(() => createServer(options)).toThrow(sentence);
});
