import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile } from "../helpers/meanwhile.ts";

const quick = (text: string) =>
  `import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "${text}", effects: "read", run() { ${text === "fails" ? 'throw new Error("no")' : "return {}"} } });`;

test("runs in a terminal count in stats at once, of this project, and with --all of every one", async () => {
  const env = { MEANWHILE_HOME: path.join(temporaryFolder(), "home") };
  const [one, two] = ["one", "two"].map((name) =>
    writeFiles(temporaryFolder(), { "commands/work/do.ts": quick(name), "commands/work/fail.ts": quick("fails") }),
  ) as [string, string];
  for (const cwd of [one, one, two]) expect((await runMeanwhile(["work", "do", "--quiet"], { cwd, env })).code).toBe(0);
  expect((await runMeanwhile(["work", "fail", "--quiet"], { cwd: one, env })).code).toBe(1);
  const stats = async (cwd: string, ...words: string[]) =>
    JSON.parse((await runMeanwhile(["stats", "--json", ...words], { cwd, env })).stdout) as unknown;
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
