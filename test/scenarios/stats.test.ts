import path from "node:path";
import { expect, test } from "vitest";
import { runCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const quick = (text: string) =>
  `import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "${text}", effects: "read", run() { ${text === "fails" ? 'throw new Error("no")' : "return {}"} } });`;

test("`stats` counts the runs of a terminal at once, of this project; with --all those of every project", async () => {
  const env = { MEANWHILE_HOME: path.join(temporaryFolder(), "home") };
  const [one, two] = ["one", "two"].map((name) =>
    writeFiles(temporaryFolder(), { "commands/work/do.ts": quick(name), "commands/work/fail.ts": quick("fails") }),
  ) as [string, string];
  for (const cwd of [one, one, two]) expect((await runCli(["work", "do", "--quiet"], { cwd, env })).code).toBe(0);
  expect((await runCli(["work", "fail", "--quiet"], { cwd: one, env })).code).toBe(1);
  const stats = async (cwd: string, ...words: string[]) =>
    JSON.parse((await runCli(["stats", "--json", ...words], { cwd, env })).stdout) as unknown;
  expect(await stats(one), "what failed says nothing of how long it takes").toMatchObject([
    { project: one, command: "work_do", runs: 2 },
  ]);
  expect(await stats(two)).toMatchObject([{ project: two, command: "work_do", runs: 1 }]);
  expect(await stats(two, "--all")).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ project: one, runs: 2 }),
      expect.objectContaining({ project: two, runs: 1 }),
    ]),
  );
});
