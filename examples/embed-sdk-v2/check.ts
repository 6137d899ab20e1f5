// Calls the server as a client without tasks and as one with them would, and checks what each of them gets.
import assert from "node:assert/strict";
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { connect } from "meanwhile/client";

const started = { command: process.execPath, args: [path.join(import.meta.dirname, "server.ts")] };

// The SDK's own client does without tasks: a call that ends in time is answered as it was before.
const plain = new Client({ name: "plain", version: "1.0.0" });
await plain.connect(new StdioClientTransport(started));
const { tools } = await plain.listTools();
console.log("tools:", tools.map(({ name }) => name).join(", "));
const quick = await plain.callTool({ name: "report_list", arguments: {} });
console.log("report_list:", quick.content);
assert.deepEqual(quick.content, [{ type: "text", text: "Q1, Q2, Q3" }]);
await plain.close();

// One that takes tasks has one at once, because the tool is said to be long.
const client = await connect(started, { revision: "2026-07-28" });
console.log(`${client.server.name} speaks ${client.server.revision}`);
const tasks = new Set<string>();
const slow = await client.callTool(
  "report_build",
  { quarter: "q3" },
  {
    onTask: ({ taskId }) => {
      if (!tasks.has(taskId)) console.log("report_build is the task", taskId);
      tasks.add(taskId);
    },
    onProgress: ({ message }) => console.log(" ", message),
  },
);
console.log("report_build:", slow.content);
assert.equal(tasks.size, 1);
assert.deepEqual(slow.content, [{ type: "text", text: "q3.pdf" }]);
await client.close();
