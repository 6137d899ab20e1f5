import { realpathSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { runCli, startCli } from "../helpers/cli.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openServer } from "../helpers/server.ts";

const where = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Returns its caller and origin", run: (_input, { caller, origin }) => ({ caller, origin }) });`;

function project() {
  const folder = writeFiles(realpathSync(temporaryFolder()), {
    "one/a": "",
    "two/a": "",
    "commands/where/here.ts": where,
  });
  const words = ["--no-bundled", "--commands", path.join(folder, "commands")];
  const home = path.join(folder, "home");
  const expected = (door: string, name?: string) => ({
    caller: { kind: "local", id: "local", scopes: [], groups: [] },
    origin: { door, ...(name !== undefined && { folder: path.join(folder, name) }) },
  });
  return { folder, words, home, expected };
}

test("a command gets the folder of the stdio client that called it, in a call and in a task", async () => {
  const { folder, words, home, expected } = project();
  const daemons = new DaemonHomeHere({ home, cwd: folder });
  for (const name of ["one", "two"]) {
    const client = await daemons.connect({ words, cwd: path.join(folder, name) });
    expect((await client.call("where_here")).structuredContent?.data, name).toEqual(expected("mcp", name));
    const { task } = await client.call("where_here", {}, { task: {} });
    const { result } = await client.request("tasks/result", { taskId: task?.taskId });
    expect(result?.structuredContent?.data, `a task in ${name}`).toEqual(expected("mcp", name));
  }
  expect(daemons.daemons).toHaveLength(1);
});

test("a command gets no folder from a client over HTTP, nor from one that was started in /", async () => {
  const { folder, words, home, expected } = project();
  const server = await openServer({
    in: "http",
    commands: path.join(folder, "commands"),
    cwd: path.join(folder, "one"),
  });
  const remote = await server.client("tasks-2025");
  expect((await remote.call("where_here")).structuredContent?.data).toEqual(expected("mcp"));
  const started = startCli(["serve", "--in-process", ...words], { cwd: "/", env: { MEANWHILE_HOME: home } });
  const client = await started.client({ revision: "2025-11-25" }).begin();
  expect((await client.call("where_here")).structuredContent?.data).toEqual(expected("mcp"));
  await client.close();
});

test("a command gets the folder of the terminal that it was typed in, also with --async", async () => {
  const { folder, words, home, expected } = project();
  for (const how of [[], ["--async"]]) {
    const { stdout } = await runCli([...words, "where", "here", "--json", ...how], {
      cwd: path.join(folder, "two"),
      env: { MEANWHILE_HOME: home },
    });
    expect(JSON.parse(stdout), how.join()).toEqual(expected("terminal", "two"));
  }
});
