import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { executable, runMeanwhile } from "../helpers/meanwhile.ts";

const command = (text: string, before = "") => `import { defineCommand } from "meanwhile";
import { z } from "zod";
${before}
export default defineCommand({ summary: "Render a report", run: () => ({}), ${text} });
`;
const input =
  'input: z.object({ format: z.enum(["pdf", "docx"]).default("pdf"), title: z.enum(["two words", "a:b", "a:c"]).optional() })';

/** A project, and what `meanwhile _complete` tells a shell there. */
function project(files: Readonly<Record<string, string>> = {}) {
  const cwd = writeFiles(temporaryFolder(), { "commands/report/render.ts": command(input), ...files });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const run = (...words: string[]) => runMeanwhile(words, { cwd, env });
  const complete = async (shell: string, ...words: string[]) => {
    const asked = shell === "bash" ? [" \t\n\"'@><=;|&(:", `meanwhile ${words.join(" ")}`] : words;
    return await run("_complete", "--shell", shell, "--", ...asked);
  };
  const makeTask = async () => {
    const taskId = (await run("report", "render", "--detach")).stdout.trim();
    await run("tasks", "result", taskId, "--wait");
    return taskId;
  };
  return { cwd, env, run, complete, makeTask };
}

/** A project with a task in it, for the tests that only ask. */
const withTask = shareAmongTests(async () => {
  const made = project();
  return { ...made, taskId: await made.makeTask() };
});

describe.each(["bash", "zsh", "fish"])("the entry of %s", (shell) => {
  const described = (value: string, description: string) => (shell === "bash" ? value : `${value}\t${description}`);

  test("offers a domain, a command, an enum value and a task id", async () => {
    const { complete, taskId } = await withTask();
    const offered = async (...words: string[]) => {
      const { code, stdout, stderr } = await complete(shell, ...words);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return stdout;
    };
    expect(await offered("rep")).toBe(`values\n${described("report", "render")}\n`);
    expect(await offered("report", "")).toBe(`values\n${described("render", "Render a report")}\n`);
    expect(await offered("report", "render", "--format", "d")).toBe("values\ndocx\n");
    expect(await offered("tasks", "show", taskId.slice(0, 12))).toBe(
      `values\n${described(taskId, "completed: report_render")}\n`,
    );
    expect(await offered("report", "render", "--input", "")).toBe("files\n");
  });
});

describe("whatever a project does, a shell gets an answer or none, never an error", () => {
  const silent = { code: 0, stderr: "" };
  const noise =
    'console.log("out"); console.error("err"); process.stdout.write("out"); process.emitWarning("careful");';

  test.each([
    ["talks when it is loaded", command(input, noise), "values\npdf\ndocx\n"],
    [
      "has a completer that throws",
      command(`${input}, complete: { format: () => { throw new Error("no network"); } }`),
      "values\npdf\ndocx\n",
    ],
    ["cannot be loaded", "export default", "values\n"],
    ["never finishes loading", "await new Promise(() => {});", "values\n"],
  ])("a command that %s", async (_, text, stdout) => {
    const { cwd, env, complete } = project({ "commands/report/render.ts": text });
    const { code } = await runMeanwhile(["tools"], { cwd, env });
    expect(code).toBe(stdout === "values\n" ? 1 : 0);
    expect(await complete("zsh", "report", "render", "--format", "")).toMatchObject({ ...silent, stdout });
    expect(await complete("zsh", "report", "")).toMatchObject({
      ...silent,
      stdout: expect.stringMatching(/^values\nrender/),
    });
  });

  test("a broken config, a damaged store, and a question that is none", async () => {
    const broken = project({ "meanwhile.config.ts": 'throw new Error("no");' });
    expect(await broken.complete("bash", "tok")).toMatchObject({ ...silent, stdout: "values\ntoken\n" });
    const damaged = project({ "home/tasks.db": "x".repeat(5_000) });
    expect(await damaged.complete("bash", "tasks", "show", "")).toMatchObject({ ...silent, stdout: "" });
    expect(readFileSync(path.join(damaged.cwd, "home/tasks.db"), "utf8")).toBe("x".repeat(5_000));
    for (const words of [[], ["--shell"], ["--shell", "tcsh", "--", ""], ["--help"]])
      expect(await damaged.run("_complete", ...words)).toMatchObject({ ...silent, stdout: "" });
  });

  test("no store is made, and no command is run", async () => {
    const { complete, run, cwd } = project({
      "commands/report/render.ts": command('input: z.object({}), run: () => { throw new Error("ran"); }'),
    });
    expect((await complete("zsh", "tasks", "show", "")).stdout).toBe("values\n");
    await run("tools");
    expect((await complete("zsh", "report", "render", "--j")).stdout).toBe(
      "values\n--json\tprint the result as JSON\n",
    );
    expect(readdirSync(path.join(cwd, "home")).filter((name) => name !== "cache")).toEqual([]);
  });
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
