import { spawn } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { killNine, type Started, waitFor } from "../helpers/meanwhile.ts";
import { type Fields, ModernClient, PipeClient, takesAll, takesTasks } from "../helpers/wire.ts";

const app = path.resolve(import.meta.dirname, "../fixtures/embed/app.ts");

function start(words: readonly string[], env: Record<string, string> = {}, cwd = temporaryFolder()): Started {
  const home = temporaryFolder();
  const child = spawn(process.execPath, [app, ...words], { cwd, env: { PATH: process.env.PATH, HOME: home, ...env } });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin.on("error", () => {});
  const exited = new Promise<number | string>((resolve) =>
    child.on("close", (code, signal) => resolve(code ?? signal ?? -1)),
  );
  cleanUp(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return { child, home, stdout: () => stdout, stderr: () => stderr, exited };
}

async function startHttp(store: string): Promise<Started & { readonly url: string }> {
  const started = start(["http", store]);
  const url = await waitFor(
    () => /http:\S+/.exec(started.stdout())?.[0],
    () => `it does not listen: ${started.stderr()}`,
  );
  return { ...started, url };
}

const headers = { authorization: "Bearer ann" };
/** A file is there before there is a line in it. */
const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0);

test("After kill -9 the next server on the same file knows the tasks, runs safe ones again, and says so of the others", async () => {
  const folder = temporaryFolder();
  const store = path.join(folder, "data", "tasks.db");
  const first = await startHttp(store);
  const client = new ModernClient(first.url, { headers, capabilities: takesTasks });
  const tasks: Record<string, { readonly taskId: string; readonly begun: string; readonly gate: string }> = {};
  for (const tool of ["work_safe", "work_once"]) {
    const [begun, gate] = [path.join(folder, `${tool}.begun`), path.join(folder, `${tool}.gate`)];
    const { result } = await client.request("tools/call", { name: tool, arguments: { begun, gate } });
    tasks[tool] = { taskId: String(result?.taskId), begun, gate };
    await waitFor(() => linesOf(begun) === 1, first.stderr);
  }
  await killNine(first);

  const second = await startHttp(store);
  const after = new ModernClient(second.url, { headers, capabilities: takesTasks });
  const { work_safe: safe, work_once: once } = tasks;
  await waitFor(() => linesOf(safe?.begun ?? "") === 2, second.stderr);
  for (const task of [safe, once]) writeFileSync(task?.gate ?? "", "");
  const ended = async (taskId = "") =>
    await waitFor(async () => {
      const { result } = await after.request("tasks/get", { taskId });
      return result?.status !== "working" && (result as Fields);
    }, second.stderr);
  expect(await ended(safe?.taskId)).toMatchObject({
    status: "completed",
    result: { structuredContent: { data: { attempt: 2 } } },
  });
  expect(await ended(once?.taskId)).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining("outcome unknown") },
  });
  expect(linesOf(once?.begun ?? "")).toBe(1);

  const stranger = new ModernClient(second.url, { capabilities: takesTasks });
  expect((await stranger.request("tasks/get", { taskId: safe?.taskId })).error).toBeDefined();
});

test("A question that a call was sent back with is answered after kill -9: what signs it is kept in the store", async () => {
  const store = path.join(temporaryFolder(), "tasks.db");
  const first = await startHttp(store);
  const capabilities = { elicitation: takesAll.elicitation };
  const asked = await new ModernClient(first.url, { headers, capabilities }).request("tools/call", {
    name: "publish",
    arguments: {},
  });
  const { requestState, inputRequests } = asked.result as Fields;
  const [key = ""] = Object.keys(inputRequests);
  await killNine(first);
  const second = await startHttp(store);
  const { result, error } = await new ModernClient(second.url, { headers, capabilities }).request("tools/call", {
    name: "publish",
    arguments: {},
    requestState,
    inputResponses: { [key]: { action: "accept", content: { publish: true } } },
  });
  expect(error).toBeUndefined();
  expect(result).toMatchObject({ structuredContent: { data: { published: true } } });
});

test("Over its own stdin and stdout only the protocol is written, whatever app and commands print", async () => {
  const started = start(["stdio"]);
  const client = new PipeClient(started, { revision: "2025-06-18" });
  await client.begin();
  const { structuredContent } = await client.call("loud");
  expect(structuredContent).toMatchObject({ success: true });
  await client.close();
  expect(await started.exited).toBe(0);
  const lines = started.stdout().trim().split("\n");
  expect(lines.every((line) => line.startsWith('{"jsonrpc":"2.0"'))).toBe(true);
  expect(started.stderr()).toContain("printed by a command");
  expect(started.stderr()).toContain("printed by the app");
});

test("A process that does nothing else ends when its client has hung up", async () => {
  const started = start(["alone"]);
  const client = new PipeClient(started, { revision: "2025-06-18" });
  await client.begin();
  await client.call("loud");
  started.child.stdin?.end();
  expect(await started.exited).toBe(0);
});

test("It touches no home, reads no variable of ours and no config, and leaves nothing in the working folder", async () => {
  const cwd = writeFiles(temporaryFolder(), { "meanwhile.config.json": "{ no json", "commands/bad.ts": "throw 1;" });
  const elsewhere = path.join(temporaryFolder(), "none");
  const env = {
    MEANWHILE_HOME: elsewhere,
    MEANWHILE_STORE: path.join(elsewhere, "x.db"),
    MEANWHILE_AUTO_TASK: "neither",
    MEANWHILE_LOG: "nonsense",
    MEANWHILE_PORT: "none",
  };
  const started = start(["call"], env, cwd);
  chmodSync(started.home, 0o500);
  expect({ code: await started.exited, stderr: started.stderr() }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(started.stdout().trim().split("\n").at(-1) ?? "")).toMatchObject({
    success: true,
    data: { folder: cwd },
  });
  expect(readdirSync(started.home)).toEqual([]);
  expect(readdirSync(cwd).sort()).toEqual(["commands", "meanwhile.config.json"]);
  expect(existsSync(elsewhere)).toBe(false);
});
