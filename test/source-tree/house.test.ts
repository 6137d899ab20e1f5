import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

/** How the tree is kept: one idea a file, one sense a word, one room an idea. */

const root = path.resolve(import.meta.dirname, "../..");
const sources = globSync("src/**/*.ts", { cwd: root }).sort();
const textOf = (file: string) => readFileSync(path.join(root, file), "utf8");

describe("a file has one idea, and a function fits a screen", () => {
  test("the linter refuses files over 600 lines and functions over 60", () => {
    expect(JSON.parse(textOf(".oxlintrc.json"))).toMatchObject({
      overrides: [
        {
          files: ["src/**", "commands/**"],
          rules: { "max-lines": ["error", { max: 600 }], "max-lines-per-function": ["error", { max: 60 }] },
        },
      ],
    });
  });

  test("where one is longer, a sentence says why", () => {
    const marks = [...sources, ...globSync("commands/**/*.ts", { cwd: root })].flatMap((file) =>
      [...textOf(file).matchAll(/oxlint-disable.*max-lines.*/g)].map((match) => match[0]),
    );
    for (const mark of marks) expect(mark).toMatch(/ -- .{20,}\.( \*\/)?$/);
  });
});

describe("a word has one sense", () => {
  /** What a caller of `meanwhile/client` sees is told apart from what the engine keeps: the wire lies between them. */
  const shared = new Set(["TaskStatus", "Question", "Answer", "TaskPage"]);

  test("no two exported classes, interfaces or types have one name", () => {
    const places = new Map<string, string[]>();
    for (const file of sources)
      for (const [, name = ""] of textOf(file).matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm))
        places.set(name, [...(places.get(name) ?? []), file]);
    const twice = [...places].filter(([name, files]) => files.length > 1 && !shared.has(name));
    expect(twice.map(([name, files]) => `${name}: ${files.join(", ")}`)).toEqual([]);
  });

  test("no two files have one name, but for verbs, checks and hosts, which are named for what they are", () => {
    const others = sources.filter(
      (file) => !/^src\/(cli\/verbs|diagnose\/suites|setup\/hosts)\/|\/(index|main)\.ts$/.test(file),
    );
    const names = others.map((file) => path.basename(file));
    expect(
      others.filter((file) => names.indexOf(path.basename(file)) !== names.lastIndexOf(path.basename(file))),
    ).toEqual([]);
  });

  test("lore is not among them", () => {
    const lore = /\b\w*[rR]oads?\b|\b\w*[wW]ish(es)?\b|\b(Met|Missed|Came)\b/;
    // The public name of a type that says it in the specification's words by now.
    const others = sources.filter((file) => file !== "src/diagnose/index.ts");
    expect(others.filter((file) => lore.test(textOf(file).replaceAll(/"[^"\n]*"|`[^`]*`/g, "")))).toEqual([]);
  });

  test("every word of the glossary is used", () => {
    const glossary = textOf("src/task/task.ts").split("*/")[0] ?? "";
    const words = [...glossary.matchAll(/^ \* {3}([a-z]+(?: [a-z]+)?) {2,}\S/gm)].map(([, word = ""]) => word);
    expect(words.length).toBeGreaterThan(30);
    const suite = globSync("test/store-suite/**/*.ts", { cwd: root });
    const code = [...sources, ...suite]
      .map((file) => `${file}\n${file === "src/task/task.ts" ? "" : textOf(file)}`)
      .join("\n");
    const isUsed = (word: string) => new RegExp(word.replace(" ", "[ -]?"), "i").test(code);
    expect(words.filter((word) => !isUsed(word))).toEqual([]);
  });
});

describe("a room has one idea", () => {
  const inRoom = (folder: string) => sources.filter((file) => path.dirname(file) === folder);

  test("at most ten files lie in the root", () => {
    expect(inRoom("src").length).toBeLessThanOrEqual(10);
  });

  test("CONTRIBUTING's tree names every room and every file of the root, and nothing else", () => {
    const tree = /## The tree\n[\s\S]*?```\n([\s\S]*?)```/.exec(textOf("CONTRIBUTING.md"))?.[1] ?? "";
    const below = tree.slice(tree.indexOf("\nsrc/"), tree.indexOf("\ntest/"));
    const cells = below.split(/\n| {3,}/).map((cell) => cell.trim().split(" "));
    const isName = (word: string) => /^[a-z]+(?:\/|\.ts)$/.test(word);
    const named = cells.flatMap((words) => words.filter((_, at) => words.slice(0, at + 1).every(isName)));
    const rooms = [...new Set(sources.map((file) => file.split("/")[1] as string))];
    const there = rooms.map((name) => (name.endsWith(".ts") ? name : `${name}/`));
    expect(named.filter((name) => name !== "src/").sort()).toEqual(there.sort());
  });
});
