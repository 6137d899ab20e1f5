import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { commandHelp } from "../../src/cli/command-usage.ts";
import { toCommandWords } from "../../src/cli/completion/command-words.ts";
import type { Grammar } from "../../src/cli/completion/grammar.ts";
import { bashEscapable, fishEscapable, readLine } from "../../src/cli/completion/line.ts";
import { answerShell } from "../../src/cli/entries/answer-shell.ts";
import { globalFlags, helpFlag } from "../../src/cli/flags.ts";
import type { Verb } from "../../src/cli/verb.ts";
import { type VerbName, verbs } from "../../src/cli/verb-list.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import { openTasks } from "../../src/runtime/open-tasks.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { loadOnce } from "../helpers/load-once.ts";
import { runMeanwhile } from "../helpers/meanwhile.ts";
import { typeHere } from "../helpers/terminal.ts";

const commandFile = pathToFileURL(path.resolve(import.meta.dirname, "../../src/command/command.ts")).href;
const command = (text: string) =>
  `import { defineCommand } from "${commandFile}";\nimport { z } from "zod";\nexport default defineCommand({ run: () => ({}), ${text} });\n`;

const render = `summary: "Render: a report",
  input: z.object({
    kind: z.enum(["sales", "staff"]).describe("Which report"),
    template: z.string(),
    format: z.enum(["pdf", "docx", "txt"]).default("pdf").describe("Output format"),
    title: z.enum(["plain", "two words", "it's", 'say "hi"', "a:b", "a:c", "a=b", "$HOME", "-dash", "two\\nlines"]).optional(),
    tags: z.array(z.enum(["red", "green", "blue"])).meta({ uniqueItems: true }).default([]),
    cover: z.boolean().default(true),
    draft: z.boolean().default(false),
    level: z.int().min(-2).max(2).nullable().optional(),
    out: z.string().optional(),
    since: z.iso.date().optional(),
    options: z.object({ colour: z.boolean() }).optional(),
    slow: z.string().optional(),
  }),
  complete: {
    template: (_, { arguments: given }) => ({ sales: [{ value: "quarter", description: "Three months" }, "year"], staff: ["team"] })[given.kind] ?? [],
    slow: () => { throw new Error("no network"); },
  },`;

/** What a shell is told in a project, as lines; the words are those behind `meanwhile`, the last one being typed. */
function project(files: Readonly<Record<string, string>> = {}) {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/report/render.ts": command(render),
    "commands/report/wipe.ts": command(
      'summary: "Wipe", effects: "destroy", input: z.object({ level: z.int().min(-3).max(-1), names: z.array(z.string()) }),',
    ),
    "commands/report/parts/list.ts": command('summary: "List parts",'),
    "commands/notes/index.ts": command(
      'summary: "All notes", input: z.object({ which: z.enum(["old", "new", "-all"]) }),',
    ),
    "commands/notes/add.ts": command('summary: "Add a note",'),
    "commands/broken/file.ts": "throw new Error('no');",
    "meanwhile.config.json": JSON.stringify({ bundled: false }),
    ...files,
  });
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const verbs = [
    { name: "serve", summary: "serve the commands" },
    { name: "tasks", summary: "list tasks" },
  ] as const;
  let loaded: Promise<void> | undefined;
  const load = () => (loaded ??= loadOnce({ cwd, env }));
  /** In a folder where nothing has been loaded yet. */
  const askAtFirst = async (shell: string, ...words: string[]) =>
    (await answerShell(["--shell", shell, "--", ...words], { verbs, cwd, env })).split("\n").slice(0, -1);
  const ask = async (shell: string, ...words: string[]) => {
    await load().catch(() => undefined);
    return await askAtFirst(shell, ...words);
  };
  return {
    askAtFirst,
    cwd,
    env,
    zsh: (...words: string[]) => ask("zsh", ...words),
    fish: (...words: string[]) => ask("fish", ...words),
    bash: (line: string, breaks = " \t\n\"'@><=;|&(:") => ask("bash", breaks, line),
    /** The values alone. */
    values: async (...words: string[]) => (await ask("zsh", ...words)).slice(1).map((line) => line.split("\t")[0]),
    ask,
  };
}

describe("names", () => {
  test("the first word is a verb or a domain", async () => {
    expect(await project().zsh("")).toEqual([
      "values",
      "serve\tserve the commands",
      "tasks\tlist tasks",
      "help\texplain a command",
      "broken\tfile",
      "notes\tadd",
      "report\tparts list, render, wipe",
    ]);
  });

  test("what was typed decides: its beginning, upper or lower case, or the one with its letters", async () => {
    const { values } = project();
    expect(await values("re")).toEqual(["report"]);
    expect(await values("RE")).toEqual(["report"]);
    expect(await values("rprt")).toEqual(["report"]);
    expect(await values("s")).toEqual(["serve"]);
    expect(await values("e"), "several have this letter; replaced by what they share, it would be lost").toEqual([]);
    expect(await values("xyz")).toEqual([]);
  });

  test("then commands with what they do, and folders of them", async () => {
    const { zsh } = project();
    expect(await zsh("report", "")).toEqual(["values", "parts\tlist", "render\tRender: a report", "wipe\tWipe"]);
    expect(await zsh("report", "parts", "")).toEqual(["values", "list\tList parts"]);
    expect(await zsh("broken", "")).toEqual(["values", "file"]);
    expect(await zsh("nowhere", "")).toEqual(["values"]);
  });

  test("a domain that is a command too offers both", async () => {
    const { values } = project();
    expect(await values("notes", "")).toEqual(["add", "old", "new"]);
    expect(await values("notes", "old", "")).toContain("--json");
  });

  test("help takes the names of all of them", async () => {
    const { values } = project();
    expect(await values("help", "")).toEqual(["serve", "tasks", "broken", "notes", "report"]);
    expect(await values("help", "report", "")).toEqual(["parts", "render", "wipe"]);
  });

  test("options before the command say where commands are", async () => {
    const { values, zsh, cwd } = project();
    writeFiles(cwd, { "other/hidden/away.ts": "" });
    expect(await values("--")).toEqual([
      "--commands",
      "--bundled",
      "--no-bundled",
      "--no-color",
      "--version",
      "--help",
    ]);
    expect(await values("--no-bundled", "--commands", "other", "h")).toEqual(["help", "hidden"]);
    expect(await values("--commands=other", "--no-color", "hidden", "")).toEqual(["away"]);
    expect(await zsh("--commands", "")).toEqual(["folders"]);
    expect(await zsh("--commands=o")).toEqual(["folders ="]);
    expect(await values("--commands", "missing", ""), "our own verbs are left").toEqual(["serve", "tasks", "help"]);
  });

  test("a config that cannot be loaded leaves our own verbs", async () => {
    expect(await project({ "meanwhile.config.json": "{" }).values("")).toEqual(["serve", "tasks", "help"]);
  });
});

describe("flags", () => {
  test("all that are left, described; those that are seldom needed once a letter was typed", async () => {
    const { values, zsh } = project();
    const all =
      "--format --title --tags --no-cover --draft --level --out --since --options --slow --input --json --yaml --quiet --async --detach --new --task-ttl --help";
    expect(await values("report", "render", "-")).toEqual(all.split(" "));
    expect(await zsh("report", "render", "--f")).toEqual(["values", "--format\tOutput format"]);
    expect(await values("report", "render", "--no")).toEqual(["--no-cover", "--no-draft"]);
    expect(await values("report", "render", "--k")).toEqual(["--kind"]);
    expect(await values("report", "wipe", "--y")).toEqual(["--yaml", "--yes"]);
  });

  test("those already given are left out, unless they may be given again", async () => {
    const { values } = project();
    const given = ["report", "render", "sales", "year", "--format", "pdf", "--tags=red", "--cover", "--json"];
    const left = await values(...given, "--");
    expect(left).not.toEqual(expect.arrayContaining(["--format"]));
    expect(left).not.toEqual(expect.arrayContaining(["--no-cover"]));
    expect(left).not.toEqual(expect.arrayContaining(["--json"]));
    expect(left).toContain("--tags");
    expect(await values(...given, ""), "where no argument is left, flags are what can follow").toEqual(left);
    expect(await values(...given, "--c")).toEqual([]);
  });

  test("of our own verbs", async () => {
    const { values } = project();
    expect(await values("serve", "--http", "--")).toEqual([
      "--port",
      "--host",
      "--socket",
      "--public-url",
      "--allow-anonymous",
      "--in-process",
      "--no-work",
      "--commands",
      "--bundled",
      "--no-bundled",
      "--help",
    ]);
    expect(await values("serve", "--host", "")).toEqual([]);
    expect(await values("tasks", "")).toEqual([
      "list",
      "show",
      "result",
      "progress",
      "watch",
      "cancel",
      "retry",
      "answer",
      "prune",
    ]);
    expect(await values("tasks", "result", "--")).toEqual([
      "--wait",
      "--json",
      "--out",
      "--target",
      "--header",
      "--token-env",
      "--revision",
      "--help",
    ]);
    expect(await values("completion", "")).toEqual(["bash", "zsh", "fish"]);
  });

  test("none behind --, and no value of an argument looks like one before it", async () => {
    const { values } = project();
    expect(await values("notes", "")).toEqual(["add", "old", "new"]);
    expect(await values("notes", "-")).not.toContain("-all");
    expect(await values("notes", "--", "")).toEqual(["old", "new", "-all"]);
    expect(await values("report", "render", "--", "-")).toEqual([]);
    expect(await values("report", "wipe", "")).toEqual(["-3", "-2", "-1"]);
    expect(await values("report", "wipe", "-")).toEqual(expect.arrayContaining(["-3", "--yes"]));
  });
});

describe("values", () => {
  test("of an argument and of a flag, behind a blank or =", async () => {
    const { values, zsh, fish } = project();
    expect(await values("report", "render", "")).toEqual(["sales", "staff"]);
    expect(await values("report", "render", "--format", "")).toEqual(["pdf", "docx", "txt"]);
    expect(await zsh("report", "render", "--format=d")).toEqual(["values =", "docx"]);
    expect(await fish("report", "render", "--format=d")).toEqual(["values", "--format=docx"]);
    expect(await values("report", "render", "--draft=")).toEqual(["true", "false"]);
    for (const word of ["--nonsense=", "--json=", "--bundled="])
      expect(await values("report", "render", word)).toEqual([]);
  });

  test("an argument whose completer is the author's code is left alone: it is not run, and files would be wrong", async () => {
    const { zsh } = project();
    expect(await zsh("report", "render", "sales", "")).toEqual(["values"]);
    expect(await zsh("report", "render", "--slow", "")).toEqual(["values"]);
  });

  test("where the schema of such an argument has values, they are offered", async () => {
    const { values } = project({
      "commands/report/pick.ts": command(
        'summary: "Pick", input: z.object({ one: z.enum(["a", "b"]) }), complete: { one: () => { throw new Error("run"); } },',
      ),
    });
    expect(await values("report", "pick", "")).toEqual(["a", "b"]);
  });

  test("a list has each value once where it must, and takes what is left of the line", async () => {
    const { values, zsh } = project();
    expect(await values("report", "render", "--tags", "red", "--tags", "")).toEqual(["green", "blue"]);
    expect(await zsh("report", "wipe", "--", "-1", "a", "b", "")).toEqual(["files"]);
  });

  test("a value of a flag may begin with a dash, and null cannot be typed", async () => {
    const { values } = project();
    expect(await values("report", "render", "--title", "-")).toEqual(["-dash"]);
    expect(await values("report", "render", "--level", "")).toEqual(["-2", "-1", "0", "1", "2"]);
  });

  test("a text that could be anything is left to the shell's files; one that could not, and an object, is not", async () => {
    const { zsh } = project();
    expect(await zsh("report", "render", "--out", "")).toEqual(["files"]);
    expect(await zsh("report", "render", "--out=./x")).toEqual(["files ="]);
    expect(await zsh("report", "render", "--input", "")).toEqual(["files"]);
    expect(await zsh("report", "render", "--since", "soon")).toEqual(["values"]);
    expect(await zsh("report", "render", "--options", "")).toEqual(["values"]);
    expect(await zsh("report", "render", "--task-ttl", "")).toEqual(["values"]);
  });

  test("statuses, with commas between", async () => {
    const { values } = project();
    expect(await values("tasks", "list", "--status", "")).toEqual([
      "queued",
      "working",
      "input_required",
      "completed",
      "failed",
      "cancelled",
    ]);
    expect(await values("tasks", "list", "--status", "failed,completed,c")).toEqual(["failed,completed,cancelled"]);
  });
});

describe("task ids", () => {
  test("newest first, with status and command; those that can still be cancelled where that is asked", async () => {
    const { cwd, env, zsh, values } = project();
    const settings = await loadSettings({ cwd, env, flags: {} });
    const tasks = await openTasks(settings);
    const create = (name: string) => {
      const entry = {
        toolName: name,
        path: [name],
        file: "x.ts",
        command: defineCommand({ summary: "x", run: () => ({}) }),
      };
      return tasks.engine.create({ entry, input: {}, caller: tasks.localKey, name, reason: "test" });
    };
    const { task: first } = await create("first");
    const { task: second } = await create("second");
    await tasks.engine.cancel(tasks.localKey, first.taskId, "No longer needed.");
    await tasks.close();
    const ids = [second.taskId, first.taskId];
    const [heading, ...lines] = await zsh("tasks", "show", "");
    expect({ heading, lines }).toEqual({
      heading: "values",
      lines: [
        expect.stringMatching(`^${second.taskId}\tqueued: second`),
        expect.stringMatching(`^${first.taskId}\tcancelled: first`),
      ],
    });
    for (const verb of ["result", "watch"]) expect(await values("tasks", verb, "")).toEqual(ids);
    expect(await values("tasks", "cancel", "")).toEqual([second.taskId]);
    expect(await values("tasks", "answer", "")).toEqual([]);
    expect(await values("tasks", "show", second.taskId.slice(0, 12))).toEqual([second.taskId]);
    expect(await values("tasks", "show", second.taskId, ""), "one is enough").toEqual(
      expect.arrayContaining(["--json", "--help"]),
    );
  });

  test("no store is made to look for them", async () => {
    const { askAtFirst, env } = project();
    expect(await askAtFirst("zsh", "tasks", "show", "")).toEqual(["values"]);
    expect(existsSync(env.MEANWHILE_HOME)).toBe(false);
  });
});

describe("nothing of a project is run", () => {
  test("not for names, for what they do, for flags, or for values; names are offered all the same", async () => {
    const { askAtFirst } = project({
      "commands/report/render.ts": "globalThis.isLoaded = true; throw new Error('loaded');",
    });
    expect(await askAtFirst("zsh", "report", "")).toEqual(["values", "parts\tlist", "render", "wipe"]);
    expect(await askAtFirst("zsh", "report", "render", "--")).toEqual(["values"]);
    expect(await askAtFirst("zsh", "report", "wipe", "--")).toEqual(["values"]);
    expect(await askAtFirst("zsh", "call", ".", "report_render", "")).toEqual(["values"]);
    expect(globalThis).not.toHaveProperty("isLoaded");
  });

  test("what a file says counts until its text changes", async () => {
    const { cwd, env, zsh, values } = project();
    expect(await zsh("report", "wipe", "--y")).toEqual([
      "values",
      "--yaml\tprint the result as YAML",
      "--yes\tgo ahead without asking",
    ]);
    writeFiles(cwd, {
      "commands/report/wipe.ts": command('summary: "Wipe more", input: z.object({ hard: z.boolean().optional() }),'),
    });
    expect(await zsh("report", "")).toEqual(["values", "parts\tlist", "render\tRender: a report", "wipe"]);
    expect(await values("report", "wipe", "--")).toEqual([]);
    await runMeanwhile(["tools"], { cwd, env });
    expect(await zsh("report", "")).toEqual(["values", "parts\tlist", "render\tRender: a report", "wipe\tWipe more"]);
    expect(await values("report", "wipe", "--h")).toEqual(["--hard", "--help"]);
  });

  test("a damaged catalog is as good as none", async () => {
    const { askAtFirst, zsh, env } = project();
    expect(await zsh("report", "parts", "")).toEqual(["values", "list\tList parts"]);
    const folder = path.join(env.MEANWHILE_HOME, "cache/catalog");
    const [name = ""] = readdirSync(folder);
    for (const text of [
      "",
      "[]",
      "null",
      '{"parts/list.ts":5}',
      '{"parts/list.ts":{"digest":"x","command":{}}}',
      "{".repeat(10_000),
    ]) {
      writeFiles(folder, { [name]: text });
      expect(await askAtFirst("zsh", "report", "parts", ""), text).toEqual(["values", "list"]);
    }
  });

  test("a file that fails, and a question that is none, give no answer", async () => {
    const { zsh, ask } = project();
    expect(await zsh("broken", "file", "--")).toEqual(["values"]);
    expect(await ask("tcsh", "")).toEqual([]);
  });
});

describe("bash", () => {
  const begin = "meanwhile report render --title";

  test.each([
    ["a blank", `${begin} tw`, ["two\\ words"]],
    ["an open quote", `${begin} "tw`, ["two words"]],
    ["quotes inside quotes", `${begin} "say`, ['say \\"hi\\""']],
    ["an apostrophe inside single quotes", `${begin} 'it`, ["it'\\''s"]],
    ["a closed quote is replaced", `${begin} "two w"`, ["two\\ words"]],
    ["a dollar", `${begin} \\$`, ["\\$HOME"]],
    ["a colon begins a new word for readline", `${begin} a:`, ["b", "c"]],
    ["one with a backslash does not", `${begin} a\\:`, ["a:b", "a:c"]],
    ["= does", `${begin}=a=`, ["b"]],
    ["a quote behind =", `${begin}="a:`, ["a:b", "a:c"]],
    ["a dash", `${begin} -d`, ["-dash"]],
  ])("%s", async (_, line, replies) => {
    expect(await project().bash(line)).toEqual(["values", ...replies]);
  });

  test("where = and : are no word breaks, the whole word is replaced", async () => {
    expect(await project().bash(`${begin}=a:`, " \t\n")).toEqual(["values", "--title=a:b", "--title=a:c"]);
  });

  test("a file where output goes", async () => {
    const { bash } = project();
    expect(await bash("meanwhile report 2> ")).toEqual(["files"]);
    expect(await bash("meanwhile report 2>log re")).toEqual(["values", "render"]);
  });

  test("a value with a line break in it cannot be offered", async () => {
    expect(await project().bash(`${begin} two`)).toEqual(["values", "two\\ words"]);
  });
});

describe("a line is read as its shell reads it", () => {
  const bash = (text: string) => readLine(text, { escapable: bashEscapable, breaks: "\"'@><=;|&(:" });

  test.each([
    ["a b", { words: ["a"], current: "b", kept: 0 }],
    ["a ", { words: ["a"], current: "" }],
    ['a "" b', { words: ["a", ""], current: "b" }],
    ['a\\ b "c d" \'e\\\' "\\$f\\g', { words: ["a b", "c d", "e\\"], current: "$f\\g", quote: '"', kept: 0 }],
    ["--f=x:y", { current: "--f=x:y", kept: 6 }],
    ["--f=\"x:'y", { current: "--f=x:'y", kept: 4, quote: '"' }],
    ['--f="x:y"', { current: "--f=x:y", kept: 4, quote: undefined }],
    ["user@host", { current: "user@host", kept: 4 }],
    ["a >f b <", { words: ["a", "b"], current: "", isRedirection: true }],
    ["a 2>&1 b", { words: ["a"], current: "b", isRedirection: false }],
    ["a\\", { current: "a" }],
  ])("bash: %s", (text, line) => {
    expect(bash(text)).toMatchObject(line);
  });

  test("fish knows a backslash in single quotes", () => {
    const fish = (text: string) => readLine(text, { escapable: fishEscapable, breaks: "" }).current;
    expect(["'it\\'s", '"a\\"b', "a\\ b"].map(fish)).toEqual(["it's", 'a"b', "a b"]);
  });
});

describe("the words of the grammar are those of --help", () => {
  const wordsOf = ({ flags }: Verb) => flagsOf({ flags: [...flags, helpFlag], operands: [] });

  test.each(Object.keys(verbs) as VerbName[])("%s", async (name) => {
    const { verb } = await verbs[name].load();
    const { printed } = await type(name, "--help");
    if (!("verbs" in verb)) return expect(wordsOf(verb)).toEqual(flagsIn(printed));
    const listed = [...printed.matchAll(/^ {2}(\w+).*? {2,}(.*)$/gm)].map(([, word, summary]) => [word, summary]);
    expect(Object.entries(verb.verbs).map(([word, { description }]) => [word, description])).toEqual(listed);
    for (const [inner, declared] of Object.entries(verb.verbs))
      expect(wordsOf(declared), inner).toEqual(flagsIn((await type(name, inner, "--help")).printed));
  });

  test("every verb has some", async () => {
    const { printed } = await type("--help");
    const listed = /^Commands of Meanwhile\n((?: .*\n)+)/m.exec(printed)?.[1]?.match(/^ {2}\w+/gm) ?? [];
    expect(Object.keys(verbs).map((name) => `  ${name}`)).toEqual(listed);
    for (const { word, description } of globalFlags())
      expect(printed).toMatch(new RegExp(`${word}.* {2}${description.replace(/[()]/g, "\\$&")}$`, "m"));
  });

  test.each([
    ["without arguments", defineCommand({ summary: "x", run: () => ({}) })],
    ["that asks first", defineCommand({ summary: "x", effects: "destroy", run: () => ({}) })],
  ])("a command %s", (_, made) => {
    expect(flagsOf(toCommandWords(made))).toEqual(flagsIn(helpOf(made)));
  });

  test("a command's own flags", () => {
    const input = z.object({
      place: z.string(),
      dryRun: z.boolean().default(true),
      json: z.string().optional(),
      sizes: z.array(z.number()).default([]),
    });
    const made = defineCommand({ summary: "x", input, run: () => ({}) });
    const withoutText = (flags: unknown[][]) => flags.map(([word, takesValue]) => [word, takesValue]);
    expect(withoutText(flagsOf(toCommandWords(made)))).toEqual(withoutText(flagsIn(helpOf(made))));
  });

  const helpOf = (made: Command) => commandHelp({ command: made, path: ["x"] });
  const flagsOf = ({ flags }: Grammar) =>
    flags
      .filter(({ isRare }) => isRare !== true)
      .map(({ word, values, description }) => [word, values !== undefined, description]);
  /** The flags that a help text lists; a long description goes on in the next line. */
  const flagsIn = (help: string) =>
    [...help.replaceAll(/\n {12,}(?=\S)/g, " ").matchAll(/^ {2}(?:-\w, )?(--[\w-]+)( <[^>]+>)?(?: {2,}(.*))?$/gm)].map(
      ([, word, value, text = ""]) => [word, value !== undefined, text],
    );
});

describe("meanwhile completion", () => {
  test.each(["bash", "zsh", "fish"])("%s: a script that asks for its shell", async (shell) => {
    const { code, printed } = await type("completion", shell);
    expect(code).toBe(0);
    expect(printed).toContain(`meanwhile _complete --shell ${shell} -- `);
  });

  test("without a shell it says which there are; with a wrong one, which was meant", async () => {
    const none = await type("completion");
    expect(none).toMatchObject({ code: 2, printed: "" });
    expect(none.said).toMatch(
      /Say for which shell.*`meanwhile completion bash`, `meanwhile completion zsh`, `meanwhile completion fish`/,
    );
    expect(await type("completion", "zhs")).toMatchObject({
      code: 2,
      said: expect.stringContaining("did you mean zsh?"),
    });
  });

  test("--help says how to install it, for each", async () => {
    const { printed } = await type("completion", "--help");
    for (const file of ["~/.bashrc", "~/.zshrc", "~/.config/fish/completions/meanwhile.fish"])
      expect(printed).toContain(file);
  });
});

const type = (...words: string[]) => typeHere(words);
