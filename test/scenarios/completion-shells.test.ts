import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { runCli, startCli } from "../helpers/cli.ts";
import { holdTimer } from "../helpers/hold-timer.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";

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
  const run = (...words: string[]) => runCli(words, { cwd, env });
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

describe("a shell gets an answer or none, and never an error, from a project with", () => {
  const silent = { code: 0, stderr: "" };
  const endless = `import { writeFileSync } from "node:fs";
import path from "node:path";
writeFileSync(path.join(import.meta.dirname, "../../loading"), "");
await new Promise(() => {});`;
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
  ])("a command that %s", async (_, text, stdout) => {
    const { cwd, env, complete } = project({ "commands/report/render.ts": text });
    const { code } = await runCli(["tools"], { cwd, env });
    expect(code).toBe(stdout === "values\n" ? 1 : 0);
    expect(await complete("zsh", "report", "render", "--format", "")).toMatchObject({ ...silent, stdout });
    expect(await complete("zsh", "report", "")).toMatchObject({
      ...silent,
      stdout: expect.stringMatching(/^values\nrender/),
    });
  });

  test("a command that never finishes loading", async () => {
    const { cwd, env, complete } = project({ "commands/report/render.ts": endless });
    const endLoading = holdTimer(10_000);
    const listing = startCli(["tools"], { cwd, env });
    await waitFor(() => existsSync(path.join(cwd, "loading")));
    endLoading();
    expect(await listing.exited).toBe(1);
    expect(listing.stderr()).toContain("it did not finish loading within 10 s");
    expect(await complete("zsh", "report", "render", "--format", "")).toMatchObject({ ...silent, stdout: "values\n" });
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

  test("a command that throws when it runs, which is not run; no store is made", async () => {
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
