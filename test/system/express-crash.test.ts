import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { type Fields, ModernClient, takesTasks } from "../helpers/wire.ts";

const file = path.resolve(import.meta.dirname, "../fixtures/embed/express-app.ts");
const headers = { authorization: "Bearer ann" };

async function startApp(store: string) {
  const child = spawn(process.execPath, [file, store], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = new Promise((resolve) => child.once("close", resolve));
  const kill = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  cleanUp(kill);
  const url = await waitFor(
    () => /http:\S+/.exec(said)?.[0],
    () => said,
  );
  return { url, kill, said: () => said };
}

test("kill -9 of an Express app with a wrapped server in the middle of tasks: safe tools run again, others say so", async () => {
  const folder = temporaryFolder();
  const store = path.join(folder, "tasks.db");
  const tools = ["look_up", "order", "recount"];
  const begunOf = (tool: string) => path.join(folder, `${tool}.begun`);
  // A file is there before there is a line in it.
  const runsOf = (tool: string) =>
    existsSync(begunOf(tool)) ? readFileSync(begunOf(tool), "utf8").split("\n").length - 1 : 0;
  const gate = path.join(folder, "gate");

  const first = await startApp(store);
  const client = new ModernClient(first.url, { headers, capabilities: takesTasks });
  const ids: Record<string, string> = {};
  for (const tool of tools) {
    const { result } = await client.request("tools/call", { name: tool, arguments: { begun: begunOf(tool), gate } });
    expect(result).toMatchObject({ resultType: "task" });
    ids[tool] = String(result?.taskId);
    await waitFor(() => runsOf(tool) === 1, first.said);
  }
  await first.kill();

  const second = await startApp(store);
  const after = new ModernClient(second.url, { headers, capabilities: takesTasks });
  for (const tool of ["look_up", "recount"]) await waitFor(() => runsOf(tool) === 2, second.said);
  writeFileSync(gate, "");
  const ended = async (tool: string) =>
    await waitFor(async () => {
      const { result } = await after.request("tasks/get", { taskId: ids[tool] });
      return result?.status !== "working" && (result as Fields);
    }, second.said);
  for (const tool of ["look_up", "recount"])
    expect(await ended(tool)).toMatchObject({
      status: "completed",
      result: { content: [{ type: "text", text: `${tool} is done` }] },
    });
  expect(await ended("order")).toMatchObject({
    status: "failed",
    error: { message: expect.stringContaining("outcome unknown") },
  });
  expect(tools.map(runsOf)).toEqual([2, 1, 2]);
  const stranger = new ModernClient(second.url, { capabilities: takesTasks });
  expect((await stranger.request("tasks/get", { taskId: ids.look_up })).error).toBeDefined();
});
