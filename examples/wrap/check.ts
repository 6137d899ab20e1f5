// Calls a tool of eight seconds as a client does that gives up after six: of the server as it is, and behind Meanwhile.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { z } from "zod";

const server = [process.execPath, path.join(import.meta.dirname, "server.ts")];
const meanwhile = [process.execPath, path.resolve(import.meta.dirname, "../../bin/meanwhile.cjs")];
const handleSchema = z.object({
  data: z.object({
    status: z.string(),
    next_action: z.object({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) }),
  }),
});

// A home of its own, in which it is known how long this client waits.
const home = mkdtempSync(path.join(tmpdir(), "wrap-"));
process.once("exit", () => rmSync(home, { recursive: true, force: true }));
writeFileSync(path.join(home, "config.json"), JSON.stringify({ hosts: { hasty: { limitSeconds: 6 } } }));
const runs = path.join(home, "runs");

async function start([command = "", ...args]: readonly string[]) {
  const client = new Client({ name: "hasty", version: "1.0.0" });
  const env = { ...(process.env as Record<string, string>), MEANWHILE_HOME: home, RUNS: runs };
  await client.connect(new StdioClientTransport({ command, args, env }));
  const call = (name: string, args: Record<string, unknown>) =>
    client.callTool({ name, arguments: args }, undefined, { timeout: 6000 });
  return { client, call };
}

const [direct, wrapped] = await Promise.all([
  start(server),
  start([...meanwhile, "wrap", "--in-process", "--", ...server]),
]);
const cut = assert.rejects(direct.call("report_build", { quarter: "q2" }), /timed out/);
let answer = await wrapped.call("report_build", { quarter: "q3" });
await cut;
console.log("as it is: the call is cut after 6 s, and nobody has the report");
await direct.client.close();

let handles = 0;
for (;;) {
  // A handle is a result that says which tool to call next; so is what that tool answers while it is not done.
  const handle = handleSchema.safeParse(answer.structuredContent);
  if (!handle.success) break;
  const { status, next_action } = handle.data.data;
  console.log(`behind Meanwhile: it is ${status}; next: ${next_action.tool}`);
  answer = await wrapped.call(next_action.tool, next_action.arguments);
  handles += 1;
}
console.log("report_build:", answer.content);
assert.ok(handles > 0, "the slow call was not handed out");
assert.deepEqual(answer.content, [{ type: "text", text: "q3.pdf" }]);
await wrapped.client.close();

const ran = readFileSync(runs, "utf8")
  .split("\n")
  .filter((quarter) => quarter === "q3");
assert.equal(ran.length, 1);
console.log("it ran once");
