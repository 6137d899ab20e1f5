import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { withTable } from "../../scripts/requirements.mjs";
import { isTitled, titlesIn } from "../helpers/titles.ts";
import { requirements } from "./requirements.ts";

const root = path.resolve(import.meta.dirname, "../..");
const textOf = (file: string) => readFileSync(path.join(root, file), "utf8");
const ids = requirements.map(({ id }) => id);

describe("the table", () => {
  test("every id is there once", () => {
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  test("every rule on a server names a test, and every rule without one says why", () => {
    const unheld = requirements.filter(({ on, heldBy, why }) => heldBy.length === 0 && (on !== "client" || !why));
    expect(unheld.map(({ id }) => id)).toEqual([]);
  });

  test("docs/protocol.md lists exactly these ids", () => {
    const listed = [...textOf("docs/protocol.md").matchAll(/^\| (2[56]-tasks-[\w-]+) +\|/gm)].map(
      (match) => match[1] as string,
    );
    expect(listed.toSorted()).toEqual(ids.toSorted());
  });

  test("docs/protocol.md is up to date", () => {
    const text = textOf("docs/protocol.md");
    expect(text, "run npx node scripts/requirements.mjs").toBe(withTable(text));
  });
});

describe("the tests it names are there", () => {
  const held = requirements.flatMap(({ heldBy }) => heldBy);

  test.each([...new Set(held.map(({ file }) => file))])("%s", (file) => {
    const titles = existsSync(path.join(root, file)) ? titlesIn(textOf(file)) : [];
    const wanted = new Set(held.filter((named) => named.file === file).map(({ title }) => title));
    expect([...wanted].filter((title) => !titles.some((found) => isTitled(found, title)))).toEqual([]);
  });
});

describe("what counts as a test", () => {
  test.each([
    ["one line", 'test("a title", () => {});'],
    ["options", 'test("a title", { timeout: 1 }, () => {});'],
    ["a line of its own", 'describe("x", () => {\n  test(\n    "a title",\n    () => {},\n  );\n});'],
    ["single quotes", "test('a title', () => {});"],
    ["a store's case", '  onStore("a title", async () => {}),'],
    ["cases that the title ends with", 'test.each([["b"], [f(1)]])("a title: %s", () => {});'],
    [
      "cases over several lines",
      'test.each([\n  ["b", () => x("y")],\n] as const)(\n  "a title of %s",\n  () => {},\n);',
    ],
    ["a title made in a loop", `for (const x of y)\n  test(\`a title over \${x}\`, () => {});`],
  ])("%s", (_name, text) => {
    expect(titlesIn(text).some((found) => isTitled(found, "a title"))).toBe(true);
  });

  test.each([
    ["another title", 'test("a title more", () => {});'],
    ["half a word of cases", 'test.each([])("a titles: %s", () => {});'],
    ["skipped", 'test.skip("a title", () => {});'],
    ["skipped at times", 'test.skipIf(x)("a title", () => {});'],
    ["to do", 'test.todo("a title");'],
    ["known to fail", 'test.fails("a title", () => {});'],
    ["commented out", '// test("a title", () => {});'],
    ["a mere describe", 'describe("a title", () => {});'],
    ["a mere string", 'const x = "a title";'],
  ])("not: %s", (_name, text) => {
    expect(titlesIn(text).some((found) => isTitled(found, "a title"))).toBe(false);
  });
});
