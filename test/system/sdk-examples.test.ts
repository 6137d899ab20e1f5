import { expect, test } from "vitest";
import { connectExtTasks } from "../helpers/ext-tasks.ts";
import { rounds } from "../helpers/rounds.ts";
import { copyExample, serveExample } from "../helpers/sdk-examples.ts";
import type { Fields } from "../helpers/wire.ts";

/**
 * SDK v1's own example servers, which speak nothing newer than 2025-11-25, unchanged but for one line, and the SDK's
 * client of 2026-07-28 with ext-tasks.
 */

const text = (words: string | RegExp) => ({
  content: [{ type: "text", text: typeof words === "string" ? words : expect.stringMatching(words) }],
});
const stdio = (file: string) => ({ process: { command: process.execPath, args: [file], stderr: "ignore" as const } });

test.runIf(rounds.everyCase)(
  "progressExample over stdio: lists its tool, and its progress reaches the call",
  async () => {
    const file = copyExample("progressExample", "await server.connect(transport);", "await durable(server).stdio();");
    const { client } = await connectExtTasks(stdio(file));
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("count");
    const steps: Fields[] = [];
    const result = await client.callTool(
      { name: "count", arguments: { n: 3 } },
      { onprogress: (step) => void steps.push(step) },
    );
    expect(result).toMatchObject(text("Counted to 3"));
    expect(steps.at(-1)).toMatchObject({ progress: 3, total: 3, message: "Counting: 3/3" });
  },
);

test.runIf(rounds.everyCase)(
  "toolWithSampleServer over stdio: what it asks the model reaches the client, of a call and of a task",
  async () => {
    const line = "await mcpServer.connect(transport);";
    const file = copyExample("toolWithSampleServer", line, "await durable(mcpServer).stdio();");
    const answer = (_method: string, params: Fields) => ({
      model: "mine",
      role: "assistant",
      content: { type: "text", text: `of ${params.messages[0].content.text.split("\n").at(-1)}` },
    });
    const capabilities = { sampling: {} };
    const input = { text: "a book" };
    const plain = await connectExtTasks(stdio(file), { capabilities, answer, takesTasks: false });
    expect(await plain.client.callTool({ name: "summarize", arguments: input })).toMatchObject(text("of a book"));
    const { run } = await connectExtTasks(stdio(file), { capabilities, answer });
    expect(await run("summarize", input)).toMatchObject(text("of a book"));
  },
);

test.runIf(rounds.everyCase)(
  "mcpServerOutputSchema over stdio: structured results pass the client's check",
  async () => {
    const line = "await server.connect(transport);";
    const file = copyExample("mcpServerOutputSchema", line, "await durable(server).stdio();");
    const { client } = await connectExtTasks(stdio(file));
    const { structuredContent } = await client.callTool({
      name: "get_weather",
      arguments: { city: "Paris", country: "FR" },
    });
    expect(structuredContent).toMatchObject({ temperature: { celsius: expect.any(Number) } });
  },
);

const capabilities = { elicitation: { form: {} } };
const postLine = "app.post('/mcp', mcpPostHandler);";

/** Fills in every form with what may stand in it, and writes down what was asked. */
function filling() {
  const asked: string[] = [];
  const answer = (_method: string, { message }: Fields) => {
    asked.push(message);
    const content = { username: "ada", name: "Ada", email: "ada@example.com", password: "correct horse" };
    return { action: "accept", content };
  };
  return { asked, answer };
}

test.runIf(rounds.everyCase)(
  "elicitationFormExample over HTTP: its form is asked of a call, and of a task",
  async () => {
    const options = "{ tools: { register_user: { long: true } } }";
    const file = copyExample(
      "elicitationFormExample",
      postLine,
      `app.all('/mcp', durable(getServer, ${options}).node);`,
    );
    const url = await serveExample(file);
    const { asked, answer } = filling();
    const plain = await connectExtTasks({ url }, { capabilities, answer, takesTasks: false });
    const registered = text(/^Registration successful!\n\nUsername: ada/);
    expect(await plain.client.callTool({ name: "register_user", arguments: {} })).toMatchObject(registered);
    const { run, errors } = await connectExtTasks({ url }, { capabilities, answer });
    expect(await run("register_user")).toMatchObject(registered);
    expect(asked).toEqual(Array(2).fill("Please provide your registration information:"));
    expect(errors).toEqual([]);
  },
);

test("simpleStreamableHttp over HTTP: answers, questions, and its own tasks, which every client can call", async () => {
  const file = copyExample("simpleStreamableHttp", postLine, "app.all('/mcp', durable(getServer).node);");
  const url = await serveExample(file);
  const { asked, answer } = filling();
  const contact = { infoType: "contact" };
  const { client } = await connectExtTasks({ url }, { capabilities, answer, takesTasks: false });
  const { run, errors } = await connectExtTasks({ url }, { capabilities, answer });
  const call = (name: string, input: object) => client.callTool({ name, arguments: { ...input } });
  for (const ask of [call, run]) {
    expect(await ask("greet", { name: "Ada" })).toMatchObject(text("Hello, Ada!"));
    expect(await ask("collect-user-info", contact)).toMatchObject(text(/^Thank you!.*Ada/s));
    expect(await ask("collect-user-info-task", contact)).toMatchObject(text(/^Collected contact info.*Ada/s));
    expect(await ask("delay", { duration: 50 })).toMatchObject(text("Completed 50ms delay"));
  }
  expect(asked).toHaveLength(4);
  expect(errors).toEqual([]);
});
