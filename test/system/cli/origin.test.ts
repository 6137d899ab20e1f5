import { realpathSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { killDaemons } from "../../helpers/daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { runProcess, startMeanwhile } from "../../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../../helpers/wire.ts";

const where = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Returns its caller and origin", isolation: "process",
  run: (_input, { caller, origin }) => ({ caller, origin, pid: process.pid }) });`;

test("a command in a process of its own gets the same caller and origin: behind a daemon, as a task, in a terminal", async () => {
  const folder = writeFiles(realpathSync(temporaryFolder()), { "one/a": "", "commands/where/apart.ts": where });
  const env = { MEANWHILE_HOME: path.join(folder, "home") };
  const cwd = path.join(folder, "one");
  const words = ["--no-bundled", "--commands", path.join(folder, "commands")];
  const expected = (door: string) => ({
    caller: { kind: "local", id: "local", scopes: [], groups: [] },
    origin: { door, folder: cwd },
    pid: expect.any(Number),
  });
  cleanUp(() => killDaemons(env.MEANWHILE_HOME));

  const proxy = startMeanwhile(["serve", ...words], { cwd, env });
  const client = await new WireClient(overPipes(proxy.child), { revision: "2025-11-25" }).begin();
  expect((await client.call("where_apart")).structuredContent?.data).toEqual(expected("mcp"));
  const { task } = await client.call("where_apart", {}, { task: {} });
  const { result } = await client.request("tasks/result", { taskId: task?.taskId });
  expect(result?.structuredContent?.data).toEqual(expected("mcp"));
  for (const how of [[], ["--async"]]) {
    const { stdout } = await runProcess([...words, "where", "apart", "--json", ...how], { cwd, env });
    expect(JSON.parse(stdout), how.join()).toEqual(expected("terminal"));
  }
});
