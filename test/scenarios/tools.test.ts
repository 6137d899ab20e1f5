import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { executable, runMeanwhile } from "../helpers/meanwhile.ts";

test("meanwhile tools --json makes no store, and after five runs it says how long a command takes", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/work/quick.ts": `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({}) });\n`,
  });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const list = async () => {
    const { code, stdout } = await runMeanwhile(["tools", "--json"], { cwd, env });
    expect(code).toBe(0);
    return (JSON.parse(stdout) as { tools: Record<string, unknown>[] }).tools;
  };
  const before = await list();
  expect(before).toMatchObject([{ name: "work_quick", async: false, taskModeRecommended: false }]);
  expect(before[0]).not.toHaveProperty("stats");
  expect(existsSync(path.join(cwd, "home/tasks.db"))).toBe(false);
  for (let run = 0; run < 5; run++)
    expect(await runMeanwhile(["work", "quick", "--async", "--quiet"], { cwd, env })).toMatchObject({ code: 0 });
  const stats = { runs: 5, p50Ms: expect.any(Number), p95Ms: expect.any(Number), p99Ms: expect.any(Number) };
  // The process that ran them writes their durations when it leaves, a moment after the answer.
  await expect
    .poll(list, { timeout: 30_000 })
    .toMatchObject([{ name: "work_quick", async: false, taskModeRecommended: false, stats }]);
});

test("A project's own commands are served alone, and with --bundled those of Meanwhile beside them; in a terminal both are at hand", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/work/quick.ts": `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({}) });\n`,
  });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const served = async (...flags: string[]) => {
    const { stdout } = await runMeanwhile(
      ["tools", "--json", "--", process.execPath, executable, "serve", "--in-process", ...flags],
      { cwd, env },
    );
    const { tools } = JSON.parse(stdout) as { tools: { name: string }[] };
    return tools.map(({ name }) => name).filter((name) => !name.startsWith("task_"));
  };
  const listed = async (...flags: string[]) => {
    const { tools } = JSON.parse((await runMeanwhile(["tools", "--json", ...flags], { cwd, env })).stdout) as {
      tools: { name: string; bundled: boolean }[];
    };
    return Object.fromEntries(tools.map(({ name, bundled }) => [name, bundled]));
  };
  expect(await served()).toEqual(["work_quick"]);
  expect(await served("--bundled")).toEqual(expect.arrayContaining(["work_quick", "config_set", "vault_check"]));
  expect(await listed()).toEqual({ work_quick: false });
  expect(await listed("--bundled")).toMatchObject({ work_quick: false, config_set: true, vault_check: true });
  const { stdout: help } = await runMeanwhile(["--help"], { cwd, env });
  expect(help).toMatch(
    /^Commands of this project\n {2}work +quick\n\nBundled commands, in the terminal alone \(--bundled serves them too\)\n {2}config +path, set\n/m,
  );
  const { stdout: both } = await runMeanwhile(["--bundled", "--help"], { cwd, env });
  expect(both).toMatch(/^Bundled commands\n {2}config +path, set\n/m);
  const { code, stdout } = await runMeanwhile(["config", "path", "--json"], { cwd, env });
  expect({ code, path: JSON.parse(stdout) as unknown }).toMatchObject({
    code: 0,
    path: { user: path.join(cwd, "home/config.json") },
  });
  expect(await runMeanwhile(["--no-bundled", "config", "path"], { cwd, env })).toMatchObject({ code: 2 });
});

test("A bundled command runs as a task beside a project that leaves it out of its server", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/work/quick.ts": "",
    "meanwhile.config.json": '{"bundled":["vault"]}',
  });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const { code, stdout, stderr } = await runMeanwhile(["config", "path", "--async", "--json"], { cwd, env });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(stdout)).toMatchObject({ user: path.join(cwd, "home/config.json") });
});

test("MEANWHILE_AUTO_TASK_TOOLS with a name that no tool has is told by whoever lists or serves the tools, with the cure", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/work/quick.ts": `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({}) });\n`,
  });
  const env = (names: string) => ({ MEANWHILE_HOME: path.join(cwd, "home"), MEANWHILE_AUTO_TASK_TOOLS: names });
  const sentence =
    "MEANWHILE_AUTO_TASK_TOOLS (`deferral.tools` in a config) names nosuch, which is no tool here; `meanwhile tools` lists what there is";
  for (const words of [["tools"], ["serve", "--in-process"]])
    expect(await runMeanwhile(words, { cwd, env: env("work_quick,nosuch") })).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(sentence),
    });
  const { stderr } = await runMeanwhile(["tools"], { cwd, env: env("work_quik") });
  expect(stderr).toContain("names work_quik, which is no tool here; did you mean work_quick?");
  expect(await runMeanwhile(["tools"], { cwd, env: env("work_quick") })).toMatchObject({ code: 0, stderr: "" });
});

test.for(["NaN", "-1", "1e300"])(
  "An estimate of %s is told to whoever runs the command, names the field, and stops nothing",
  async (value) => {
    const cwd = writeFiles(temporaryFolder(), {
      "commands/work/odd.ts": `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", estimate: () => ${value}, run: () => ({}) });\n`,
    });
    const { code, stderr } = await runMeanwhile(["work", "odd"], {
      cwd,
      env: { MEANWHILE_HOME: path.join(cwd, "home") },
    });
    expect(code).toBe(0);
    expect(stderr).toContain("! `estimate` gave ");
    expect(stderr).toContain(
      `${Number(value)}, which is left out; it must give seconds from 0 to 31536000, or { work } with a number above 0.\n`,
    );
  },
);
