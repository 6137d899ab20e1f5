/** An app as its author writes it: no cast, every entry point. */
export const app = `
import { createServer as createHttpServer } from "node:http";
import { connect } from "node:net";
import { InMemoryTransport as InMemory2 } from "@modelcontextprotocol/client";
import { InMemoryTransport as InMemory1 } from "@modelcontextprotocol/sdk/inMemory.js";
import { type AppCaller, createServer, defineCommand, type EmbeddedServer, type ServerOptions } from "meanwhile";
import { z } from "zod";

const build = defineCommand({
  name: "report build",
  summary: "Build the report",
  input: z.object({ quarter: z.string() }),
  output: z.object({ pages: z.number() }),
  run: ({ quarter }) => ({ pages: quarter.length }),
});
const options: ServerOptions = {
  name: "acme",
  version: "1.0.0",
  instructions: "Use it",
  commands: [build],
  store: "./data/tasks.db",
  deferral: { patienceSeconds: 5 },
  publicUrl: "https://acme.example/mcp",
  log: (line) => console.error(line),
  async identify({ headers }): Promise<AppCaller | undefined> {
    return headers.authorization === undefined ? undefined : { kind: "app", id: headers.authorization, scopes: ["read"] };
  },
};
const server: EmbeddedServer = createServer(options);
createServer({ name: "acme", version: "1", commands: "./commands" });
createServer({ name: "acme", version: "1", commands: new URL("./commands/", import.meta.url) });
createServer({ name: "acme", version: "1", commands: ["./commands", new URL("./more/", import.meta.url)] });
// @ts-expect-error a command is no folder of them
createServer({ name: "acme", version: "1", commands: build });

createHttpServer(server.node).listen(0);
createHttpServer((request, response) => server.node(request, response, { parsed: true }));
const response: Response = await server.fetch(new Request("http://127.0.0.1/mcp"), { caller: { kind: "app", id: "ann" } });
await server.connect(InMemory1.createLinkedPair()[0]);
await server.connect(InMemory2.createLinkedPair()[0], { caller: { kind: "app", id: "ann" } });
await server.stdio();
const socket = connect(1);
await server.stdio({ input: socket, output: socket });
await server.stdio({ input: process.stdin, output: process.stdout });
const stop = new AbortController();
const { content, structuredContent, isError } = await server.call("report_build", { quarter: "Q3" }, {
  caller: { kind: "app", id: "ann" },
  signal: stop.signal,
  onProgress: ({ value, total, message }) => console.log(value, total, message),
  answer: ({ message }) => (message === "Go?" ? { action: "accept", content: { go: true } } : { action: "decline" }),
});
const task = await server.tasks.get("id");
const { tasks, nextCursor } = await server.tasks.list({ statuses: ["input_required"], limit: 10 });
for (const { taskId, questions } of tasks)
  for (const { key } of questions) await server.tasks.answer(taskId, { [key]: { action: "accept", content: {} } });
const wasLive: boolean = await server.tasks.cancel("id", { caller: { kind: "app", id: "ann" } });
const { status, result } = await server.tasks.wait("id", { signal: stop.signal });
console.log(response.status, content[0]?.type, structuredContent?.data, isError, task?.status, nextCursor, wasLive, status, result?.content);
await server.close();
`;
