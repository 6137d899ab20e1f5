// Calls the server as a client of 2025-11-25 and as one of 2026-07-28 would, and checks what each of them gets.
import assert from "node:assert/strict";
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { connect } from "meanwhile/client";

const started = { command: process.execPath, args: [path.join(import.meta.dirname, "server.ts")] };
const published = [{ type: "text", text: "q3.pdf, published" }];

// The SDK's own client asks for a task, and follows it.
const old = new Client({ name: "old", version: "1.0.0" }, { capabilities: { elicitation: {} } });
old.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  console.log("  asked:", params.message);
  return { action: "accept", content: { publish: true } };
});
await old.connect(new StdioClientTransport(started));
const quick = await old.callTool({ name: "report_list", arguments: {} });
console.log("report_list:", quick.content);
assert.deepEqual(quick.content, [{ type: "text", text: "Q1, Q2, Q3" }]);

const called = { name: "report_build", arguments: { quarter: "q3" } };
const seen: string[] = [];
for await (const message of old.experimental.tasks.callToolStream(called, undefined, { task: { ttl: 60_000 } })) {
  seen.push(message.type);
  if (message.type === "taskCreated") console.log("report_build is the task", message.task.taskId);
  if (message.type === "error") throw message.error;
  if (message.type !== "result") continue;
  console.log("report_build:", message.result.content);
  assert.deepEqual(message.result.content, published);
}
assert.equal(seen[0], "taskCreated");
assert.equal(seen.at(-1), "result");
await old.close();

// The same server speaks a revision that its SDK does not know.
const client = await connect(started, { revision: "2026-07-28" });
console.log(`${client.server.name} speaks ${client.server.revision}`);
assert.equal(client.server.revision, "2026-07-28");
const tasks = new Set<string>();
const slow = await client.callTool(
  "report_build",
  { quarter: "q3" },
  {
    asTask: true,
    onTask: ({ taskId }) => tasks.add(taskId),
    onInput: ({ message }) => {
      console.log("  asked:", message);
      return { action: "accept", content: { publish: true } };
    },
  },
);
console.log("report_build:", slow.content);
assert.deepEqual(slow.content, published);
assert.equal(tasks.size, 1);
await client.close();
