// Calls the app as a client that takes a task when an answer does not come within two seconds.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { connect } from "meanwhile/client";

const env = { ...process.env, PORT: "0" };
const file = path.join(import.meta.dirname, "app.ts");
const app = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "inherit"] });
const exited = once(app, "exit");
try {
  const [line] = await once(createInterface(app.stdout), "line", { signal: AbortSignal.timeout(30_000) });
  const url = String(line);
  const stranger = await fetch(url, { method: "POST" });
  console.log("without a key:", stranger.status);
  assert.equal(stranger.status, 401);

  const client = await connect({ url, headers: { authorization: "Bearer key-of-the-team" } });
  const quick = await client.callTool("report_list");
  console.log("report_list:", quick.structuredContent?.data);
  assert.deepEqual(quick.structuredContent?.data, { quarters: ["Q1", "Q2", "Q3"] });

  const tasks = new Set<string>();
  const onTask = ({ taskId }: { readonly taskId: string }) => {
    if (!tasks.has(taskId)) console.log("report_build is the task", taskId);
    tasks.add(taskId);
  };
  const slow = await client.callTool("report_build", { quarter: "q3" }, { onTask });
  console.log("report_build:", slow.structuredContent?.data);
  assert.equal(tasks.size, 1);
  assert.deepEqual(slow.structuredContent?.data, { file: "q3.pdf" });
  await client.close();
} finally {
  app.kill();
  await exited;
}
