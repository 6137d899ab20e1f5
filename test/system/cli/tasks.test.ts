import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { killWorkers } from "../../helpers/daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { runProcess, startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";

/** Writes down its attempt and its process. Only the second attempt ends. */
const count = `import { appendFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "x", idempotent: true, async run(_input, task) {
  appendFileSync(path.join(import.meta.dirname, "../../runs"), task.attempt + " " + process.pid + "\\n");
  if (task.attempt === 1) await sleep(600_000, undefined, { signal: task.signal });
  return { attempt: task.attempt };
} });`;

function project() {
  const cwd = writeFiles(temporaryFolder(), { "commands/work/count.mjs": count });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  cleanUp(() => killWorkers(env.MEANWHILE_HOME));
  const file = path.join(cwd, "runs");
  const runs = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  /** Resolves with the process of the first attempt. */
  const begun = async () => Number((await waitFor(() => runs()[0])).split(" ")[1]);
  return { cwd, env, runs, begun, meanwhile: (...words: string[]) => runProcess(words, { cwd, env }) };
}

test("after kill -9 of its worker, `tasks watch` starts another one, which finishes the task", async () => {
  const { meanwhile, runs, begun } = project();
  const id = (await meanwhile("work", "count", "--detach", "--quiet")).stdout.trim();
  process.kill(await begun(), "SIGKILL");
  expect(await meanwhile("tasks", "watch", id)).toMatchObject({ code: 0, stdout: "attempt: 2\n" });
  expect(runs().map((run) => run.split(" ")[0])).toEqual(["1", "2"]);
  expect((await meanwhile("tasks", "show", id)).stdout).toContain("crashes: 1");
});

test("the worker of --async runs on when its terminal has been closed, and Ctrl-C ends it", async () => {
  const { meanwhile, begun, cwd, env, runs } = project();
  const closed = startMeanwhile(["work", "count", "--async"], { cwd, env });
  await begun();
  closed.child.kill("SIGHUP");
  await closed.exited;
  expect((await meanwhile("tasks", "list")).stdout).toContain("working");
  const joined = startMeanwhile(["work", "count", "--async"], { cwd, env });
  await waitFor(() => joined.stderr().includes("Joined"), joined.stderr);
  // By the time another process has listed the tasks, this one listens to Ctrl-C.
  expect((await meanwhile("tasks", "list")).stdout).toContain("working");
  joined.child.kill("SIGINT");
  expect(await joined.exited).toBe(130);
  expect((await meanwhile("tasks", "list")).stdout).toContain("cancelled");
  expect(runs()).toHaveLength(1);
});
