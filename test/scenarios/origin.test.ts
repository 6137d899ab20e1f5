import { realpathSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { killDaemons } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startHttp, startMeanwhile } from "../helpers/meanwhile.ts";
import { overHttp, overPipes, WireClient } from "../helpers/wire.ts";

const where = (options: string) =>
  `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Says where it was asked for", ${options} run: (_input, { caller, origin }) => ({ caller, origin }) });`;

/** Commands that say where they were asked for: in the server, in a child, and as a task. */
const commands = { "where/here.ts": where(""), "where/apart.ts": where('isolation: "process",') };

test("a run knows who asked, by which door and in which folder, in whichever process it is", async () => {
  const folder = writeFiles(realpathSync(temporaryFolder()), {
    "one/a": "",
    "two/a": "",
    ...Object.fromEntries(Object.entries(commands).map(([name, text]) => [`commands/${name}`, text])),
  });
  const home = path.join(folder, "home");
  onTestFinished(() => killDaemons(home));
  const words = ["--no-bundled", "--commands", path.join(folder, "commands")];
  const at = (name: string) => ({ cwd: path.join(folder, name), env: { MEANWHILE_HOME: home } });
  const expected = (door: string, name?: string) => ({
    caller: { kind: "local" },
    origin: { door, ...(name !== undefined && { folder: path.join(folder, name) }) },
  });

  for (const name of ["one", "two"]) {
    const client = await new WireClient(overPipes(startMeanwhile(["serve", ...words], at(name)).child), {
      revision: "2025-11-25",
    }).begin();
    for (const tool of ["where_here", "where_apart"]) {
      expect((await client.call(tool)).structuredContent?.data, `${tool} in ${name}`).toEqual(expected("mcp", name));
      const { task } = await client.call(tool, {}, { task: {} });
      const { result } = await client.request("tasks/result", { taskId: task?.taskId });
      expect(result?.structuredContent?.data, `${tool} as a task in ${name}`).toEqual(expected("mcp", name));
    }
  }
  for (const command of ["here", "apart"])
    for (const how of [[], ["--async"]]) {
      const { stdout } = await runMeanwhile([...words, "where", command, "--json", ...how], at("two"));
      expect(JSON.parse(stdout), `${command} ${how.join()}`).toEqual(expected("terminal", "two"));
    }
  const nowhere = await new WireClient(
    overPipes(startMeanwhile(["serve", "--in-process", ...words], { ...at("one"), cwd: "/" }).child),
    {
      revision: "2025-11-25",
    },
  ).begin();
  expect((await nowhere.call("where_here")).structuredContent?.data).toEqual(expected("mcp"));
  const { url } = await startHttp(words, at("one"));
  const { stdout: token } = await runMeanwhile(["token"], at("one"));
  const remote = await new WireClient(overHttp(url, { token: token.trim() }), { revision: "2025-11-25" }).begin();
  for (const tool of ["where_here", "where_apart"])
    expect((await remote.call(tool)).structuredContent?.data, tool).toEqual(expected("mcp"));
});
