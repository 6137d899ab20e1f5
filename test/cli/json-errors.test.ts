import { describe, expect, test } from "vitest";
import { runCli } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";

/** With `--json` whoever reads stdout gets JSON whatever happens. */

const command = (body: string) => `import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({ summary: "x", input: z.object({ pages: z.number().default(1) }), ${body} });
`;
const project = shareAmongTests(() =>
  writeFiles(temporaryFolder(), {
    "commands/report/build.ts": command('run() { throw new CommandError("No disk.", { details: { free: 0 } }); }'),
    "commands/report/crash.ts": command("run() {\n  throw new TypeError('no pages');\n}"),
    "commands/report/slow.ts": command(
      "timeout: 0.01, run: (_, { signal }) => new Promise((_, fail) => signal.addEventListener('abort', fail))",
    ),
    "commands/report/broken.ts": "export default 1;",
  }),
);

async function type(...words: string[]) {
  const cwd = await project();
  return await runCli(words, { cwd, env: { MEANWHILE_HOME: `${cwd}/home` } });
}

describe("an error is one JSON object on stdout, beside the sentence on stderr,", () => {
  const cases: Readonly<Record<string, readonly [words: readonly string[], code: number, error: object]>> = {
    "of an unknown command": [["nothere"], 2, { message: expect.stringMatching(/^Unknown command `nothere`/) }],
    "of an unknown flag": [
      ["report", "build", "--pgaes", "1"],
      2,
      { message: expect.stringMatching(/unknown option/i) },
    ],
    "of arguments that do not fit": [
      ["report", "build", "--pages", "x"],
      2,
      { message: expect.stringMatching(/`pages`/) },
    ],
    "of a command that says no": [["report", "build"], 1, { message: "No disk.", details: { free: 0 } }],
    "of a command that throws": [
      ["report", "crash"],
      1,
      { message: "no pages", at: expect.stringMatching(/crash\.ts:4:\d+$/) },
    ],
    "of a command that takes too long": [
      ["report", "slow"],
      124,
      { message: expect.stringMatching(/^Timed out after 0\.01 s\./) },
    ],
    "of a command that does not load": [["report", "broken"], 1, { message: expect.stringMatching(/default export/) }],
    "of a task that fails": [["report", "build", "--async"], 1, { message: "No disk." }],
    "of a task that is not there": [["tasks", "show", "0b7e8f0a"], 2, {}],
    "of a call without a tool": [["call", "."], 2, { message: expect.stringMatching(/^Say which tool to call/) }],
    "of a server that is away": [["tools", "unix:/nowhere.sock"], 1, { message: "Nothing listens on /nowhere.sock." }],
  };

  test.each(Object.entries(cases))("%s", async (_, [words, exitCode, error]) => {
    const { code, stdout, stderr } = await type(...words, "--json");
    expect(code).toBe(exitCode);
    expect(JSON.parse(stdout)).toMatchObject({ error: { ...error, exitCode } });
    expect(stderr).toContain("✗ ");
  });

  test("of a home that is not the user's own", async () => {
    const home = writeFiles(temporaryFolder(), { token: "x" });
    const { chmodSync } = await import("node:fs");
    chmodSync(home, 0o777);
    const { code, stdout } = await runCli(["tasks", "list", "--json"], { env: { MEANWHILE_HOME: home } });
    expect({ code, ...(JSON.parse(stdout) as object) }).toMatchObject({
      code: 70,
      error: { code: "HOME_UNUSABLE", exitCode: 70, message: expect.stringContaining("may be written by others") },
    });
  });
});

test("with --yaml it is YAML, and without either stdout stays empty", async () => {
  expect(await type("nothere", "--yaml")).toMatchObject({
    stdout: expect.stringMatching(/^error:\n {2}message: .*\n {2}exitCode: 2\n$/s),
  });
  expect(await type("nothere")).toMatchObject({ code: 2, stdout: "" });
});

test.each([
  ["the words of a server behind --", ["call", "x", "--", "nothere-at-all", "--json"]],
  ["a server on stdio, whose stdout is its client's", ["serve", "--json"]],
  ["what is wrapped, whose stdout is its client's", ["wrap", "--json"]],
])("nothing is printed for %s", async (_, words) => {
  expect(await type(...words)).toMatchObject({ stdout: "" });
});

describe("flags that exclude each other are refused", () => {
  test.each([
    [["--json", "--yaml"], "--json and --yaml exclude each other; give one of them."],
    [["--async", "--detach"], "--detach and --async exclude each other; --async stays and follows the task."],
    [["--task-ttl", "1000"], "--task-ttl is for a task; add --async or --detach."],
    [
      ["--out", "x.png", "--detach"],
      "--out and --detach exclude each other; --detach ends before there is a result to write.",
    ],
  ])("%j", async (flags, sentence) => {
    for (const words of [
      ["report", "build"],
      ["call", ".", "report_build"],
    ])
      expect(await type(...words, ...flags)).toMatchObject({ code: 2, stderr: `✗ ${sentence}\n` });
  });
});
