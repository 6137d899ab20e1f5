import { PassThrough } from "node:stream";
import { Client, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/index.ts";
import { openRuntime } from "../../src/runtime/runtime.ts";
import { serveStreams } from "../../src/serve.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { readLines, writeLine } from "../../src/wire/line-link.ts";
import type { Message } from "../../src/wire/message.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { run } from "../helpers/run.ts";

// The tutorial: one idea a test, the simplest first.

const greet = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Greet somebody",
  input: z.object({ name: z.string() }),
  output: z.object({ greeting: z.string() }),
  effects: "read",
  run: ({ name }, task) => {
    task.progress({ percentage: 50, message: "Thinking of something nice" });
    return { greeting: \`Hello, \${name}!\` };
  },
});`;

const followUpTools = ["task_result", "task_status", "task_cancel", "task_list", "task_answer"];

test("A command is a summary, an input and a function.", async () => {
  const add = defineCommand({
    summary: "Add two numbers",
    input: z.object({ a: z.number(), b: z.number() }),
    run: ({ a, b }) => ({ sum: a + b }),
  });
  expect(await run(add, { a: 1, b: 2 })).toMatchObject({ ending: "completed", data: { sum: 3 } });
});

test("A file in a folder is a tool, named by where it lies.", async () => {
  const client = await connect({ "commands/hello/world.ts": greet });
  expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(["hello_world", ...followUpTools]);
});

test("Every answer has the same shape: success, data, messages; as text too.", async () => {
  const client = await connect({ "commands/hello/world.ts": greet });
  const result = await client.callTool({ name: "hello_world", arguments: { name: "Ada" } });
  expect(result.structuredContent).toMatchObject({
    success: true,
    data: { greeting: "Hello, Ada!" },
    messages: [{ type: "success" }],
  });
  expect(JSON.parse((result.content[0] as { text: string }).text)).toEqual(result.structuredContent);
});

test("Wrong arguments are answered with the field and the reason, so that a model can correct itself.", async () => {
  const client = await connect({ "commands/hello/world.ts": greet });
  const result = await client.callTool({ name: "hello_world", arguments: {} });
  expect(result).toMatchObject({
    isError: true,
    structuredContent: {
      success: false,
      data: {},
      messages: [{ type: "error", text: "Invalid argument for hello_world: `name` is required." }],
    },
  });
});

test("What a command reports reaches the client that asked for it.", async () => {
  const client = await connect({ "commands/hello/world.ts": greet });
  const seen: unknown[] = [];
  await client.callTool(
    { name: "hello_world", arguments: { name: "Ada" } },
    { onprogress: (progress) => seen.push(progress) },
  );
  expect(seen).toMatchObject([{ progress: 50, total: 100, message: "Thinking of something nice" }]);
});

test("What a command says about its effects becomes the tool's annotations.", async () => {
  const client = await connect({ "commands/hello/world.ts": greet });
  expect((await client.listTools()).tools[0]?.annotations).toEqual({
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
  });
});

test("The config file hands over the SDK's server for what a command is not.", async () => {
  const client = await connect({
    "meanwhile.config.ts": `export default { mcp: (server) => void server.registerResource("readme", "notes://readme", {}, (uri) => ({ contents: [{ uri: uri.href, text: "Hi" }] })) };`,
    "commands/hello/world.ts": greet,
  });
  expect((await client.readResource({ uri: "notes://readme" })).contents).toMatchObject([{ text: "Hi" }]);
  expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(["hello_world", ...followUpTools]);
});

/** A client on a server of these files, in this very process. */
async function connect(files: Record<string, string>): Promise<Client> {
  const cwd = writeFiles(temporaryFolder(), files);
  const settings = await loadSettings({ cwd, env: { MEANWHILE_HOME: temporaryFolder() }, flags: { bundled: false } });
  const runtime = await openRuntime(settings);
  const toServer = new PassThrough();
  const toClient = new PassThrough();
  const served = serveStreams(runtime, { input: toServer, output: toClient, write: (text) => toClient.write(text) });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(overStreams(toServer, toClient));
  onTestFinished(async () => {
    await client.close();
    await served;
    await runtime.close(0);
  });
  return client;
}

function overStreams(output: PassThrough, input: PassThrough): Transport {
  const transport: Transport = {
    async start() {
      readLines(input, {
        onMessage: (message) => transport.onmessage?.(message as JSONRPCMessage),
        onClose: () => undefined,
      });
    },
    send: (message) => writeLine(output, message as Message),
    async close() {
      output.end();
      transport.onclose?.();
    },
  };
  return transport;
}
