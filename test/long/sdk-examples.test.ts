import { expect, test } from "vitest";
import { connectExtTasks } from "../helpers/ext-tasks.ts";
import {
  copyExample,
  fillForms,
  formCapabilities,
  postLine,
  serveExample,
  textResult,
} from "../helpers/sdk-examples.ts";
import type { Fields } from "../helpers/wire.ts";

/**
 * SDK v1's own example servers, which speak nothing newer than 2025-11-25, unchanged but for one line, and the SDK's
 * client of 2026-07-28 with ext-tasks.
 */

const stdio = (file: string) => ({ process: { command: process.execPath, args: [file], stderr: "ignore" as const } });

test("progressExample over stdio: lists its tool, and its progress reaches the call", async () => {
  const file = copyExample("progressExample", "await server.connect(transport);", "await durable(server).stdio();");
  const { client } = await connectExtTasks(stdio(file));
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain("count");
  const steps: Fields[] = [];
  const result = await client.callTool(
    { name: "count", arguments: { n: 3 } },
    { onprogress: (step) => void steps.push(step) },
  );
  expect(result).toMatchObject(textResult("Counted to 3"));
  expect(steps.at(-1)).toMatchObject({ progress: 3, total: 3, message: "Counting: 3/3" });
});

test("toolWithSampleServer over stdio: what it asks the model reaches the client, of a call and of a task", async () => {
  const line = "await mcpServer.connect(transport);";
  const file = copyExample("toolWithSampleServer", line, "await durable(mcpServer).stdio();");
  const answer = (_method: string, params: Fields) => ({
    model: "mine",
    role: "assistant",
    content: { type: "text", text: `of ${params.messages[0].content.text.split("\n").at(-1)}` },
  });
  const sampling = { sampling: {} };
  const input = { text: "a book" };
  const plain = await connectExtTasks(stdio(file), { capabilities: sampling, answer, takesTasks: false });
  expect(await plain.client.callTool({ name: "summarize", arguments: input })).toMatchObject(textResult("of a book"));
  const { run } = await connectExtTasks(stdio(file), { capabilities: sampling, answer });
  expect(await run("summarize", input)).toMatchObject(textResult("of a book"));
});

test("mcpServerOutputSchema over stdio: structured results pass the client's check", async () => {
  const line = "await server.connect(transport);";
  const file = copyExample("mcpServerOutputSchema", line, "await durable(server).stdio();");
  const { client } = await connectExtTasks(stdio(file));
  const { structuredContent } = await client.callTool({
    name: "get_weather",
    arguments: { city: "Paris", country: "FR" },
  });
  expect(structuredContent).toMatchObject({ temperature: { celsius: expect.any(Number) } });
});

test("elicitationFormExample over HTTP: its form is asked of a call, and of a task", async () => {
  const options = "{ tools: { register_user: { long: true } } }";
  const file = copyExample("elicitationFormExample", postLine, `app.all('/mcp', durable(getServer, ${options}).node);`);
  const url = await serveExample(file);
  const { asked, answer } = fillForms();
  const plain = await connectExtTasks({ url }, { capabilities: formCapabilities, answer, takesTasks: false });
  const registered = textResult(/^Registration successful!\n\nUsername: ada/);
  expect(await plain.client.callTool({ name: "register_user", arguments: {} })).toMatchObject(registered);
  const { run, errors } = await connectExtTasks({ url }, { capabilities: formCapabilities, answer });
  expect(await run("register_user")).toMatchObject(registered);
  expect(asked).toEqual(Array(2).fill("Please provide your registration information:"));
  expect(errors).toEqual([]);
});
