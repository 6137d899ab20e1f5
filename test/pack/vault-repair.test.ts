import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { countChanges, Names } from "../../commands/vault/_nearest.ts";
import { replaceFile } from "../../commands/vault/_replace.ts";
import { rewriteLinks } from "../../commands/vault/_rewrite.ts";
import check from "../../commands/vault/check.ts";
import index from "../../commands/vault/index/index.ts";
import repair from "../../commands/vault/repair.ts";
import type { Answer, Question } from "../../src/command/context.ts";
import type { RunOptions } from "../../src/command/run.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { readDocumentsHere } from "../helpers/read-here.ts";
import { run } from "../helpers/run.ts";

readDocumentsHere();

interface Repaired {
  readonly plan: string;
  readonly proposals: readonly { note: string; line: number; link: string; proposal: string }[];
  readonly broken_count: number;
  readonly without_proposal: number;
  readonly links_changed: number;
  readonly notes_changed: number;
  readonly backup: string;
  readonly errors: readonly { path: string; reason: string }[];
}

let home: string;
let notes: string;

beforeEach(() => {
  home = temporaryFolder();
  notes = path.join(temporaryFolder(), "notes");
  mkdirSync(notes);
});

const textOf = (name: string) => readFileSync(path.join(notes, name), "utf8");
const say = (isYes: boolean) => ({
  ask: async (): Promise<Answer> => ({ action: "accept", content: { confirm: isYes } }),
});

async function indexed(files: Record<string, string>): Promise<void> {
  writeFiles(notes, files);
  expect(await run(index, { path: notes }, { home })).toMatchObject({ ending: "completed" });
}

async function repaired(input: object = {}, options: Partial<RunOptions> = {}): Promise<Repaired> {
  const outcome = await run(repair, input, { home, ...options });
  expect(outcome, JSON.stringify(outcome)).toMatchObject({ ending: "completed" });
  return (outcome as unknown as { data: Repaired }).data;
}

const proposed = async (files: Record<string, string>) => {
  await indexed(files);
  return (await repaired()).proposals.map(({ link, proposal }) => `${link} → ${proposal}`);
};

describe("vault repair proposes", () => {
  test.each([
    ["a name with a slip", { "a.md": "[[Projcet plan]]", "Project plan.md": "" }, ["Projcet plan → Project plan"]],
    ["a note that was moved, by its path", { "a.md": "[[old/plan]]", "new/plan.md": "" }, ["old/plan → new/plan"]],
    [
      "what stands between words alike",
      { "a.md": "[[my-note_one]]", "My Note One.md": "" },
      ["my-note_one → My Note One"],
    ],
    ["a picture with its ending", { "a.md": "![[pictre.png]]", "picture.png": "" }, ["pictre.png → picture.png"]],
    [
      "a Markdown link from its own folder, encoded",
      { "sub/a.md": "[x](my%20nte.md#part)", "my note (1).md": "", "my note.md": "# Part" },
      ["my nte.md#part → ../my%20note.md#part"],
    ],
    [
      "a heading of the note",
      { "a.md": "[[b#Intorduction]] [x](b.md#intorduction)", "b.md": "# Introduction" },
      ["b#Intorduction → b#Introduction", "b.md#intorduction → b.md#introduction"],
    ],
    ["a block of the note", { "a.md": "[[b#^quote-1x]]", "b.md": "text ^quote-1" }, ["b#^quote-1x → b#^quote-1"]],
    [
      "the one in the link's own folder, of equals",
      { "x/a.md": "[[pln]]", "x/plan.md": "", "y/plan.md": "" },
      ["pln → x/plan"],
    ],
    ["nothing where several are equally near", { "a.md": "[[plan x]]", "plan a.md": "", "plan b.md": "" }, []],
    ["nothing where nothing is near", { "a.md": "[[holiday]]", "budget.md": "" }, []],
    ["nothing that could not be written in a link", { "a.md": "[[plan x]]", "plan^x.md": "" }, []],
  ])("%s", async (_what, files, expected) => {
    expect(await proposed(files)).toEqual(expected);
  });

  test("and writes nothing, until its own plan is given and a person says yes", async () => {
    const files = { "a.md": "one\n[[budgt|money]]\n", "budget.md": "" };
    await indexed(files);
    const { plan, proposals, broken_count, without_proposal, backup } = await repaired();
    expect({ proposals, broken_count, without_proposal, backup }).toEqual({
      proposals: [{ note: "a.md", line: 2, link: "budgt", proposal: "budget" }],
      broken_count: 1,
      without_proposal: 0,
      backup: "",
    });
    const questions: Question[] = [];
    const asking = {
      async ask(question: Question): Promise<Answer> {
        questions.push(question);
        return { action: "accept", content: { confirm: false } };
      },
    };
    expect(await run(repair, { apply: plan }, { home, door: asking })).toMatchObject({ ending: "failed" });
    expect(questions).toMatchObject([{ isConfirmation: true, message: expect.stringContaining(`Write plan ${plan}`) }]);
    expect(await run(repair, { apply: plan }, { home })).toMatchObject({
      ending: "failed",
      message: expect.stringContaining("nobody can be asked"),
    });
    expect(await run(repair, { apply: "0123456789ab" }, { home, door: say(true) })).toMatchObject({
      ending: "failed",
      message: expect.stringMatching(/`apply` 0123456789ab is not what would be written now/),
    });
    expect(await run(repair, { apply: "yes please" }, { home, door: say(true) })).toMatchObject({
      ending: "failed",
      cause: "input",
    });
    expect(textOf("a.md")).toBe(files["a.md"]);
    expect(await repaired({ apply: plan }, { door: say(true) })).toMatchObject({ links_changed: 1, notes_changed: 1 });
    expect(textOf("a.md")).toBe("one\n[[budget|money]]\n");
  });
});

describe("what vault repair writes", () => {
  test("changes the links alone: every other byte, the mode and the line ends stay, and a copy is kept", async () => {
    const text =
      '\ufeff# Ä 😀\r\n| [[budgt\\|x]] | ![[ budgt#Part ]] |\r\n`[[budgt]]` [r]\r\n\r\n[r]: <budgt.md> "t"\r\nlast [x](budgt.md)';
    await indexed({ "a.md": text, "sub/b.md": "[[a]] [[budgt]]", "budget.md": "## Part" });
    chmodSync(path.join(notes, "a.md"), 0o640);
    const { plan } = await repaired();
    const { backup, links_changed, notes_changed } = await repaired({ apply: plan }, { door: say(true) });
    expect([links_changed, notes_changed]).toEqual([5, 2]);
    expect(textOf("a.md")).toBe(
      '\ufeff# Ä 😀\r\n| [[budget\\|x]] | ![[ budget#Part ]] |\r\n`[[budgt]]` [r]\r\n\r\n[r]: <budget.md> "t"\r\nlast [x](budget.md)',
    );
    expect(statSync(path.join(notes, "a.md")).mode & 0o777).toBe(0o640);
    expect(backup.startsWith(path.join(home, "backups", "vault"))).toBe(true);
    expect(readFileSync(path.join(backup, "a.md"), "utf8")).toBe(text);
    expect(readFileSync(path.join(backup, "sub/b.md"), "utf8")).toBe("[[a]] [[budgt]]");
    expect(statSync(path.join(backup, "a.md")).mode & 0o077).toBe(0);
    expect(await run(check, {}, { home })).toMatchObject({ data: { is_valid: true } });
    expect(readdirSync(notes).sort()).toEqual(["a.md", "budget.md", "sub"]);
  });

  test("is what was shown: a note that changed in between, or another vault, makes the plan void", async () => {
    await indexed({ "a.md": "[[budgt]]", "budget.md": "" });
    const { plan } = await repaired();
    writeFileSync(path.join(notes, "a.md"), "new words [[budgt]]");
    expect(await run(repair, { apply: plan }, { home, door: say(true) })).toMatchObject({
      ending: "failed",
      message: expect.stringContaining("is not what would be written now"),
    });
    expect(textOf("a.md")).toBe("new words [[budgt]]");
  });

  test("a note that cannot be written the same is left alone and named, and the others are written", async () => {
    await indexed({ "good.md": "[[budgt]]", "twice.md": "[[budgt]]", "budget.md": "" });
    writeFileSync(path.join(notes, "latin.md"), Buffer.from("caf\xe9 [[budgt]]", "latin1"));
    linkSync(path.join(notes, "twice.md"), path.join(path.dirname(notes), "second-name.md"));
    const { plan } = await repaired();
    const { errors, notes_changed } = await repaired({ apply: plan }, { door: say(true) });
    expect(notes_changed).toBe(1);
    expect(textOf("good.md")).toBe("[[budget]]");
    expect(textOf("twice.md")).toBe("[[budgt]]");
    expect(errors.map((error) => [path.basename(error.path), error.reason])).toEqual([
      ["latin.md", "it is not written in UTF-8; change its links by hand"],
      ["twice.md", expect.stringContaining("a hard link")],
    ]);
  });

  test("goes into the file that a link leads to, and the link stays one", async () => {
    await indexed({ "real.md": "[[budgt]]", "budget.md": "" });
    symlinkSync("real.md", path.join(notes, "alias.md"));
    const { plan } = await repaired({ note: "alias.md" });
    await repaired({ note: "alias.md", apply: plan }, { door: say(true) });
    expect(textOf("real.md")).toBe("[[budget]]");
    expect(
      readdirSync(notes, { withFileTypes: true })
        .find(({ name }) => name === "alias.md")
        ?.isSymbolicLink(),
    ).toBe(true);
  });

  test("through MCP is bound by what is open there", async () => {
    await indexed({ "a.md": "[[budgt]]", "budget.md": "" });
    const elsewhere = { door: "mcp", folder: temporaryFolder() } as const;
    const here = { door: "mcp", folder: notes } as const;
    expect(await run(repair, { vault: notes }, { home: await emptyHome(), origin: elsewhere })).toMatchObject({
      ending: "failed",
    });
    const { plan } = await repaired({}, { origin: here });
    expect(await run(repair, { apply: plan }, { home, origin: here })).toMatchObject({
      ending: "failed",
      message: expect.stringContaining("Write plan"),
    });
    expect(textOf("a.md")).toBe("[[budgt]]");
    expect(await repaired({ apply: plan }, { origin: here, door: say(true) })).toMatchObject({ notes_changed: 1 });
  });
});

test("a file is not replaced through a folder that has become a link, nor when it has changed", () => {
  const outside = writeFiles(realpathSync(temporaryFolder()), { "a.md": "outside" });
  const folder = realpathSync(temporaryFolder());
  symlinkSync(outside, path.join(folder, "sub"));
  const stampOfFile = (file: string) => {
    const { size, mtimeNs, ino } = statSync(file, { bigint: true });
    return `${size}-${mtimeNs}-${ino}`;
  };
  const file = path.join(outside, "a.md");
  const bytes = Buffer.from("taken over");
  expect(() => replaceFile(Buffer.from(path.join(folder, "sub/a.md")), { stamp: stampOfFile(file), bytes })).toThrow(
    "its folder is no longer where it was",
  );
  expect(() => replaceFile(Buffer.from(file), { stamp: "1-2-3", bytes })).toThrow("it has changed meanwhile");
  expect(readFileSync(file, "utf8")).toBe("outside");
  replaceFile(Buffer.from(file), { stamp: stampOfFile(file), bytes });
  expect(readFileSync(file, "utf8")).toBe("taken over");
  expect(readdirSync(outside)).toEqual(["a.md"]);
});

/** A home in which a client, and no person, has indexed the notes. */
async function emptyHome(): Promise<string> {
  const other = temporaryFolder();
  expect(await run(index, { path: notes }, { home: other, origin: { door: "mcp", folder: notes } })).toMatchObject({
    ending: "completed",
  });
  return other;
}

test("how far two names are apart: changed, added, left out and swapped letters", () => {
  for (const [a, b, changes] of [
    ["plan", "plan", 0],
    ["plan", "pln", 1],
    ["plan", "palns", 2],
    ["plan", "lpan", 1],
    ["kitten", "sitting", 3],
  ] as const)
    expect(countChanges(a, b, 4), `${a} ${b}`).toBe(changes);
  expect(countChanges("abcdefgh", "stuvwxyz", 2)).toBe(3);
  const names = new Names<number>();
  for (const [at, name] of ["ab", "Long name here", "long_name_hare"].entries()) names.add(name, at);
  expect(names.nearest("ac")).toEqual([]);
  expect(names.nearest("long name here")).toEqual([1]);
});

test("a link is replaced where it stands, in any line, with any line end", () => {
  const replacement = { line: 2, kind: "wiki", target: "a", heading: "", written: "b" } as const;
  for (const end of ["\n", "\r\n", "\r"])
    expect(rewriteLinks(Buffer.from(`[[a]]${end}[[a]] é [[ a |x]]${end}[[a]]`), [replacement])).toEqual({
      text: `[[a]]${end}[[b]] é [[ b |x]]${end}[[a]]`,
      changed: 2,
    });
});
