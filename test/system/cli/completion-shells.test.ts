import { spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { shareAmongTests, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { executable, runProcess } from "../../helpers/meanwhile.ts";

const command = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Render a report", run: () => ({}),
  input: z.object({ format: z.enum(["pdf", "docx"]).default("pdf"), title: z.enum(["two words", "a:b", "a:c"]).optional() }),
});
`;

function project() {
  const cwd = writeFiles(temporaryFolder(), { "commands/report/render.ts": command });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  return { cwd, env, run: (...words: string[]) => runProcess(words, { cwd, env }) };
}

/** A project with a task in it. */
const withTask = shareAmongTests(async () => {
  const made = project();
  const taskId = (await made.run("report", "render", "--detach")).stdout.trim();
  await made.run("tasks", "result", taskId, "--wait");
  return { ...made, taskId };
});

describe("a real bash", () => {
  /** A bash that has sourced the script; gives what is in COMPREPLY after the function was called for a line. */
  async function openBash({ cwd, env, run }: ReturnType<typeof project>, searched = path.join(cwd, "bin")) {
    const { stdout: script } = await run("completion", "bash");
    writeFiles(cwd, {
      "completion.bash": script,
      "bin/meanwhile": `#!/bin/sh\nexec "${process.execPath}" "${executable}" "$@"\n`,
    });
    chmodSync(path.join(cwd, "bin/meanwhile"), 0o755);
    const call = `set -u; source completion.bash; complete -p meanwhile >&2; PATH=$2
COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDS=($1) COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_meanwhile; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return (line: string): string[] => {
      const words = ["--noprofile", "--norc", "-c", call, "bash", line, searched];
      const { stdout, stderr } = spawnSync("bash", words, {
        cwd,
        env: { ...process.env, ...env, LC_ALL: "C.UTF-8" },
        encoding: "utf8",
      });
      expect(stderr).toBe("complete -o nosort -F _meanwhile meanwhile\n");
      return stdout.split("\n").filter((word) => word !== "");
    };
  }

  test("gets its replies from the script", async () => {
    const { taskId, ...from } = await withTask();
    const reply = await openBash(from);
    expect(reply("meanwhile rep")).toEqual(["report"]);
    expect(reply("meanwhile report ")).toEqual(["render"]);
    expect(reply("meanwhile report render --format=d")).toEqual(["docx"]);
    expect(reply("meanwhile report render --title tw")).toEqual(["two\\ words"]);
    expect(reply('meanwhile report render --title "tw')).toEqual(["two words"]);
    expect(reply("meanwhile report render --title a:")).toEqual(["b", "c"]);
    expect(reply(`meanwhile tasks show ${taskId.slice(0, 8)}`)).toEqual([taskId]);
    expect(reply("meanwhile nonsense ")).toEqual([]);
  });

  test("gets none where meanwhile is gone", async () => {
    const reply = await openBash(project(), "/nowhere");
    expect(reply("meanwhile rep")).toEqual([]);
  });
});
