import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../../helpers/home.ts";
import { runProcess } from "../../../helpers/meanwhile.ts";

/** Verbs that no other file of the system tier starts in a process of their own. */

const quick = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "x", effects: "read", run: () => ({}) });
`;

test("`stats` in a process of its own counts the run of another process", async () => {
  const cwd = writeFiles(temporaryFolder(), { "commands/work/quick.ts": quick });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  expect(await runProcess(["work", "quick", "--quiet"], { cwd, env })).toMatchObject({ code: 0, stderr: "" });
  const { code, stdout } = await runProcess(["stats", "--json"], { cwd, env });
  expect({ code, stats: JSON.parse(stdout) as unknown }).toMatchObject({
    code: 0,
    stats: [{ command: "work_quick", runs: 1 }],
  });
});

test("`setup` in a process of its own shows the entry that it would write", async () => {
  const user = temporaryFolder();
  const env = {
    HOME: user,
    USERPROFILE: user,
    XDG_CONFIG_HOME: path.join(user, ".config"),
    MEANWHILE_HOME: `${user}/home`,
  };
  writeFiles(user, { ".cursor/mcp.json": '{ "mcpServers": {} }' });
  const { code, stdout, stderr } = await runProcess(["setup", "cursor", "--dry-run"], { cwd: temporaryFolder(), env });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toContain(`+++ ${path.join(user, ".cursor/mcp.json")}`);
  expect(stdout).toContain('"mcpServers": {"meanwhile":');
});

test("`compare` in a process of its own refuses a file that is no report", async () => {
  const cwd = writeFiles(temporaryFolder(), { "report.json": "{}" });
  const { code, stdout, stderr } = await runProcess(["compare", "report.json", "report.json"], { cwd });
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^✗ .*report\.json is no report of a diagnosis/),
  });
});
