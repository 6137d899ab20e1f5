import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { runCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openServer } from "../helpers/server.ts";

/** A command whose `fetch` fails: Node's own message is "fetch failed" for every reason. */

const get = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Get a page",
  effects: "read",
  input: z.object({ url: z.string() }),
  async run({ url }) {
    const response = await fetch(url);
    return { status: response.status };
  },
});
`;

/** An address at which nothing listens any more. */
async function closedAddress(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return `127.0.0.1:${port}`;
}

test("is told in the terminal and to MCP clients with the address, the reason and the line of the command", async () => {
  const cwd = writeFiles(temporaryFolder(), { "commands/net/get.ts": get });
  const address = await closedAddress();
  const input = { url: `http://${address}/` };
  const text = `fetch failed: connect ECONNREFUSED ${address}`;
  const typed = await runCli(["net", "get", input.url], { cwd });
  expect(typed).toMatchObject({ code: 1, stdout: "", stderr: `✗ ${text}\n  at commands/net/get.ts:8:28\n` });
  const server = await openServer({ in: "memory", projectCommands: "alone", cwd });
  const client = await server.client("plain");
  expect(await client.call("net_get", input)).toMatchObject({
    isError: true,
    structuredContent: { messages: [{ text, details: expect.stringMatching(/\nat .*commands\/net\/get\.ts:8:28$/) }] },
  });
});
