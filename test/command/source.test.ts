import { describe, expect, test } from "vitest";
import { type Catalog, type CatalogEntry, type LoadProblem, mergeSources } from "../../src/command/catalog.ts";
import { commandsOf } from "../../src/command/code-source.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import { openFolders } from "../../src/command/folder-source.ts";
import type { CommandSource } from "../../src/command/source.ts";
import { silentLog } from "../../src/log.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const named = (name: string, more: { summary?: string; aliases?: string[]; isolation?: "process" } = {}): Command =>
  defineCommand({ name, summary: name, run: () => ({}), ...more });

const names = (catalog: Catalog) => catalog.entries.map(({ toolName }) => toolName);

/** A source whose tools come and go as a test says. */
class ChangingSource implements CommandSource {
  readonly name: string;
  entries: readonly CatalogEntry[];
  readonly problems: readonly LoadProblem[] = [];
  trouble: string | undefined;
  isClosed = false;
  readonly #listeners = new Set<() => void>();

  constructor(name: string, ...commands: readonly Command[]) {
    this.name = name;
    this.entries = commandsOf(commands).entries;
  }

  has(...commands: readonly Command[]): void {
    this.entries = commandsOf(commands).entries;
    this.change();
  }

  change(): void {
    for (const listener of this.#listeners) listener();
  }

  get(toolName: string): CatalogEntry | undefined {
    return this.entries.find((entry) => entry.toolName === toolName);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.isClosed = true;
  }
}

function openLog() {
  const lines: string[] = [];
  return { lines, log: { ...silentLog, error: (text: string) => void lines.push(text) } };
}

describe("Commands in code", () => {
  test("are named by their words, as a file is by its path, with the prefix in front", () => {
    const { entries } = commandsOf([named("report build"), named("vault deep-dive", { aliases: ["dig"] })], {
      toolPrefix: "acme",
    });
    expect(entries.map(({ toolName, path, file }) => ({ toolName, path, file }))).toEqual([
      { toolName: "acme_report_build", path: ["report", "build"], file: "" },
      { toolName: "acme_vault_deep_dive", path: ["vault", "deep-dive"], file: "" },
    ]);
    expect(entries[1]?.aliases?.map(({ name }) => name)).toEqual(["acme_dig"]);
  });

  const nameless = defineCommand({ summary: "Build it", run: () => ({}) });
  test.for<[title: string, list: readonly unknown[], sentence: string]>([
    [
      "without a name",
      [named("a"), nameless],
      '`commands`, number 2 (Build it), has no name; add its words to defineCommand, e.g. name: "report build"',
    ],
    ["that are none", [{ run: () => 1 }], "`commands`, number 1, is not a command; make it with defineCommand({ … })"],
    ["that are nothing", [undefined], "`commands`, number 1, is not a command; make it with defineCommand({ … })"],
    [
      "whose first word is ours",
      [named("tasks list")],
      '`commands`, number 1 (tasks list), cannot be served: "tasks" is a word of Meanwhile\'s own; rename the command',
    ],
    [
      "with a name that is too long",
      [named(`a ${"b".repeat(63)}`, { summary: "Long" })],
      `\`commands\`, number 1 (Long), cannot be served: its tool name a_${"b".repeat(63)} has 65 characters, at most 64 are allowed; shorten the name`,
    ],
    [
      "that want a process",
      [named("a b", { isolation: "process" })],
      '`commands`, number 1 (a b), has isolation: "process", and a process of its own can only load a file; put it in a folder of commands, or take `isolation` out',
    ],
    [
      "of one name",
      [named("a-b c", { summary: "One" }), named("x"), named("a_b c", { summary: "Two" })],
      '`commands`: number 1 (One) and number 3 (Two) are both called "a_b c"; rename one.',
    ],
    [
      "that have their own name among their aliases",
      [named("a b", { aliases: ["a_b"] })],
      "`commands`, number 1 (a b), has its own name among its `aliases`; take it out",
    ],
  ])("%s are refused in one sentence", ([, list, sentence]) => {
    expect(() => commandsOf(list as Command[])).toThrow(sentence);
  });

  test("and a prefix counts for their length", () => {
    expect(() => commandsOf([named(`a ${"b".repeat(60)}`)], { toolPrefix: "acme" })).toThrow(
      "at most 64 are allowed; shorten toolPrefix or the name",
    );
  });
});

test("A file whose command has another name than the file is a problem that says what to take out", async () => {
  const file = (name: string) =>
    `import { defineCommand } from "meanwhile";\nexport default defineCommand({ name: "${name}", summary: "x", run: () => ({}) });\n`;
  const folder = writeFiles(temporaryFolder(), { "report/build.ts": file("report make"), "a/b.ts": file("a b") });
  const source = await openFolders({ folders: [folder], toolPrefix: "acme", log: silentLog });
  expect(source.entries.map(({ toolName }) => toolName)).toEqual(["acme_a_b"]);
  expect(source.problems.map(({ toolName, text }) => [toolName, text])).toEqual([
    [
      "acme_report_build",
      'its `name` is "report make", and a command in a file is named by where that lies: "report build"; take `name` out, or move the file',
    ],
  ]);
});

describe("Sources merged", () => {
  test("are one catalog: in order, found by name and alias, closed together", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "b/file.ts":
        'import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({}) });\n',
    });
    const other = new ChangingSource("the server acme", named("c"), named("a", { aliases: ["old_a"] }));
    const catalog = mergeSources([await openFolders({ folders: [folder], toolPrefix: "", log: silentLog }), other], {
      log: silentLog,
    });
    expect(names(catalog)).toEqual(["a", "b_file", "c"]);
    expect(catalog.get("old_a")).toBe(catalog.get("a"));
    expect(catalog.get("b_file")?.file).toContain("file.ts");
    catalog.close();
    expect(other.isClosed).toBe(true);
  });

  test.for<[title: string, first: Command, second: Command, sentence: string]>([
    ["a name", named("x"), named("x"), "Two commands are called x: the server a and the server b; rename one."],
    [
      "an alias and a name",
      named("x", { aliases: ["y"] }),
      named("y"),
      "The alias y of the server a is the name of another tool, the server b; take the alias out, or rename the tool.",
    ],
    [
      "an alias",
      named("x", { aliases: ["z"] }),
      named("y", { aliases: ["z"] }),
      "Two commands have the alias z: the server a and the server b; take it out of one.",
    ],
  ])("that share %s are refused at start, and closed", ([, first, second, sentence]) => {
    const sources = [new ChangingSource("the server a", first), new ChangingSource("the server b", second)];
    expect(() => mergeSources(sources, { log: silentLog })).toThrow(
      expect.objectContaining({ code: "COMMAND_CLASH", message: sentence }),
    );
    expect(sources.map(({ isClosed }) => isClosed)).toEqual([true, true]);
  });

  test("that clash are named with the file, also where that could not be loaded", async () => {
    const folder = writeFiles(temporaryFolder(), { "x.ts": "export default 1;" });
    const files = await openFolders({ folders: [folder], toolPrefix: "", log: silentLog });
    expect(() => mergeSources([files, commandsOf([named("x")])], { log: silentLog })).toThrow(
      `Two commands are called x: ${folder}/x.ts (the folder ${folder}) and the commands in code; rename one.`,
    );
  });

  test("that clash later: the one that was there stays, the other is a problem until it has another name", () => {
    const [a, b] = [new ChangingSource("the server a", named("x")), new ChangingSource("the server b", named("y"))];
    const { lines, log } = openLog();
    const catalog = mergeSources([a, b], { log });
    const served = catalog.get("y");
    a.has(named("x"), named("y"));
    const text = "Two commands are called y: the server b and the server a; rename one.";
    expect(lines).toEqual([text]);
    expect(catalog.problems).toEqual([{ toolName: "y", file: "the server a", text }]);
    expect(catalog.get("y")).toBe(served);
    expect(names(catalog)).toEqual(["x", "y"]);
    // Said once, however often the sources change, and the order of the sources makes no difference.
    b.has(named("y"), named("z"));
    a.has(named("x"), named("y"), named("w"));
    expect(lines).toEqual([text]);
    expect(catalog.get("y")).toBe(b.get("y"));
    b.has(named("z"));
    expect(catalog.get("y")).toBe(a.get("y"));
    expect(catalog.problems).toEqual([]);
  });

  test("that clash later by an alias: the alias leads to the tool of that name, and both are served", () => {
    const [a, b] = [new ChangingSource("the server a", named("x")), new ChangingSource("the server b", named("y"))];
    const catalog = mergeSources([a, b], openLog());
    a.has(named("x", { aliases: ["y"] }));
    expect(names(catalog)).toEqual(["x", "y"]);
    expect(catalog.get("y")).toBe(b.get("y"));
    expect(catalog.problemOf("x")?.text).toContain("The alias y of the server a is the name of another tool");
    a.has(named("x"));
    expect(catalog.problems).toEqual([]);
  });

  test("tell of changes: the revision grows with each, and with nothing else", () => {
    const source = new ChangingSource("the server a", named("x"));
    const catalog = mergeSources([source, commandsOf([named("y")])], { log: silentLog });
    const seen: string[][] = [];
    catalog.onChange(() => seen.push(names(catalog)));
    const first = catalog.revision;
    source.has(named("x"), named("z"));
    source.change();
    expect(seen).toEqual([["x", "y", "z"]]);
    expect(catalog.revision).toBe(first + 1);
  });

  test("keep the tools of one that is in trouble, and name it; the others work", () => {
    const source = new ChangingSource("the server a", named("x"));
    const catalog = mergeSources([source, commandsOf([named("y")])], { log: silentLog });
    let changes = 0;
    catalog.onChange(() => changes++);
    source.trouble = "it has hung up; its tools fail until it is back";
    source.change();
    expect(names(catalog)).toEqual(["x", "y"]);
    expect(catalog.problems).toEqual([{ file: "the server a", text: source.trouble }]);
    source.trouble = undefined;
    source.change();
    expect(catalog.problems).toEqual([]);
    // No list has changed, so no client is told.
    expect(changes).toBe(0);
  });
});
