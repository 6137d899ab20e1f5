import { renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { type Catalog, openCatalog } from "../../src/command/catalog.ts";
import { discover } from "../../src/command/discover.ts";
import { filterCatalog } from "../../src/command/filtered-catalog.ts";
import { silentLog } from "../../src/log.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openLiveCatalog } from "../helpers/live-catalog.ts";

const isNotBundled = ({ isBundled }: { readonly isBundled?: boolean }) => isBundled !== true;

const command = (summary: string, more = "") =>
  `import { defineCommand } from "meanwhile";\n${more}\nexport default defineCommand({ summary: ${JSON.stringify(summary)}, run: () => ({}) });\n`;
const open = (folder: string, toolPrefix = "") => openCatalog({ folders: [folder], toolPrefix, log: silentLog });

describe("discovery", () => {
  test("names a command by where its file lies", () => {
    const folder = writeFiles(temporaryFolder(), {
      "report/build.ts": "",
      "report/sub/deep-dive.mjs": "",
      "config/index.ts": "",
      "vault/vault.js": "",
      "hello.ts": "",
    });
    expect(discover(folder).map(({ path: words, toolName }) => [words.join(" "), toolName])).toEqual([
      ["config", "config"],
      ["hello", "hello"],
      ["report build", "report_build"],
      ["report sub deep-dive", "report_sub_deep_dive"],
      ["vault", "vault"],
    ]);
  });

  test("passes over what is not a command: _names, tests, types, other files", () => {
    const folder = writeFiles(temporaryFolder(), {
      "a/_lib.ts": "",
      "_drafts/b.ts": "",
      "a/b.test.ts": "",
      "a/c.d.ts": "",
      "a/readme.md": "",
      "a/.hidden.ts": "",
      "node_modules/x/y.js": "",
    });
    expect(discover(folder)).toEqual([]);
  });

  test("a folder that is not there has no commands", () => {
    expect(discover(path.join(temporaryFolder(), "missing"))).toEqual([]);
  });

  test.each([
    ["serve/now.ts", '"serve" is a word of Meanwhile\'s own; rename the folder'],
    ["task/x.ts", '"task" is a word of Meanwhile\'s own; rename the folder'],
    ["a/9lives.ts", 'the name "9lives" must start with a letter and hold only letters, digits, - and _'],
    [`a/${"b".repeat(63)}.ts`, "has 65 characters, at most 64 are allowed; shorten the file or folder name"],
  ])("%s cannot be used, and the reason is given", (file, sentence) => {
    const folder = writeFiles(temporaryFolder(), { [file]: command("x") });
    expect(discover(folder)[0]?.problem).toContain(sentence);
  });
});

describe("the catalog", () => {
  test("loads TypeScript as it is, in a stable order", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "b/two.ts": command("Two", "type Unused = { a: string };"),
      "a/one.js": command("One"),
    });
    const catalog = await open(folder);
    expect(catalog.entries.map((entry) => [entry.toolName, entry.command.summary])).toEqual([
      ["a_one", "One"],
      ["b_two", "Two"],
    ]);
    expect(catalog.get("b_two")?.path).toEqual(["b", "two"]);
    expect(catalog.get("b_three")).toBeUndefined();
  });

  test("loads what Node alone cannot: enums, imports without an extension", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "a/enum.ts": command(
        "Enum",
        'enum Colour { Red = "red" }\nif (Colour.Red.length !== 3) throw new Error("no enum");',
      ),
      "a/bare.ts": command("Bare", 'import { name } from "./_name";\nif (name !== "x") throw new Error(name);'),
      "a/_name.ts": 'export const name: string = "x";',
    });
    const catalog = await open(folder);
    expect(catalog.problems).toEqual([]);
    expect(catalog.entries.map((entry) => entry.command.summary)).toEqual(["Bare", "Enum"]);
  });

  test("a broken file is a named problem with its line; the others still work", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "a/good.ts": command("Good"),
      "a/syntax.ts": "export default {;",
      "a/throws.ts": '\n\nthrow new Error("no database");',
      "a/leans.ts": 'import "../_lib/deep.ts";\nexport default 1;',
      "_lib/deep.ts": '\nthrow new Error("no key");',
      "a/nothing.ts": "export const x = 1;",
      "a/plain.ts": 'export default { summary: "x", run() {} };',
      "a/wrong.ts": 'import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x" });',
      "a/missing.ts": 'import "not-installed-package";\nexport default 1;',
    });
    const catalog = await open(folder);
    expect(catalog.entries.map((entry) => entry.toolName)).toEqual(["a_good"]);
    const problems = Object.fromEntries(catalog.problems.map((problem) => [problem.toolName, problem.text]));
    expect(problems).toMatchObject({
      a_syntax: expect.stringMatching(/(Unexpected|Expression expected|SyntaxError).*\(line 1\)$/),
      a_throws: "no database (line 3)",
      a_leans: "no key (../_lib/deep.ts:2)",
      a_nothing: "its default export is missing; write: export default defineCommand({ … })",
      a_plain: "its default export is not a command; write: export default defineCommand({ … })",
      a_wrong: expect.stringContaining("`run` must be a function"),
      a_missing: expect.stringContaining("not-installed-package"),
    });
    expect(catalog.problemOf("a_throws")?.file).toBe(path.join(folder, "a/throws.ts"));
  });

  test("a name that only a tsconfig knows is refused with what to use", async () => {
    const project = writeFiles(temporaryFolder(), {
      "tsconfig.json": '{ // paths\n "compilerOptions": { "paths": { "lib/*": ["./lib/*"] } } }',
      "commands/a/at.ts": 'import "@/lib/x";\nexport default 1;',
      "commands/a/bare.ts": 'import "lib/x";\nexport default 1;',
      "commands/a/package.ts": 'import "not-installed-package";\nexport default 1;',
    });
    const texts = (await open(path.join(project, "commands"))).problems.map(({ text }) =>
      text.includes("`paths` of a tsconfig are for the type checker alone"),
    );
    expect(texts).toEqual([true, true, false]);
  });

  test("two commands of one name are an error that names both files", async () => {
    const folder = writeFiles(temporaryFolder(), { "a/b-c.ts": command("x"), "a/b_c.ts": command("y") });
    await expect(open(folder)).rejects.toThrow(/Two commands are called a_b_c: .*b-c\.ts and .*b_c\.ts; rename one\./);
  });

  test("a prefix goes in front of every name and counts for its length", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "monitor/sync.ts": command("x"),
      [`monitor/${"y".repeat(50)}.ts`]: command("y"),
    });
    const catalog = await open(folder, "wksm");
    expect(catalog.get("wksm_monitor_sync")).toBeDefined();
    expect(catalog.get("monitor_sync")).toBeUndefined();
    expect((await open(folder, "longprefix")).problems[0]?.text).toContain("shorten toolPrefix or the name");
  });
});

test("what is bundled is there for those whom we know, and for others by no name, working or broken, also after a change", async () => {
  const [own, pack] = [temporaryFolder(), temporaryFolder()];
  writeFiles(own, { "a/mine.ts": command("Mine"), "a/broken.ts": "export default 1;" });
  writeFiles(pack, { "b/theirs.ts": command("Theirs"), "b/wrong.ts": "export default 1;" });
  const isBundled = (file: string) => file.startsWith(pack);
  const catalog = await openLiveCatalog({
    folders: [own, pack],
    toolPrefix: "x",
    log: silentLog,
    clock: systemClock,
    isBundled,
  });
  onTestFinished(() => catalog.close());
  const strangers = filterCatalog(catalog, { isKnown: isNotBundled, isListed: isNotBundled });
  const namesOf = ({ entries, problems }: Catalog) => [...entries, ...problems].map(({ toolName }) => toolName);
  expect(namesOf(catalog)).toEqual(["x_a_mine", "x_b_theirs", "x_a_broken", "x_b_wrong"]);
  expect(namesOf(strangers)).toEqual(["x_a_mine", "x_a_broken"]);
  const changed = new Promise<void>((resolve) => strangers.onChange(resolve));
  writeFiles(pack, { "b/more.ts": command("More") });
  await changed;
  expect(catalog.get("x_b_more")).toBeDefined();
  expect(namesOf(strangers)).toEqual(["x_a_mine", "x_a_broken"]);
  for (const name of ["x_b_theirs", "x_b_more", "x_b_wrong"])
    expect([strangers.get(name), strangers.problemOf(name)]).toEqual([undefined, undefined]);
  expect([strangers.get("x_a_mine"), strangers.problemOf("x_a_broken")]).toEqual([
    catalog.get("x_a_mine"),
    catalog.problemOf("x_a_broken"),
  ]);
});

describe("a live catalog", () => {
  async function openLive(folder: string): Promise<{ catalog: Catalog; changed: () => Promise<void> }> {
    const catalog = await openLiveCatalog({
      folders: [folder],
      toolPrefix: "",
      log: silentLog,
      clock: systemClock,
      isBundled: () => false,
    });
    onTestFinished(() => catalog.close());
    return { catalog, changed: () => new Promise((resolve) => catalog.onChange(resolve)) };
  }
  const summaries = (catalog: Catalog) => catalog.entries.map((entry) => entry.command.summary);

  test("follows files that are added, changed, broken, repaired, renamed and removed", async () => {
    const folder = writeFiles(temporaryFolder(), { "a/one.ts": command("One") });
    const { catalog, changed } = await openLive(folder);
    const step = async (act: () => void) => {
      const next = changed();
      act();
      await next;
      return summaries(catalog);
    };
    expect(await step(() => writeFiles(folder, { "b/two.ts": command("Two") }))).toEqual(["One", "Two"]);
    expect(await step(() => writeFileSync(path.join(folder, "b/two.ts"), command("Two, better")))).toEqual([
      "One",
      "Two, better",
    ]);
    expect(await step(() => writeFileSync(path.join(folder, "b/two.ts"), "export default {;"))).toEqual(["One"]);
    expect(catalog.problems).toHaveLength(1);
    expect(await step(() => writeFileSync(path.join(folder, "b/two.ts"), command("Two again")))).toEqual([
      "One",
      "Two again",
    ]);
    expect(await step(() => renameSync(path.join(folder, "b"), path.join(folder, "c")))).toEqual(["One", "Two again"]);
    expect(catalog.get("c_two")).toBeDefined();
    expect(await step(() => rmSync(path.join(folder, "c"), { recursive: true }))).toEqual(["One"]);
  });

  test("a helper file's change reaches the commands that import it", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "a/_name.ts": 'export const name = "old";',
      "a/one.ts":
        'import { defineCommand } from "meanwhile";\nimport { name } from "./_name.ts";\nexport default defineCommand({ summary: name, run: () => ({}) });',
    });
    const { catalog, changed } = await openLive(folder);
    const next = changed();
    writeFiles(folder, { "a/_name.ts": 'export const name = "new and longer";' });
    await next;
    expect(summaries(catalog)).toEqual(["new and longer"]);
  });

  test("so does the change of one that lies outside the folder, and of what that one imports", async () => {
    const project = writeFiles(temporaryFolder(), {
      "lib/deep/word.ts": 'export const word = "old";',
      "lib/name.ts": 'export { word as name } from "./deep/word.ts";',
      "commands/a/one.ts":
        'import { defineCommand } from "meanwhile";\nimport { name } from "../../lib/name.ts";\nexport default defineCommand({ summary: name, run: () => ({}) });',
    });
    const { catalog, changed } = await openLive(path.join(project, "commands"));
    for (const [file, text] of [
      ["lib/deep/word.ts", 'export const word = "newer";'],
      ["lib/deep/word.ts", 'export const word = "new again";'],
      ["lib/name.ts", 'export const name = "newest of all";'],
    ] as const) {
      const next = changed();
      writeFiles(project, { [file]: text });
      await next;
      expect(summaries(catalog)).toEqual([/"(.*?)";$/.exec(text)?.[1]]);
    }
  });

  test("sees a folder that did not exist when it began", async () => {
    const folder = path.join(temporaryFolder(), "later", "commands");
    const { catalog, changed } = await openLive(folder);
    expect(catalog.entries).toEqual([]);
    const next = changed();
    writeFiles(folder, { "a/one.ts": command("One") });
    await next;
    expect(summaries(catalog)).toEqual(["One"]);
  });

  test("a clash that appears later is logged, and what was loaded stays", async () => {
    const folder = writeFiles(temporaryFolder(), { "a/b-c.ts": command("x") });
    const errors: string[] = [];
    const seen = Promise.withResolvers<void>();
    const log = {
      ...silentLog,
      error(text: string) {
        errors.push(text);
        seen.resolve();
      },
    };
    const catalog = await openLiveCatalog({
      folders: [folder],
      toolPrefix: "",
      log,
      clock: systemClock,
      isBundled: () => false,
    });
    onTestFinished(() => catalog.close());
    writeFiles(folder, { "a/b_c.ts": command("y") });
    await seen.promise;
    expect(errors[0]).toMatch(/commands not reloaded: Two commands are called a_b_c/);
    expect(summaries(catalog)).toEqual(["x"]);
  });
});
