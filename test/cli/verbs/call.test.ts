import path from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { answerShell } from "../../../src/cli/entries/answer-shell.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { loadOnce } from "../../helpers/load-once.ts";
import { typeHere } from "../../helpers/terminal.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

/**
 * Types a line in a terminal that is not there. The port is nobody's: a line that got as far as to call would say so.
 */
const type = (...words: string[]) => typeHere(words, { readInput: () => Promise.resolve("[1]") });

const url = "http://127.0.0.1:1/mcp";

describe("words that are wrong are refused in one sentence, and nobody is called", () => {
  test.each<[string[], RegExp]>([
    [["call"], /Say which server to call, and which tool/],
    [["call", url], /Say which tool to call; meanwhile tools http:\/\/127\.0\.0\.1:1\/mcp lists them\./],
    [["call", "", "tool"], /The target is empty/],
    [["call", "node 'x", "tool"], /has a ' that is never closed/],
    [["call", "ftp://host", "tool"], /cannot begin with ftp:\/\//],
    [["call", "https://me:geheim@host/mcp", "tool"], /holds a user name or password/],
    [["call", url, "tool", "word"], /"word" is no argument; write it as key=value\./],
    [["call", url, "tool", "--task-ttl", "0"], /--task-ttl must be a positive whole number of milliseconds, not "0"\./],
    [["call", url, "tool", "--task-ttl", "1.5"], /--task-ttl must be a positive whole number/],
    [["call", url, "tool", "--task-ttl=1e3"], /--task-ttl must be a positive whole number/],
    [["call", url, "tool", "--task-ttl", "99999999999999999999"], /--task-ttl must be a positive whole number/],
    [
      ["call", url, "tool", "--poll-interval", "soon"],
      /--poll-interval must be a positive whole number of milliseconds, not "soon"\./,
    ],
    [["call", url, "tool", "--poll-interval=-5"], /--poll-interval must be a positive whole number/],
    [["call", url, "tool", "--timeout", "0"], /--timeout must be a positive number of seconds, not "0"\./],
    [["call", url, "tool", "--timeout", "Infinity"], /--timeout must be a positive number of seconds/],
    [["call", url, "tool", "--detach", "--wait"], /--detach and --wait exclude each other/],
    [["call", url, "tool", "--detach", "--async"], /--detach and --async exclude each other/],
    [["call", url, "tool", "--task-ttl", "1000"], /--task-ttl is for a task; add --async or --detach\./],
    [["call", url, "tool", "--idempotency-key", ""], /--idempotency-key is empty/],
    [["call", url, "tool", "--args", "{"], /--args is not JSON/],
    [["call", url, "tool", "--args", "[]"], /--args must be one JSON object/],
    [["call", url, "tool", "--input", "/nowhere/at/all.json"], /--input \/nowhere\/at\/all\.json cannot be used/],
    [["call", url, "tool", "--input", "-"], /--input - must hold one JSON object/],
    [["call", url, "tool", "--header", "no colon, geheim"], /--header must read 'Name: value'\./],
    [["call", url, "tool", "--header", "X: "], /--header must read 'Name: value'\./],
    [
      ["call", url, "tool", "--header", "X: geheim\nY: z"],
      /the value of X holds characters that a header cannot carry/,
    ],
    [["call", ".", "tool", "--header", "X: geheim"], /--header is for servers that are reached by a URL/],
    [["call", "unix:/x.sock", "tool", "--token-env", "T"], /--token-env is for servers that are reached by a URL/],
    [
      ["call", url, "tool", "--token-env", "MEANWHILE_NOT_SET"],
      /the variable MEANWHILE_NOT_SET is not set, or empty\./,
    ],
    [["call", url, "tool", "--token-env", "T", "--header", "authorization: geheim"], /exclude each other/],
    [["call", url, "tool", "--asnyc"], /Unknown option '--asnyc'; did you mean --async\?/],
    [["call", "--", "node", "server.js"], /Say which tool to call: meanwhile call <tool> .* -- <command>/],
    [["call", "tool", "--"], /The server's command is empty/],
    [["call", "tool", "word", "--", "node"], /"word" is no argument/],
    [["tools", ""], /The target is empty/],
    [["tools", url, "--", "node"], /Behind -- stands the server's command line/],
    [["tools", "--header", "X: geheim"], /give its target too/],
    [["tasks", "list", "--header", "X: geheim"], /name it with --target/],
    [["tasks", "prune", "--target", url], /tasks prune is for your own tasks/],
    [["tasks", "watch", "--target", url], /follows one task; give its id/],
    [["tasks", "list", "--limit", "5", "--target", url], /--limit is for your own tasks/],
    [["tasks", "list", "--status", "queued", "--target", url], /--status: "queued" is none of working, input_required/],
    [["tasks", "list", "--status", "failed", "--live", "--target", url], /--live and --status exclude each other/],
    [["tasks", "show", "--target", url], /missing required argument 'task'/i],
    [["tasks", "show", "x", "--target", "'"], /has a ' that is never closed/],
  ])("meanwhile %j", async (words, sentence) => {
    const { code, printed, said } = await type(...words);
    expect({ code, printed }, said).toEqual({ code: 2, printed: "" });
    expect(said).toMatch(sentence);
    expect(said).toMatch(/^✗ [^\n]+\n( {2}See: [^\n]+\n)?$/);
    expect(said).not.toContain("geheim");
  });

  test("--help has examples, and says what each exit code means", async () => {
    const { code, printed } = await type("call", "--help");
    expect(code).toBe(0);
    expect(printed.match(/^ {2}\$ meanwhile call /gm)).toHaveLength(3);
    expect(printed).toMatch(/Exit codes: 0 .* 1 .* 2 .*\n124 timed out, 130 cancelled/);
    for (const line of printed.split("\n").filter((text) => !text.startsWith("  $")))
      expect(line.length).toBeLessThanOrEqual(90);
    expect((await type("call", "tool", "--", "node", "--help")).code, "behind -- it is the server's").not.toBe(0);
  });
});

describe("completion of a call", () => {
  const command = (more: string) =>
    `import { defineCommand } from "meanwhile";\nimport { z } from "zod";\nexport default defineCommand({ ${more} run: () => ({}) });\n`;
  const input = `input: z.object({ quarter: z.enum(["Q1", "Q2"]).describe("Which"), draft: z.boolean().default(false), tags: z.array(z.enum(["a", "b"])).default([]), options: z.object({}).optional() }),`;

  function project(config: object = {}) {
    const cwd = writeFiles(temporaryFolder(), {
      "commands/report/build.ts": command(`summary: "Build it", ${input}`),
      "commands/notes/add.ts": command('summary: "Add a note",'),
      "meanwhile.config.json": JSON.stringify({ bundled: false, ...config }),
    });
    const env = { MEANWHILE_HOME: path.join(cwd, "home") };
    const loaded = loadOnce({ cwd, env });
    const ask = async (shell: string, ...words: string[]) => {
      await loaded;
      return (await answerShell(["--shell", shell, "--", ...words], { verbs: [], cwd, env })).split("\n").slice(0, -1);
    };
    return {
      zsh: (...words: string[]) => ask("zsh", "call", ...words),
      values: async (...words: string[]) => (await ask("zsh", ...words)).slice(1).map((line) => line.split("\t")[0]),
      bash: (line: string) => ask("bash", " \t\n\"'@><=;|&(:", line),
    };
  }

  test("targets, then the tools of this project", async () => {
    const { values, zsh } = project();
    for (const verb of ["call", "tools"])
      expect(await values(verb, "")).toEqual([".", "http://", "https://", "unix:/"]);
    expect(await values("tasks", "show", "--target", "")).toEqual([".", "http://", "https://", "unix:/"]);
    expect((await zsh(".", "")).toSorted()).toEqual(["notes_add\tAdd a note", "report_build\tBuild it", "values"]);
    expect(await values("call", ".", "re")).toEqual(["report_build"]);
  });

  test("the names of a tool's arguments that are left, then their values", async () => {
    const { values, zsh, bash } = project();
    expect(await zsh(".", "report_build", "")).toEqual(["values", "quarter=\tWhich", "draft=", "tags=", "options="]);
    expect(await values("call", ".", "report_build", "quarter=Q1", "tags=a", "")).toEqual([
      "draft=",
      "tags=",
      "options=",
    ]);
    expect(await values("call", ".", "report_build", "quarter=")).toEqual(["quarter=Q1", "quarter=Q2"]);
    expect(await values("call", "--json", ".", "report_build", "draft=t")).toEqual(["draft=true"]);
    expect(await bash("meanwhile call . report_build quarter=")).toEqual(["values", "Q1", "Q2"]);
    expect(await values("call", ".", "report_build", "options=")).toEqual([]);
    expect(await values("call", ".", "report_build", "--po")).toEqual(["--poll-interval"]);
  });

  test("with the prefix that this project's tools have", async () => {
    const { values } = project({ toolPrefix: "mine" });
    expect(await values("call", ".", "mine_r")).toEqual(["mine_report_build"]);
    expect(await values("call", ".", "mine_report_build", "quarter=Q1", "dr")).toEqual(["draft="]);
  });

  test("no other server is asked, for tools or for tasks", async () => {
    const { values } = project();
    expect(await values("call", url, "")).toEqual([]);
    expect(await values("call", "node server.js", "report_build", "")).toEqual([]);
    expect(await values("call", ".", "unheard", "")).toEqual([]);
    expect(await values("tasks", "show", "--target", url, "")).toEqual([]);
  });
});
