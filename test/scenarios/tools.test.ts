import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { runCli, startCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";

const quick = (more = "") =>
  `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", ${more} run: () => ({}) });\n`;

function project(files: Readonly<Record<string, string>> = {}) {
  const cwd = writeFiles(temporaryFolder(), { "commands/work/quick.ts": quick(), ...files });
  return { cwd, env: { MEANWHILE_HOME: path.join(cwd, "home") } };
}

test("`tools --json` makes no store, and has the durations of a command after five runs", async () => {
  const { cwd, env } = project();
  const list = async () => {
    const { code, stdout } = await runCli(["tools", "--json"], { cwd, env });
    expect(code).toBe(0);
    return (JSON.parse(stdout) as { tools: Record<string, unknown>[] }).tools;
  };
  const before = await list();
  expect(before).toMatchObject([{ name: "work_quick", async: false, taskModeRecommended: false }]);
  expect(before[0]).not.toHaveProperty("stats");
  expect(existsSync(path.join(cwd, "home/tasks.db"))).toBe(false);
  for (let run = 0; run < 5; run++)
    expect(await runCli(["work", "quick", "--quiet"], { cwd, env })).toMatchObject({ code: 0 });
  const stats = { runs: 5, p50Ms: expect.any(Number), p95Ms: expect.any(Number), p99Ms: expect.any(Number) };
  expect(await list()).toMatchObject([{ name: "work_quick", async: false, taskModeRecommended: false, stats }]);
});

test("a project serves its own commands, with --bundled also the bundled ones; a terminal has both", async () => {
  const { cwd, env } = project();
  const served = async (...flags: string[]) => {
    const client = startCli(["serve", "--in-process", ...flags], { cwd, env }).client({ revision: "2025-11-25" });
    const { result } = await (await client.begin()).request("tools/list");
    await client.close();
    const { tools } = result as unknown as { tools: readonly { name: string }[] };
    return tools.map(({ name }) => name).filter((name) => !name.startsWith("task_"));
  };
  const listed = async (...flags: string[]) => {
    const { tools } = JSON.parse((await runCli(["tools", "--json", ...flags], { cwd, env })).stdout) as {
      tools: { name: string; bundled: boolean }[];
    };
    return Object.fromEntries(tools.map(({ name, bundled }) => [name, bundled]));
  };
  expect(await served()).toEqual(["work_quick"]);
  expect(await served("--bundled")).toEqual(expect.arrayContaining(["work_quick", "config_set", "vault_check"]));
  expect(await listed()).toEqual({ work_quick: false });
  expect(await listed("--bundled")).toMatchObject({ work_quick: false, config_set: true, vault_check: true });
  const { stdout: help } = await runCli(["--help"], { cwd, env });
  expect(help).toMatch(
    /^Commands of this project\n {2}work +quick\n\nBundled commands, in the terminal alone \(--bundled serves them too\)\n {2}config +path, set\n/m,
  );
  const { stdout: both } = await runCli(["--bundled", "--help"], { cwd, env });
  expect(both).toMatch(/^Bundled commands\n {2}config +path, set\n/m);
  const { code, stdout } = await runCli(["config", "path", "--json"], { cwd, env });
  expect({ code, path: JSON.parse(stdout) as unknown }).toMatchObject({
    code: 0,
    path: { user: path.join(cwd, "home/config.json") },
  });
  expect(await runCli(["--no-bundled", "config", "path"], { cwd, env })).toMatchObject({ code: 2 });
});

test("a bundled command that the project does not serve runs as a task", async () => {
  const { cwd, env } = project({ "meanwhile.config.json": '{"bundled":["vault"]}' });
  const { code, stdout, stderr } = await runCli(["config", "path", "--async", "--json"], { cwd, env });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(JSON.parse(stdout)).toMatchObject({ user: path.join(cwd, "home/config.json") });
});

test("`tools` and `serve` name an unknown tool in MEANWHILE_AUTO_TASK_TOOLS, with the cure", async () => {
  const { cwd } = project();
  const env = (names: string) => ({ MEANWHILE_HOME: path.join(cwd, "home"), MEANWHILE_AUTO_TASK_TOOLS: names });
  const sentence =
    "MEANWHILE_AUTO_TASK_TOOLS (`deferral.tools` in a config) names nosuch, which is no tool here; `meanwhile tools` lists what there is";
  expect(await runCli(["tools"], { cwd, env: env("work_quick,nosuch") })).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(sentence),
  });
  const fresh = { ...env("work_quick,nosuch"), MEANWHILE_HOME: path.join(cwd, "fresh home") };
  const server = startCli(["serve", "--in-process"], { cwd, env: fresh });
  const client = await server.client({ revision: "2025-11-25" }).begin();
  // In a fresh home a list loads every command file.
  await client.request("tools/list");
  await waitFor(() => server.stderr().includes(sentence), server.stderr);
  await client.close();
  const { stderr } = await runCli(["tools"], { cwd, env: env("work_quik") });
  expect(stderr).toContain("names work_quik, which is no tool here; did you mean work_quick?");
  expect(await runCli(["tools"], { cwd, env: env("work_quick") })).toMatchObject({ code: 0, stderr: "" });
});

test("an estimate that is no number of seconds is named in the terminal and stops nothing", async () => {
  const values = { nan: "NaN", negative: "-1", endless: "1e300" };
  const files = Object.entries(values).map(([name, value]) => [
    `commands/odd/${name}.ts`,
    quick(`estimate: () => ${value},`),
  ]);
  const place = project(Object.fromEntries(files));
  for (const [name, value] of Object.entries(values))
    expect(await runCli(["odd", name], place)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        `${Number(value)}, which is left out; it must give seconds from 0 to 31536000, or { work } with a number above 0.\n`,
      ),
    });
});
