// An MCP client calls the same command: starts the server, lists, calls with progress, checks the answer.
import assert from "node:assert/strict";
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const meanwhile = path.resolve(import.meta.dirname, "../../bin/meanwhile.cjs");
const client = new Client({ name: "example", version: "1.0.0" });
const env = process.env as Record<string, string>;
await client.connect(
  new StdioClientTransport({ command: process.execPath, args: [meanwhile, "serve"], cwd: import.meta.dirname, env }),
);

const { tools } = await client.listTools();
console.log("tools:", tools.map((tool) => tool.name).join(", "));

const result = await client.callTool(
  { name: "report_build", arguments: { quarter: "Q3" } },
  { onprogress: ({ progress, total, message }) => console.log(`progress: ${progress}/${total ?? "?"} ${message}`) },
);
const { success, data } = result.structuredContent as { success: boolean; data: unknown };
console.log("result:", JSON.stringify({ success, data }));
assert.deepEqual({ success, data }, { success: true, data: { pages: 4, file: "q3.pdf" } });
await client.close();
