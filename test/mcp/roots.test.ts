import { expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { serveForeign } from "../helpers/foreign.ts";
import { moving } from "../helpers/in-memory.ts";

const look = defineCommand({ summary: "Look", run: async (_input, task) => ({ roots: await task.roots() }) });
const folders = { roots: [{ uri: "file:///a", name: "a", _meta: {} }, { uri: 1 }, null] };
const expected = { roots: [{ uri: "file:///a", name: "a" }] };

test("a client of 2025-11-25 is asked for its folders while it waits", async () => {
  const server = await serveForeign({ look });
  const client = await server.connect({ revision: "2025-11-25", capabilities: { roots: {} } });
  const call = client.call("look");
  const asked = await moving(server.clock, client.comes("roots/list"));
  await server.settled(client.respond(asked.id, folders));
  expect((await server.settled(call)).structuredContent?.data).toEqual(expected);
});

test("a client of 2026-07-28 is sent back for its folders", async () => {
  const server = await serveForeign({ look });
  const client = await server.connect({ revision: "2026-07-28", capabilities: { roots: {} } });
  const { inputRequests, requestState } = await server.settled(client.call("look"));
  expect(inputRequests).toEqual({ q1: { method: "roots/list", params: {} } });
  const again = { name: "look", arguments: {}, requestState, inputResponses: { q1: folders } };
  const { result } = await server.settled(client.request("tools/call", again));
  expect(result?.structuredContent.data).toEqual(expected);
});

test.each(["2025-11-25", "2026-07-28"])("a client of %s without folders is not asked", async (revision) => {
  const server = await serveForeign({ look });
  const client = await server.connect({ revision, capabilities: { elicitation: {} } });
  expect((await server.settled(client.call("look"))).structuredContent?.data).toEqual({ roots: [] });
});

test("a client that answers with an error has no folders", async () => {
  const server = await serveForeign({ look });
  const client = await server.connect({ revision: "2025-11-25", capabilities: { roots: {} } });
  const call = client.call("look");
  const asked = await moving(server.clock, client.comes("roots/list"));
  await server.settled(client.fail(asked.id, { code: -32_603, message: "No." }));
  expect((await server.settled(call)).structuredContent?.data).toEqual({ roots: [] });
});
