// Starts the app, kills it in the middle of a task, starts it again, and checks that the task is done for its owner.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { connect, ServerError } from "meanwhile/client";

const folder = mkdtempSync(path.join(tmpdir(), "embed-express-"));
const env = { ...process.env, PORT: "0", STORE: path.join(folder, "tasks.db") };

async function start() {
  const file = path.join(import.meta.dirname, "app.ts");
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [url] = await once(createInterface(child.stdout), "line", { signal: AbortSignal.timeout(30_000) });
  return { url: String(url), exited: once(child, "exit"), kill: (signal: NodeJS.Signals) => child.kill(signal) };
}

const headersOf = (user: string) => ({ authorization: `Bearer key-of-${user}` });

let app = await start();
try {
  const nobody = await fetch(app.url, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
  console.log("without a key:", nobody.status);
  assert.equal(nobody.status, 401);

  const ann = await connect({ url: app.url, headers: headersOf("ann") });
  const quick = await ann.callTool("report_list");
  console.log("report_list:", quick.structuredContent?.data);
  assert.deepEqual(quick.structuredContent?.data, { quarters: ["Q1", "Q2", "Q3"] });

  const begun = Promise.withResolvers<void>();
  const { taskId = "" } = await ann.callTool("report_build", { quarter: "q3" }, { detach: true });
  console.log("report_build is the task", taskId);
  const following = ann.task(taskId).result({ onProgress: () => begun.resolve() });
  following.catch(() => undefined);
  await begun.promise;
  app.kill("SIGKILL");
  await app.exited;
  console.log("the app was killed in the middle");
  await ann.close();

  app = await start();
  const bob = await connect({ url: app.url, headers: headersOf("bob") });
  await assert.rejects(bob.task(taskId).result(), ServerError);
  console.log("bob has no such task");
  await bob.close();

  const again = await connect({ url: app.url, headers: headersOf("ann") });
  const { structuredContent } = await again.task(taskId).result();
  console.log("ann has its result:", structuredContent?.data);
  assert.deepEqual(structuredContent?.data, { file: "q3.pdf", attempt: 2 });
  await again.close();

  app.kill("SIGTERM");
  assert.deepEqual(await app.exited, [0, null]);
  console.log("the app has stopped");
} finally {
  app.kill("SIGKILL");
  await app.exited;
  rmSync(folder, { recursive: true, force: true });
}
