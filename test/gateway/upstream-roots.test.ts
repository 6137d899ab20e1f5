/** When the client of `wrap` is asked for its roots by an upstream that asks at its start. */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { wrapHere } from "../helpers/gateway-here.ts";
import { cleanUp } from "../helpers/home.ts";
import { ownProgram } from "../helpers/programs.ts";
import { overHttp, overStreams, WireClient } from "../helpers/wire.ts";

const modes = [
  ["lists its tools at once", false],
  ["lists its tools when it has the roots", true],
] as const;

/** An upstream that asks for the roots at its start. */
async function wrapAsking({ needsRoots = false, onRoots = () => {} } = {}) {
  const [command, script] = ownProgram(async ({ stdin, stdout }) => {
    const server = new Server({ name: "folders", version: "1.0.0" }, { capabilities: { tools: {} } });
    const roots = Promise.withResolvers<void>();
    server.oninitialized = () => void server.listRoots().then(() => roots.resolve(onRoots()));
    server.setRequestHandler(ListToolsRequestSchema, async () => {
      if (needsRoots) await roots.promise;
      return { tools: [{ name: "look", inputSchema: { type: "object" as const } }] };
    });
    await server.connect(new StdioServerTransport(stdin, stdout));
  });
  return await wrapHere({ command, args: [script] });
}

/** Starts a session of a client with roots. Returns what the client got, in order, until both have come. */
async function begin(needsRoots: boolean): Promise<readonly string[]> {
  const gateway = await wrapAsking({ needsRoots });
  const { stdin, stdout, close } = gateway.openPipes();
  const client = new WireClient(overStreams(stdin, stdout, close), {
    revision: "2025-11-25",
    capabilities: { roots: {} },
  });
  const got: string[] = [];
  client.onMessage(({ id, method }) => {
    got.push(method ?? "the answer to initialize");
    if (method === "roots/list") void client.respond(id, { roots: [] });
  });
  await client.begin();
  await client.comes("roots/list");
  await client.close();
  return got.slice(0, 2);
}

test.each(modes)(
  "an upstream that %s asks after `initialize` is answered, or after a second",
  async (_how, needsRoots) => {
    const order = ["the answer to initialize", "roots/list"];
    expect(await begin(needsRoots)).toEqual(needsRoots ? order.toReversed() : order);
  },
);

test("a client over HTTP that opens its stream after the handshake gets what an upstream asked before", async () => {
  const hasRoots = Promise.withResolvers<void>();
  const gateway = await wrapAsking({ onRoots: () => hasRoots.resolve() });
  const link = overHttp(gateway.url);
  cleanUp(() => link.close());
  const client = await new WireClient(link, { revision: "2025-11-25", capabilities: { roots: {} } }).begin();
  client.onMessage(({ id, method }) => {
    if (method === "roots/list") client.respond(id, { roots: [] }).catch(() => undefined);
  });
  await client.request("ping");
  await client.openStream();
  await hasRoots.promise;
});
