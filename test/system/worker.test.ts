import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startGuardedHttp, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { ModernClient, SessionClient, takesTasks } from "../helpers/wire.ts";

const commands = {
  "commands/work/where.ts": `import { defineCommand } from "meanwhile";
    export default defineCommand({ summary: "Says which process runs it", effects: "read", run: () => ({ pid: process.pid }) });`,
  "commands/work/refuse.ts": `import { defineCommand } from "meanwhile"; import { z } from "zod";
    export default defineCommand({ summary: "Says no", input: z.object({ page: z.number() }), effects: "read", run() { throw new Error("No such page."); } });`,
  "commands/work/wait.ts": `import { defineCommand } from "meanwhile"; import { appendFileSync } from "node:fs"; import { z } from "zod";
    export default defineCommand({ summary: "Waits until it is stopped", input: z.object({ file: z.string() }), effects: "read",
      run: ({ file }, { signal }) => { appendFileSync(file, "began\\n");
        return new Promise((_, reject) => signal.addEventListener("abort", () => { appendFileSync(file, signal.reason.name); reject(signal.reason); })); } });`,
  "commands/work/hold.ts": `import { defineCommand } from "meanwhile";
    export default defineCommand({ summary: "Goes on until it is stopped", effects: "read", long: true,
      run: (_, task) => { task.announce("It goes on"); return new Promise((_, reject) => task.signal.addEventListener("abort", () => reject(task.signal.reason))); } });`,
};

/** A server that runs nothing, and a worker that serves nobody, on one store. */
const place = shareAmongTests(async () => {
  const cwd = writeFiles(temporaryFolder(), commands);
  const env = { MEANWHILE_HOME: path.join(temporaryFolder(), "home") };
  const server = await startGuardedHttp(["--no-work"], { cwd, env });
  const worker = startMeanwhile(["worker", "--concurrency", "3"], { cwd, env });
  await waitFor(() => worker.stderr().includes("Ctrl-C"));
  const headers = { Authorization: `Bearer ${server.token()}` };
  return { cwd, env, server, worker, headers };
});

test("a worker says what it runs, and where", async () => {
  const { worker, env } = await place();
  expect(worker.stderr()).toContain("runs tasks of 4 commands, 3 at a time");
  expect(worker.stderr()).toContain(path.join(env.MEANWHILE_HOME, "tasks.db"));
  expect(worker.stdout()).toBe("");
});

test("serve --no-work: a call is answered as ever, by the worker's process, and leaves no task behind", async () => {
  const { cwd, env, server, worker, headers } = await place();
  const client = await SessionClient.begin(server.url, { headers });
  const result = await client.call("work_where", {});
  expect(result.structuredContent).toMatchObject({ success: true, data: { pid: worker.child.pid } });
  expect(result._meta?.["meanwhile/call"]).not.toHaveProperty("taskId");
  await waitFor(async () => (await runMeanwhile(["tasks", "list"], { cwd, env })).stdout === "No tasks.\n");
});

test("serve --no-work: a call that is taken back is stopped at the worker, and leaves no task behind", async () => {
  const { cwd, env, server, headers } = await place();
  const client = await SessionClient.begin(server.url, { headers });
  const file = path.join(temporaryFolder(), "traces");
  const said = () => (existsSync(file) ? readFileSync(file, "utf8") : "");
  const call = client.startCall("work_wait", { file });
  await waitFor(() => said() === "began\n");
  await client.notify("notifications/cancelled", { requestId: call.id });
  await waitFor(() => said() === "began\nCancelled");
  await waitFor(async () => (await runMeanwhile(["tasks", "list"], { cwd, env })).stdout === "No tasks.\n");
});

test("serve --no-work: what a command says no to, and arguments that do not fit, are told as ever", async () => {
  const { server, headers } = await place();
  const client = await SessionClient.begin(server.url, { headers });
  expect(JSON.stringify(await client.call("work_refuse", { page: 1 }))).toContain("No such page.");
  expect(JSON.stringify(await client.call("work_refuse", { page: "one" }))).toContain("page");
});

test("serve --no-work: a task is run by the worker, and a cancel reaches it there", async () => {
  const { server, headers } = await place();
  const client = new ModernClient(server.url, { headers, capabilities: takesTasks });
  const { taskId } = await client.call("work_hold", {});
  const look = async () => (await client.request("tasks/get", { taskId })).result;
  await waitFor(async () => String((await look())?.statusMessage).includes("It goes on"));
  await client.request("tasks/cancel", { taskId });
  expect(await look()).toMatchObject({ status: "cancelled" });
});

test("a worker that is told to stop gives back what is safe, and the next one goes on with it", async () => {
  const { cwd, env, server, headers } = await place();
  const client = new ModernClient(server.url, { headers, capabilities: takesTasks });
  const other = startMeanwhile(["worker"], { cwd, env: { ...env, MEANWHILE_LOG: "debug" } });
  await waitFor(() => other.stderr().includes("Ctrl-C"));
  const { taskId } = await client.call("work_hold", {});
  await waitFor(async () => (await client.request("tasks/get", { taskId })).result?.status === "working");
  other.child.kill("SIGTERM");
  expect(await other.exited).toBe(0);
  await waitFor(async () =>
    String((await client.request("tasks/get", { taskId })).result?.statusMessage).includes("It goes on"),
  );
  await client.request("tasks/cancel", { taskId });
});

test.for([
  [["worker", "--concurrency", "0"], "--concurrency must be a whole number from 1 to 1000, not 0."],
  [["worker", "--concurrency", "many"], "--concurrency must be a whole number from 1 to 1000, not many."],
  [["serve", "--no-work"], "--no-work is for --http."],
] as const)("%j is refused in one sentence", async ([words, sentence]) => {
  const { code, stderr } = await runMeanwhile(words);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(sentence) });
});

test("a queue that is none is refused in one sentence, and a password in it is not said", async () => {
  const { code, stderr } = await runMeanwhile(["worker"], { env: { MEANWHILE_QUEUE: "amqp://me:secret@host" } });
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining("MEANWHILE_QUEUE must be an address that begins with postgres:// or redis://"),
  });
  expect(stderr).not.toContain("secret");
});
