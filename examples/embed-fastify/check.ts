// Calls the app as a client of the SDK that gives up after six seconds.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { z } from "zod";

const handleSchema = z.object({
  data: z.object({
    status: z.string(),
    next_action: z.object({ tool: z.string(), arguments: z.record(z.string(), z.unknown()) }),
  }),
});
const toHandle = ({ structuredContent }: Record<string, unknown>) => handleSchema.safeParse(structuredContent);

const env = { ...process.env, PORT: "0" };
const file = path.join(import.meta.dirname, "app.ts");
const app = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "inherit"] });
const exited = once(app, "exit");
try {
  const [line] = await once(createInterface(app.stdout), "line", { signal: AbortSignal.timeout(30_000) });
  const client = new Client({ name: "hasty", version: "1.0.0" });
  const requestInit = { headers: { authorization: "Bearer key-of-ann" } };
  await client.connect(new StreamableHTTPClientTransport(new URL(String(line)), { requestInit }));
  const call = (name: string, args: Record<string, unknown>) =>
    client.callTool({ name, arguments: args }, { timeout: 6000 });

  const quick = await call("who_am_i", {});
  console.log("who_am_i:", quick.content);
  assert.deepEqual(quick.content, [{ type: "text", text: "ann" }]);

  // A handle is a result that says which tool to call next; so is what that tool answers while it is not done.
  let slow = await call("report_build", { quarter: "q3" });
  let handles = 0;
  for (let handle = toHandle(slow); handle.success; handle = toHandle(slow)) {
    const { status, next_action } = handle.data.data;
    console.log(`report_build is ${status}; next: ${next_action.tool} ${JSON.stringify(next_action.arguments)}`);
    slow = await call(next_action.tool, next_action.arguments);
    handles += 1;
  }
  console.log("report_build:", slow.content);
  assert.ok(handles > 0, "the slow call was not handed out");
  assert.deepEqual(slow.content, [{ type: "text", text: "q3.pdf" }]);
  await client.close();
} finally {
  app.kill();
  await exited;
}
