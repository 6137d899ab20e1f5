import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { openPack } from "../../commands/_pack/database.ts";
import { indexVault, maxNoteBytes } from "../../commands/vault/_index.ts";
import { findVault, withVaults } from "../../commands/vault/_store.ts";
import { createWriter } from "../../commands/vault/_write.ts";
import check from "../../commands/vault/check.ts";
import index from "../../commands/vault/index/index.ts";
import links from "../../commands/vault/links.ts";
import status from "../../commands/vault/status.ts";
import type { ProgressReport } from "../../src/command/context.ts";
import { Cancelled } from "../../src/errors.ts";
import { anywhere, typed } from "../fixtures/pack/reaches.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { readDocumentsHere } from "../helpers/read-here.ts";
import { run } from "../helpers/run.ts";

readDocumentsHere();

let home: string;
let notes: string;

beforeEach(() => {
  home = temporaryFolder();
  notes = path.join(temporaryFolder(), "notes");
  mkdirSync(notes);
});

/** What a run needs to know, when a person has typed it. */
const task = () => ({ ...typed, home, signal: new AbortController().signal, progress() {} });

async function dataOf(command: Parameters<typeof run>[0], input: object = {}): Promise<Record<string, unknown>> {
  const outcome = await run(command, input, { home });
  if (outcome.ending !== "completed") throw new Error(outcome.message);
  return outcome.data as Record<string, unknown>;
}

const indexed = (files?: Record<string, string>) => {
  if (files !== undefined) writeFiles(notes, files);
  return dataOf(index, { path: notes });
};

async function edgesOf(note: string, direction = "from"): Promise<string[]> {
  const { edges } = (await dataOf(links, { note, direction })) as {
    edges: { from: string; to: string; state: string }[];
  };
  return edges.map(({ from, to, state }) => `${from} → ${to} ${state}`);
}

/** Pending links, as another process sees them. */
function countPending(): number {
  const db = openPack(home);
  try {
    return db.prepare("select count(*) from vault_links where state = 'pending'").pluck().get() as number;
  } finally {
    db.close();
  }
}

/** Indexes again with all links in doubt, and tells `onRead` of each time the files of a name are read. */
async function resolveAgain(onRead: (isWriting: boolean) => void): Promise<void> {
  await withVaults(home, async (db) => {
    db.exec("update vault_links set state = 'pending'");
    const prepare = db.prepare.bind(db);
    vi.spyOn(db, "prepare").mockImplementation(((text: string) => {
      const statement = prepare(text);
      if (!/from vault_files where vault = \? and name_key = \?/.test(text)) return statement;
      const all = statement.all.bind(statement);
      statement.all = (...values: unknown[]) => {
        const rows = all(...values);
        onRead(db.inTransaction);
        return rows;
      };
      return statement;
    }) as typeof db.prepare);
    await indexVault(db, findVault(db, "", task()), { ...task(), reach: anywhere });
  });
}

/** What a command warned of. */
async function warningsOf(command: Parameters<typeof run>[0], input: object = {}): Promise<string[]> {
  const { messages } = await run(command, input, { home });
  return messages.filter(({ type }) => type === "warning").map(({ text }) => text);
}

describe("vault index", () => {
  test("counts notes, links, tags, headings and backlinks exactly", async () => {
    const data = await indexed({
      "a.md": "# A\n[[b]] [[missing]] ![[pic.png]] [web](https://example.org) #tag",
      "b.md": "# B\n## Part\n[a](a.md) [[a#A]] [[b#nowhere]] #tag #other",
      "sub/c.md": "nothing",
      "pic.png": "x",
      ".obsidian/app.md": "[[a]]",
    });
    expect(data).toMatchObject({
      root: notes,
      notes_parsed: 3,
      notes_unchanged: 0,
      files_removed: 0,
      notes: 3,
      files: 1,
      links: 7,
      resolved_links: 4,
      broken_links: 2,
      external_links: 1,
      embeds: 1,
      tags: 2,
      headings: 3,
      notes_with_backlinks: 2,
      errors: [],
      errors_total: 0,
    });
    expect(await dataOf(status)).toMatchObject({
      notes: 3,
      links: 7,
      top_tags: [
        { tag: "tag", notes: 2 },
        { tag: "other", notes: 1 },
      ],
      vaults: [notes],
    });
  });

  test("reads only what changed, and forgets what vanished", async () => {
    await indexed({ "a.md": "[[b]] [[new]]", "b.md": "[[a]]", "c.md": "[[b]]" });
    expect(await indexed()).toMatchObject({ notes_parsed: 0, notes_unchanged: 3, links: 4, broken_links: 1 });
    expect(await indexed({ "new.md": "", "c.md": "[[b]] [[a]]" })).toMatchObject({
      notes_parsed: 2,
      notes_unchanged: 2,
      links: 5,
      broken_links: 0,
    });
    rmSync(path.join(notes, "b.md"));
    expect(await indexed()).toMatchObject({ notes_parsed: 0, files_removed: 1, notes: 3, links: 4, broken_links: 2 });
    expect(await edgesOf("a")).toEqual(["a.md → b no_note", "a.md → new.md resolved"]);
  });

  test("a folder that vanishes takes its notes along, and a note that moves takes its links along", async () => {
    await indexed({ "one/a.md": "[[b]]", "one/b.md": "", "top.md": "[[a]]" });
    rmSync(path.join(notes, "one"), { recursive: true });
    expect(await indexed({ "two/a.md": "[[b]]" })).toMatchObject({ files_removed: 2, notes: 2, broken_links: 1 });
    expect(await edgesOf("top")).toEqual(["top.md → two/a.md resolved"]);
  });

  test("a heading that goes breaks the links to it, in notes that are not read again", async () => {
    await indexed({ "a.md": "[[b#Part]]", "b.md": "# Part" });
    expect(await indexed({ "b.md": "# Other" })).toMatchObject({ notes_parsed: 1, broken_links: 1 });
    expect(await indexed({ "b.md": "# part!" })).toMatchObject({ notes_parsed: 1, broken_links: 0 });
  });

  test("counts the links of many generated notes exactly, twice", async () => {
    const count = 100;
    const files = Array.from({ length: count }, (_, at) => {
      const targets = Array.from({ length: at % 5 }, (_unused, step) => `[[n${(at * 7 + step) % count}]]`);
      return [
        `d${at % 9}/n${at}.md`,
        `# N${at}\n${targets.join(" ")} \`[[code]]\`${at % 50 === 0 ? " [[gone]]" : ""}\n`,
      ] as const;
    });
    const expected = { notes: count, links: 202, resolved_links: 200, broken_links: 2 };
    expect(await indexed(Object.fromEntries(files))).toMatchObject({ notes_parsed: count, ...expected });
    expect(await indexed()).toMatchObject({ notes_parsed: 0, notes_unchanged: count, ...expected });
  });

  test("a run that is cancelled keeps what it has, and the next does only the rest", async () => {
    writeFiles(
      notes,
      Object.fromEntries(
        Array.from({ length: 200 }, (_, at) => [`d${at % 30}/n${at}.md`, `# N\n${"[[n1]] ".repeat(10)}`]),
      ),
    );
    const stop = new AbortController();
    const outcome = await run(
      index,
      { path: notes },
      { home, signals: [stop.signal], door: { progress: () => stop.abort(new Cancelled()) } },
    );
    expect(outcome.ending).toBe("cancelled");
    const data = await indexed();
    expect(data).toMatchObject({ notes: 200, links: 2_000, broken_links: 0 });
    expect(data.notes_unchanged).toBeGreaterThan(0);
    expect((data.notes_parsed as number) + (data.notes_unchanged as number)).toBe(200);
  });

  test("files that fail are listed one by one, and the others are indexed", async () => {
    writeFiles(notes, { "good.md": "[[line%0Abreak]]", "line\nbreak.md": "# x", "huge.md": "x" });
    writeFileSync(path.join(notes, "huge.md"), Buffer.alloc(maxNoteBytes + 1, "x"));
    writeFileSync(path.join(notes, "binary.md"), Buffer.from([1, 0, 2]));
    writeFileSync(Buffer.concat([Buffer.from(`${notes}/bad-`), Buffer.from([0xff]), Buffer.from(".md")]), "[[good]]");
    symlinkSync("/etc/hostname", path.join(notes, "out.md"));
    symlinkSync("loop.md", path.join(notes, "loop.md"));
    symlinkSync(".", path.join(notes, "circle"));
    const data = await indexed();
    expect(data).toMatchObject({ notes: 3, links: 2, errors_total: 4 });
    expect((data.errors as { path: string }[]).map((error) => path.basename(error.path)).sort()).toEqual([
      "binary.md",
      "huge.md",
      "loop.md",
      "out.md",
    ]);
    expect(await edgesOf("bad-%FF")).toEqual(["bad-%FF.md → good.md resolved"]);
    expect(await indexed()).toMatchObject({ notes_parsed: 0, notes_unchanged: 3, errors_total: 4 });
  });

  test("a disk that fills up is told of per file, and nothing stored before is lost", async () => {
    await indexed({ "a.md": "[[b]]" });
    writeFiles(
      notes,
      Object.fromEntries(
        Array.from({ length: 40 }, (_, at) => [`n${at}.md`, `[[a]]\n${"## A heading that takes room\n".repeat(120)}`]),
      ),
    );
    const db = openPack(home);
    const pages = db.pragma("page_count", { simple: true }) as number;
    db.pragma(`max_page_count = ${pages + 10}`);
    const { troubles } = await indexVault(db, findVault(db, "", task()), { ...task(), reach: anywhere });
    db.close();
    expect(troubles.toOutput().errors[0]?.reason).toMatch(/not stored: the disk is full/);
    expect(troubles.total).toBeGreaterThan(20);
    expect(await indexed()).toMatchObject({ notes: 41, links: 41, errors_total: 0 });
  });

  test("reads the files of a name once, however many links there are to it, and never while it keeps others from writing", async () => {
    await indexed(
      Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`d${at}/same.md`, "[[same]] ".repeat(20)])),
    );
    const reads: boolean[] = [];
    await resolveAgain((isWriting) => reads.push(isWriting));
    expect(reads.length).toBeGreaterThan(0);
    expect(reads.length).toBeLessThan(5);
    expect(reads).not.toContain(true);
    expect(await edgesOf("d7/same.md")).toEqual(Array.from({ length: 20 }, () => "d7/same.md → d7/same.md resolved"));
  });

  test("a file that another run removes while links are being resolved is not what they lead to", async () => {
    await indexed({ "a.md": "[[b]]", "b.md": "", "sub/b.md": "" });
    let removed = 0;
    await resolveAgain(() => {
      if (removed > 0) return;
      const other = openPack(home);
      const id = other.prepare("select id from vault_files where shown = 'b.md'").pluck().get() as number;
      removed = createWriter(other, findVault(other, "", task()).id).remove([id]);
      other.close();
    });
    expect(removed).toBe(1);
    expect(await edgesOf("a")).toEqual(["a.md → sub/b.md resolved"]);
  });

  test("progress goes on while links are resolved, and is complete only when they are", async () => {
    writeFiles(notes, Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`n${at}.md`, "[[n1]] ".repeat(20)])));
    const reports: { percentage: number | undefined; pending: number }[] = [];
    const progress = ({ percentage, done, total }: ProgressReport) =>
      void reports.push({
        percentage: percentage ?? (done === undefined || total === undefined ? undefined : (done / total) * 100),
        pending: countPending(),
      });
    expect(await run(index, { path: notes }, { home, door: { progress } })).toMatchObject({ ending: "completed" });
    const complete = reports.filter(({ percentage }) => percentage === 100);
    expect(complete.length).toBeGreaterThan(0);
    expect(complete.filter(({ pending }) => pending > 0)).toEqual([]);
    const during = reports.filter(({ pending }) => pending > 0 && pending < 2_000).map(({ percentage }) => percentage);
    expect(new Set(during).size).toBeGreaterThan(1);
  });

  test("a vault whose folder is gone is told of by status and check, and forgotten by index", async () => {
    await indexed({ "a.md": "# A\n[[b]] #tag", "b.md": "[[a]]" });
    expect(await warningsOf(status)).toEqual([]);
    expect(await dataOf(check)).toMatchObject({ is_valid: true });
    rmSync(notes, { recursive: true });
    const gone = `The folder ${notes} is gone: this is what was known of it. \`vault index ${notes}\` forgets it.`;
    expect(await warningsOf(status)).toEqual([gone]);
    expect(await warningsOf(check)).toEqual([gone, `The folder ${notes} is gone`]);
    expect(await dataOf(check)).toMatchObject({ is_valid: false, broken_count: 0 });
    const outcome = await run(index, { path: notes }, { home });
    expect(outcome).toMatchObject({
      ending: "completed",
      data: { files_removed: 2, notes: 0, links: 0, tags: 0, headings: 0 },
    });
    expect(outcome.messages).toContainEqual(
      expect.objectContaining({
        type: "warning",
        text: expect.stringMatching(/is gone; its 2 notes .* were forgotten/),
      }),
    );
    expect(await run(status, {}, { home })).toMatchObject({
      message: expect.stringMatching(/No vault has been indexed yet/),
    });
    expect(await run(index, { path: notes }, { home })).toMatchObject({
      ending: "failed",
      message: expect.stringMatching(/is not there/),
    });
  });

  test("forgetting one vault leaves the others alone, and a folder that comes back is indexed anew", async () => {
    const other = path.join(path.dirname(notes), "other");
    await dataOf(index, { path: writeFiles(other, { "a.md": "[[a]]" }) });
    await indexed({ "a.md": "[[a]]" });
    rmSync(notes, { recursive: true });
    await dataOf(index, { path: notes });
    expect(await dataOf(status)).toMatchObject({ root: other, notes: 1, resolved_links: 1, vaults: [other] });
    expect(await indexed({ "b.md": "[[a]]" })).toMatchObject({ notes_parsed: 1, notes: 1, links: 1, broken_links: 1 });
  });

  test("refuses what is no folder in reach", async () => {
    writeFiles(notes, { "a.md": "" });
    for (const [given, sentence] of [
      [path.join(notes, "a.md"), /`path` .* is no folder/],
      [path.join(notes, "none"), /is not there/],
      ["/etc", /`path` \/etc lies outside the folders that are open to MCP clients/],
    ] as const)
      expect(await run(index, { path: given }, { home, origin: { door: "mcp", folder: notes } })).toMatchObject({
        ending: "failed",
        cause: "command",
        message: expect.stringMatching(sentence),
      });
  });
});

describe("which note a link leads to", () => {
  test.each([
    ["the one in the same folder", "[[x]]", "sub/from.md", ["x.md", "sub/x.md", "a/x.md"], "sub/x.md"],
    ["else the one nearest to the top", "[[x]]", "other/from.md", ["a/b/x.md", "z/x.md", "a/x.md"], "a/x.md"],
    ["case does not count", "[[NOTE]]", "from.md", ["Note.md"], "Note.md"],
    ["but the same letters win", "[[Note]]", "from.md", ["note.md", "sub/Note.md"], "sub/Note.md"],
    ["the ending may be written", "[[x.md]]", "from.md", ["x.md"], "x.md"],
    ["a dot in a name is no ending", "[[v1.2]]", "from.md", ["v1.2.md"], "v1.2.md"],
    ["a path counts from the top", "[[a/x]]", "b/from.md", ["a/x.md", "b/a/x.md"], "a/x.md"],
    ["else from the own folder", "[[a/x]]", "b/from.md", ["b/a/x.md", "c/a/x.md"], "b/a/x.md"],
    ["else it is the end of a path", "[[a/x]]", "from.md", ["c/a/x.md", "c/ba/x.md"], "c/a/x.md"],
    ["with dots only from the own folder", "[[../x]]", "b/from.md", ["x.md", "b/x.md"], "x.md"],
    ["a Markdown link counts from the own folder", "[t](x.md)", "b/from.md", ["x.md", "b/x.md"], "b/x.md"],
    ["else from the top", "[t](a/x.md)", "b/from.md", ["a/x.md"], "a/x.md"],
    ["a slash in front means the top alone", "[t](/x.md)", "b/from.md", ["x.md", "b/x.md"], "x.md"],
    ["a note wins over a file of that name", "[[x]]", "from.md", ["x", "sub/x.md"], "sub/x.md"],
  ])("%s: %s", async (_rule, link, from, files, expected) => {
    await indexed({ ...Object.fromEntries(files.map((file) => [file, ""])), [from]: link });
    expect(await edgesOf(from)).toEqual([`${from} → ${expected} resolved`]);
  });

  test.each([
    ["[t](x.md)", "b/from.md", "a/x.md"],
    ["[[../../x]]", "b/from.md", "x.md"],
    ["[[b/x]]", "from.md", "a/x.md"],
  ])("%s from %s does not lead to %s", async (link, from, file) => {
    await indexed({ [file]: "", [from]: link });
    expect(await edgesOf(from)).toEqual([expect.stringMatching(/no_note$/)]);
  });
});

describe("vault links and check", () => {
  test("backlinks are the links of others, and a note is found by name or path", async () => {
    await indexed({ "a.md": "[[sub/b|words]]", "sub/b.md": "[[a]]", "c.md": "![[b]]" });
    expect(await edgesOf("b", "to")).toEqual(["a.md → sub/b.md resolved", "c.md → sub/b.md resolved"]);
    expect(await edgesOf("sub/b.md", "both")).toHaveLength(3);
    expect(await edgesOf(path.join(notes, "sub/b.md"))).toEqual(["sub/b.md → a.md resolved"]);
    expect(await dataOf(links, { note: "b", limit: 1 })).toMatchObject({
      count: 1,
      total: 3,
      edges: [{ from: "sub/b.md", line: 1, kind: "wiki" }],
    });
  });

  test("a note is found by its path, however many have its name", async () => {
    await indexed(Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`d${10 + at}/same.md`, "[[other]]"])));
    expect(await edgesOf("d69/same.md", "from")).toEqual(["d69/same.md → other no_note"]);
    expect(await edgesOf("same", "from").catch((error: Error) => error.message)).toMatch(
      /^`note` same could be d10\/same\.md, .*d59\/same\.md; give the path of one\.$/,
    );
  });

  test("a name that two notes have, or none, is refused with the cure", async () => {
    await indexed({ "x/a.md": "", "y/a.md": "" });
    expect(await run(links, { note: "a" }, { home })).toMatchObject({
      message: "`note` a could be x/a.md, y/a.md; give the path of one.",
    });
    expect(await run(links, { note: "b" }, { home })).toMatchObject({
      message: expect.stringMatching(/not in the index .* run `vault index`/),
    });
  });

  test("check lists each broken link with its place", async () => {
    await indexed({ "a.md": "# A\n\n[[b]]\n[c](c.md#d) [ok](#a)", "e.md": "[[a#no]] [web](https://x.org)" });
    expect(await dataOf(check)).toMatchObject({
      notes_checked: 2,
      links_checked: 4,
      broken_count: 3,
      is_valid: false,
      issues: [
        { note: "a.md", line: 3, link: "b", reason: "there is no such note or file" },
        { note: "a.md", line: 4, link: "c.md#d", reason: "there is no such note or file" },
        { note: "e.md", line: 1, link: "a#no", reason: "the note has no such heading" },
      ],
    });
  });

  test("check looks at the files as they are, also at what changed, came and went since the index", async () => {
    await indexed({ "a.md": "[[b]]", "b.md": "# B", "c.md": "" });
    expect(await dataOf(check)).toMatchObject({ is_valid: true, notes_read: 0 });
    writeFiles(notes, { "a.md": "[[b]] [[nowhere]]", "new.md": "[[gone]]" });
    rmSync(path.join(notes, "b.md"));
    expect(await dataOf(check)).toMatchObject({
      notes_read: 2,
      notes_checked: 3,
      broken_count: 3,
      issues: [
        { note: "a.md", link: "b" },
        { note: "a.md", link: "nowhere" },
        { note: "new.md", link: "gone" },
      ],
      errors_total: 0,
    });
  });

  test("a vault that is closed to a client is told of from the index, and not read", async () => {
    await indexed({ "a.md": "[[b]]", "b.md": "" });
    await withVaults(home, (db) => db.exec("update vault_vaults set is_persons = 0"));
    rmSync(path.join(notes, "b.md"));
    const outcome = await run(check, {}, { home, origin: { door: "mcp", folder: temporaryFolder() } });
    expect(outcome).toMatchObject({ ending: "completed", data: { broken_count: 0, notes_read: 0 } });
    expect(outcome.messages.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/^`vault` .* lies outside .* This is what was known of it when it was last indexed\.$/),
    );
  });

  test("blocks and headings are looked for in the note that a link leads to", async () => {
    const files = {
      "a.md": "[[b#^one]] [[b#^Two]] [[b#^none]] [[#^here]] [x](b.md#^one)\n\nmine ^here",
      "b.md": "text ^one\n\n- item\n\n^two\n`^none`\n",
    };
    await indexed(files);
    expect(await edgesOf("a")).toEqual(
      ["resolved", "resolved", "no_block", "resolved", "resolved"].map(
        (state, at) => `a.md → ${at === 3 ? "a" : "b"}.md ${state}`,
      ),
    );
    expect(await dataOf(check)).toMatchObject({ issues: [{ link: "b#^none", reason: "the note has no such block" }] });
    writeFiles(notes, { "b.md": "text ^one\nmore ^none" });
    expect(await dataOf(check)).toMatchObject({ issues: [{ link: "b#^Two" }] });
  });

  test("an index of an earlier version is read again, so that no block is missed", async () => {
    await indexed({ "a.md": "[[b#^one]] [[b#^none]]", "b.md": "text ^one" });
    const db = openPack(home);
    db.exec(
      "drop table vault_blocks; update vault_links set state = 'resolved'; update pack_schema set version = 3 where domain = 'vault'",
    );
    db.close();
    expect(await indexed()).toMatchObject({ notes_parsed: 2, broken_links: 1 });
  });

  test.each(["terminal", "mcp"] as const)(
    "the vault one stands in is the one that is meant, through the door %s",
    async (door) => {
      await indexed({ "a.md": "[[b]]", "sub/deep/c.md": "" });
      const inner = path.join(notes, "sub");
      const other = writeFiles(path.join(path.dirname(notes), "other"), { "b.md": "" });
      await dataOf(index, { path: inner });
      await dataOf(index, { path: other });
      const rootFrom = async (folder: string | undefined, input = {}) => {
        const outcome = await run(check, input, { home, origin: { door, folder } });
        return (outcome as { data?: { root: string } }).data?.root;
      };
      expect(await rootFrom(notes)).toBe(notes);
      expect(await rootFrom(path.join(inner, "deep"))).toBe(inner);
      expect(await rootFrom(temporaryFolder())).toBe(other);
      expect(await rootFrom(undefined)).toBe(other);
      expect(await rootFrom(inner, { vault: other })).toBe(other);
    },
  );

  test("as many notes have backlinks as notes are led to, whatever else is", async () => {
    const { notes: all, notes_with_backlinks } = await indexed({
      "a.md": "![[1.png]] ![[2.png]] [[a]] [[b]]",
      "b.md": "[[nowhere]]",
      "1.png": "",
      "2.png": "",
    });
    expect([all, notes_with_backlinks]).toEqual([2, 1]);
  });

  test("without an index each says what to run, and vaults are told apart by their folders", async () => {
    for (const command of [status, check])
      expect(await run(command, {}, { home })).toMatchObject({
        message: expect.stringMatching(/run `vault index <folder>` first/),
      });
    await indexed({ "a.md": "[[b]]" });
    const other = path.join(path.dirname(notes), "other");
    writeFiles(other, { "b.md": "" });
    await dataOf(index, { path: other });
    expect(await dataOf(check, { vault: notes })).toMatchObject({ broken_count: 1 });
    expect(await dataOf(check)).toMatchObject({ root: other, broken_count: 0 });
    await withVaults(home, (db) =>
      expect(() => findVault(db, path.dirname(notes), task())).toThrow(/has not been indexed/),
    );
  });
});
