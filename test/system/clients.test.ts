import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, onTestFinished, test } from "vitest";
import { connect, followUps, sdks } from "../helpers/clients.ts";
import { connectExtTasks } from "../helpers/ext-tasks.ts";
import { toProcess } from "../helpers/sdk-transport.ts";
import { openServer } from "../helpers/server.ts";

// Each SDK client once over the stdio of a child process. The scenarios clients, tasks-2025 and tasks-2026 have the
// details.
const [commands, tasks] = ["clients", "tasks"].map((name) =>
  path.resolve(import.meta.dirname, `../fixtures/${name}/commands`),
) as [string, string];

test.each(sdks.map((sdk) => [sdk.title, sdk] as const))(
  "%s lists the tools, calls one and sees its progress over the stdio of a child process",
  // An SDK client drops progress that it reads in one chunk with the answer.
  { retry: 3 },
  async (_title, sdk) => {
    const server = await openServer({ in: "process", commands });
    const client = await connect(sdk, await server.target());
    const tools = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "notes_erase",
      "text_bare",
      "text_shout",
      "work_count",
      "work_wait",
      ...followUps("stdio"),
    ]);
    const values: number[] = [];
    const counted = await client.call(
      "work_count",
      { to: 25 },
      { onprogress: ({ progress }) => void values.push(progress) },
    );
    expect(counted.isError ?? false).toBe(false);
    expect(values.at(-1)).toBe(25);
    expect(client.errors).toEqual([]);
  },
);

test("ext-tasks on the SDK v2 client runs a task of 2026-07-28 over the stdio of a child process", async () => {
  const server = await openServer({ in: "process", commands: tasks });
  const { run, errors } = await connectExtTasks(await server.target());
  expect(await run("work_count", { to: 2 })).toMatchObject({ structuredContent: { data: { counted: 2 } } });
  expect(errors).toEqual([]);
});

test("SDK v1 runs a task of 2025-11-25 over the stdio of a child process", async () => {
  const server = await openServer({ in: "process", commands: tasks });
  const target = await server.target();
  if (!("words" in target)) throw new Error("the server is no child process");
  const client = new Client({ name: "scenario", version: "1" });
  onTestFinished(() => client.close());
  await client.connect(new StdioClientTransport(toProcess(target)));
  const stream = client.experimental.tasks.callToolStream(
    { name: "work_count", arguments: { to: 2 } },
    CallToolResultSchema,
    { task: { ttl: 60_000 } },
  );
  const messages = [];
  for await (const message of stream) messages.push(message);
  expect(messages[0]).toMatchObject({ type: "taskCreated" });
  expect(messages.at(-1)).toMatchObject({ type: "result", result: { structuredContent: { data: { counted: 2 } } } });
});
