import path from "node:path";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  RootsListChangedNotificationSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { durable } from "../../src/embed/durable.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { overHttp, WireClient } from "../helpers/wire.ts";

/** What one node's server of a session has heard of its client, and how it tells of a resource. */
interface Heard {
  readonly lines: string[];
  readonly update: (uri: string) => void;
}

/** Two apps on one store, each with somebody else's server in it, made anew for every session. */
async function openNodes() {
  const store = path.join(temporaryFolder(), "store", "tasks.db");
  const nodes = [0, 1].map(() => {
    const sessions: Heard[] = [];
    const app = durable(() => makeServer(sessions), { store, graceSeconds: 0 });
    cleanUp(() => app.close());
    return { app, sessions };
  });
  let at = 0;
  const fetchThere = (url: string, init: RequestInit) =>
    (nodes[at] as (typeof nodes)[number]).app.fetch(new Request(url, init));
  const link = overHttp("http://localhost/mcp", { fetch: fetchThere });
  cleanUp(() => link.close());
  const client = await new WireClient(link, {
    revision: "2025-11-25",
    capabilities: { roots: { listChanged: true } },
  }).begin();
  const heard = (node: number) => nodes[node]?.sessions.at(-1) as Heard;
  const go = (node: number) => {
    at = node;
  };
  return { client, heard, go };
}

function makeServer(sessions: Heard[]): McpServer {
  const server = new McpServer(
    { name: "theirs", version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true } } },
  );
  const lines: string[] = [];
  server.registerTool("look", { description: "Looks" }, async () => ({ content: [{ type: "text", text: "seen" }] }));
  server.registerResource("note", "notes://one", {}, async (uri) => ({
    contents: [{ uri: uri.href, text: "a note" }],
  }));
  const note = (line: string) => {
    lines.push(line);
    return {};
  };
  server.server.oninitialized = () => void note("initialized");
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => note(`+${params.uri}`));
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => note(`-${params.uri}`));
  server.server.setNotificationHandler(RootsListChangedNotificationSchema, () => void note("roots changed"));
  sessions.push({ lines, update: (uri) => void server.server.sendResourceUpdated({ uri }) });
  return server;
}

test("what a client has told somebody else's server, the one on another node knows as well, whether it was there before or not", async () => {
  const { client, heard, go } = await openNodes();
  await client.request("resources/subscribe", { uri: "notes://one" });
  await client.request("resources/subscribe", { uri: "notes://two" });
  await client.request("resources/unsubscribe", { uri: "notes://two" });
  await waitFor(() => heard(0).lines.includes("initialized"));
  go(1);
  expect((await client.call("look")).content).toEqual([{ type: "text", text: "seen" }]);
  expect(heard(1).lines).toEqual(["initialized", "+notes://one"]);
  await client.notify("notifications/roots/list_changed");
  await client.request("resources/unsubscribe", { uri: "notes://one" });
  expect(heard(1).lines.slice(2)).toEqual(["roots changed", "-notes://one"]);
  go(0);
  await client.request("ping");
  expect(heard(0).lines.slice(-2)).toEqual(["roots changed", "-notes://one"]);
});

test("what somebody else's server on one node says of a resource leaves by the stream that another holds", async () => {
  const { client, heard, go } = await openNodes();
  await client.request("resources/subscribe", { uri: "notes://one" });
  go(1);
  const stream = await client.openStream();
  expect(stream.status).toBe(200);
  heard(0).update("notes://one");
  expect((await client.comes("notifications/resources/updated")).params).toMatchObject({ uri: "notes://one" });
});
