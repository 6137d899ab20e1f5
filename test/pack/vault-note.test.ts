import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { findLinks } from "../../commands/vault/_links.ts";
import { maskCode } from "../../commands/vault/_mask.ts";
import { readNote } from "../../commands/vault/_note.ts";

const linksOf = (text: string) =>
  readNote(text, "test", parse).links.map(({ kind, target, heading, alias }) => [kind, target, heading, alias]);

describe("what is a link", () => {
  test.each([
    ["[[note]]", [["wiki", "note", "", ""]]],
    ["[[folder/note#A heading|words]]", [["wiki", "folder/note", "A heading", "words"]]],
    ["![[picture.png]]", [["embed", "picture.png", "", ""]]],
    ["[[#Here]]", [["wiki", "", "Here", ""]]],
    ["| [[note\\|words]] |", [["wiki", "note", "", "words"]]],
    ["[words](note.md)", [["markdown", "note.md", "", "words"]]],
    ["[words](my%20note.md#a-heading)", [["markdown", "my note.md", "a-heading", "words"]]],
    ['[words](<my note.md> "title")', [["markdown", "my note.md", "", "words"]]],
    ["[words](note_(1).md)", [["markdown", "note_(1).md", "", "words"]]],
    ["![alt](picture.png)", [["embed", "picture.png", "", "alt"]]],
    [
      "[![alt](small.png)](note.md)",
      [
        ["embed", "small.png", "", "alt"],
        ["markdown", "note.md", "", "![alt](small.png)"],
      ],
    ],
    ["[words][name] and [again][name]\n\n[name]: note.md", [["markdown", "note.md", "", "name"]]],
    ["[web](https://example.org/a#b)", [["markdown", "https://example.org/a#b", "", "web"]]],
    [
      "[[one]][[two]]",
      [
        ["wiki", "one", "", ""],
        ["wiki", "two", "", ""],
      ],
    ],
  ])("%s", (text, expected) => {
    expect(linksOf(text)).toEqual(expected);
  });
});

describe("what is no link", () => {
  test.each([
    "`[[code]]`",
    "``a ` [[code]]``",
    "`two lines\nof [[code]]`",
    "```\n[[fenced]]\n```",
    "~~~js\n[[fenced]]\n```\n[[still]]\n~~~",
    "> ```\n> [[quoted fence]]\n> ```",
    "```\n[[never closed]]",
    "---\nlink: '[[front]]'\n---\n",
    "<!-- [[comment]] -->",
    "%% [[comment]] %%",
    "\\[[escaped]]",
    "\\[words](note.md)",
    "[[]] and [[ ]]",
    "[[two\nlines]]",
    "[words] (note.md)",
    "[words](two words.md)",
    "[^1]: a footnote",
    "- [ ] a box",
  ])("%j", (text) => {
    expect(linksOf(text)).toEqual([]);
  });

  test("a backtick without a partner hides nothing", () => {
    expect(linksOf("a ` tick [[note]]\n\nanother ` tick [[other]]")).toHaveLength(2);
  });
});

test("lines are counted as an editor does", () => {
  const text = "---\ntitle: x\n---\none [[a]]\n```\n[[b]]\n```\n[[c]] [d](d.md)\n\n[e]: e.md\n";
  expect(readNote(text, "x", parse).links.map(({ target, line }) => [target, line])).toEqual([
    ["a", 4],
    ["c", 8],
    ["d.md", 8],
    ["e.md", 10],
  ]);
});

test("headings, tags and titles are read; code and links hold none", () => {
  const text =
    "---\ntags: [One, two/three]\n---\n# Title ##\n\ntext #four (#five) a#no #123 [[x#six]] `#seven`\n```\n# not\n```\n### Deep `code`\n";
  expect(readNote(text, "name", parse)).toMatchObject({
    title: "Title",
    headings: [
      { level: 1, text: "Title", line: 4 },
      { level: 3, text: "Deep `code`", line: 10 },
    ],
    tags: ["one", "two/three", "four", "five"],
  });
  expect(readNote("no heading", "name", parse).title).toBe("name");
  expect(readNote("---\ntitle: From the front\ntags: a, b\n---\n# Other", "name", parse)).toMatchObject({
    title: "From the front",
    tags: ["a", "b"],
  });
  expect(readNote("---\n: [broken\n---\n# Still", "name", parse).title).toBe("Still");
});

test("no text takes long: every hostile one is read in one pass", () => {
  const size = 50_000;
  const hostile = [
    "[",
    "[[",
    "`",
    "` ``",
    "](",
    "![",
    "[a](",
    "\\",
    "<!--",
    "%%",
    "#",
    "[a]: ",
    "((",
    "\n```\n",
    "`\n\n",
    "[[a|",
    "[a](<",
    '[a](b "',
  ].map((piece) => piece.repeat(size / piece.length));
  hostile.push(`# ${" ".repeat(size)}x`, `#${" #".repeat(size / 2)}x`, `---\na: ${"[".repeat(size)}\n---\n`);
  hostile.push(`[x](b${" ".repeat(10 * size)}`, `#${"/".repeat(10 * size)}a`);
  const startedAt = performance.now();
  for (const text of hostile) readNote(text, "x", parse);
  // A quadratic reading of one of them takes minutes.
  expect(performance.now() - startedAt).toBeLessThan(30_000);
});

test("masking keeps every character's place", () => {
  const text = "a `b` c\n```\nd\n```\ne <!-- f\ng --> h";
  const masked = maskCode(text);
  expect(masked).toHaveLength(text.length);
  expect(masked.split("\n")).toHaveLength(text.split("\n").length);
  expect(masked.replaceAll(/\s+/g, "")).toBe("aceh");
  expect(findLinks(masked)).toEqual([]);
});
