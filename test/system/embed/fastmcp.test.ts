/** Servers of fastmcp, which only the system tier installs. */
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport as PairV1 } from "@modelcontextprotocol/sdk/inMemory.js";
import { FastMCP } from "fastmcp";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/embed/durable.ts";

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });

function makeFast() {
  const server = new FastMCP({ name: "fast", version: "3.0.0" });
  server.addTool({
    name: "echo",
    description: "Echo",
    parameters: z.object({ word: z.string() }),
    execute: async ({ word }) => word,
  });
  return server;
}

test("a server of fastmcp is served as it is", async () => {
  const server = durable(makeFast());
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

test("a session of fastmcp's is closed with its connection, so that nothing of it goes on", async () => {
  const fast = makeFast();
  const sessions: { readonly isReady: boolean }[] = [];
  fast.on("connect", ({ session }) => sessions.push(session));
  const server = durable(fast);
  onTestFinished(() => server.close());
  await server.call("echo", { word: "here" });
  // One says who it is and what tools there are, and one is the caller's own.
  await vi.waitFor(() => expect(sessions.map(({ isReady }) => isReady)).toEqual([true, true]), { timeout: 50_000 });
  await server.close();
  await vi.waitFor(() => expect(sessions.map(({ isReady }) => isReady)).toEqual([false, false]), { timeout: 50_000 });
});

test("of sessions that came and went at once, fastmcp keeps none", async () => {
  const fast = makeFast();
  const server = durable(fast);
  for (let round = 0; round < 5; round++) {
    const [near, far] = PairV1.createLinkedPair();
    await server.connect(far);
    const client = new ClientV1({ name: "test", version: "1" });
    await client.connect(near);
    await client.close();
  }
  await server.close();
  await vi.waitFor(() => expect(fast.sessions).toEqual([]), { timeout: 50_000 });
});
