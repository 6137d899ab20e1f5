import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile } from "../helpers/meanwhile.ts";

test("meanwhile tools --json makes no store, and after five runs it says how long a command takes", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/work/quick.ts": `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({}) });\n`,
  });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const list = async () => {
    const { code, stdout } = await runMeanwhile(["tools", "--json", "--no-bundled"], { cwd, env });
    expect(code).toBe(0);
    return (JSON.parse(stdout) as { tools: Record<string, unknown>[] }).tools;
  };
  const before = await list();
  expect(before).toMatchObject([{ name: "work_quick", async: false, taskModeRecommended: false }]);
  expect(before[0]).not.toHaveProperty("stats");
  expect(existsSync(path.join(cwd, "home/tasks.db"))).toBe(false);
  for (let run = 0; run < 5; run++)
    expect(await runMeanwhile(["--no-bundled", "work", "quick", "--async", "--quiet"], { cwd, env })).toMatchObject({ code: 0 });
  const stats = { runs: 5, p50Ms: expect.any(Number), p95Ms: expect.any(Number), p99Ms: expect.any(Number) };
  // The process that ran them writes their durations when it leaves, a moment after the answer.
  await expect.poll(list, { timeout: 30_000 }).toMatchObject([{ name: "work_quick", async: false, taskModeRecommended: false, stats }]);
});
