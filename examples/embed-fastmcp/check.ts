// Calls the server as a client does that gives up after six seconds, and checks that it gets its result all the same.
import assert from "node:assert/strict";
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { z } from "zod";

const handleSchema = z.object({
  data: z.object({
    status: z.string(),
    next_action: z.object({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) }),
  }),
});
const toHandle = ({ structuredContent }: Record<string, unknown>) => handleSchema.safeParse(structuredContent);

const client = new Client({ name: "hasty", version: "1.0.0" });
const started = { command: process.execPath, args: [path.join(import.meta.dirname, "server.ts")] };
await client.connect(new StdioClientTransport(started));
const call = (name: string, args: Record<string, unknown>) =>
  client.callTool({ name, arguments: args }, undefined, { timeout: 6000 });

const quick = await call("report_list", {});
console.log("report_list:", quick.content);
assert.deepEqual(quick.content, [{ type: "text", text: "Q1, Q2, Q3" }]);

// A handle is a result that says which tool to call next; so is what that tool answers while it is not done.
let answer = await call("report_build", { quarter: "q3" });
let handles = 0;
for (let handle = toHandle(answer); handle.success; handle = toHandle(answer)) {
  const { status, next_action } = handle.data.data;
  console.log(`report_build is ${status}; next: ${next_action.tool} ${JSON.stringify(next_action.arguments)}`);
  answer = await call(next_action.tool, next_action.arguments);
  handles += 1;
}
console.log("report_build:", answer.content);
assert.ok(handles > 0, "the slow call was not handed out");
assert.deepEqual(answer.content, [{ type: "text", text: "q3.pdf" }]);
await client.close();
