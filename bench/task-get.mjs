// Looks at live tasks over HTTP: a home with ten thousand of them, and a client that asks tasks/get where the others
// call echo_text.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { openHttp } from "./client.mjs";
import { openEngine } from "./tasks/engine.mjs";

const liveTasks = 10_000;
/** Without a token every HTTP client is this one. */
const caller = "anonymous";
/** Has no divisor in common with their number: one look after the other, far apart, until all have been looked at. */
const stride = 3_847;

/** A home whose tasks are queued for another project than the server's: nobody runs them, so they stay live. */
export async function makeHome() {
  // Only reading is measured; that the making waits for no disk changes nothing.
  const home = mkdtempSync(path.join(existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir(), "meanwhile-bench-home-"));
  process.on("exit", () => rmSync(home, { recursive: true, force: true }));
  const tasks = await openEngine(path.join(home, "tasks.db"), { maxLive: liveTasks });
  const taskIds = [];
  for (let at = 0; at < liveTasks; at++)
    taskIds.push((await tasks.create("wait", caller, { text: `number ${at}` })).taskId);
  await tasks.close();
  return { home, taskIds };
}

/** Starts the server on that home; a call of this client is a look at the next task. */
export async function openTaskGet(server, env, { home, taskIds }) {
  const client = await openHttp(server, { ...env, MEANWHILE_HOME: home }, { revision: "2026-07-28" });
  const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
  let last = 0;
  return {
    ...client,
    async call() {
      last = (last + stride) % taskIds.length;
      const taskId = taskIds[last];
      const { result } = await client.request("tasks/get", { taskId }, capabilities);
      const isRight = result?.taskId === taskId && result.status === "working" && result.resultType === "complete";
      if (!isRight) throw new Error(`tasks/get ${taskId} was answered with ${JSON.stringify(result)}`);
    },
  };
}
