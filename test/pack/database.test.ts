import { rmSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { ensureSchema, openPack, withPack } from "../../commands/_pack/database.ts";
import list from "../../commands/database/list.ts";
import prune from "../../commands/database/prune.ts";
import reset from "../../commands/database/reset.ts";
import show from "../../commands/database/show.ts";
import addFilter from "../../commands/monitor/filter/add.ts";
import indexVault from "../../commands/vault/index/index.ts";
import { Monitored, sha256 } from "../fixtures/pack/monitored.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { run } from "../helpers/run.ts";

interface Page {
  readonly total: number;
  readonly count: number;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly next_cursor: string | null;
}

async function withFiles(count = 5): Promise<Monitored> {
  const monitored = new Monitored(
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`file-${at}.txt`, "x".repeat(at)])),
  );
  await monitored.sync();
  return monitored;
}

describe("database list", () => {
  test("names what there is, with its size; nothing where nothing was recorded", async () => {
    const { home } = new Monitored();
    expect((await run(list, {}, { home })) as object).toMatchObject({ ending: "completed", data: { collections: [] } });
    const monitored = await withFiles();
    expect(await monitored.data(list)).toMatchObject({
      database: path.join(monitored.home, "pack.db"),
      collections: expect.arrayContaining([
        { name: "monitor_files", domain: "monitor", kind: "table", rows: 5 },
        { name: "monitor_tracked", domain: "monitor", kind: "view", rows: 5 },
      ]),
    });
  });

  test("leaves out what full-text search keeps for itself", async () => {
    const monitored = await withFiles();
    await withPack(monitored.home, (db) =>
      ensureSchema(db, "notes", ["create virtual table notes_texts using fts5 (text)"]),
    );
    const { collections } = await monitored.data<{ collections: { name: string; domain: string }[] }>(list);
    expect(collections.filter(({ domain }) => domain === "notes").map(({ name }) => name)).toEqual(["notes_texts"]);
  });
});

describe("database show", () => {
  test.each(["monitor_tracked", "monitor_files", "monitor_filter_settings"])(
    "gives %s page by page, each row once",
    async (collection) => {
      const monitored = await withFiles(7);
      const seen: string[] = [];
      let cursor = "";
      for (let pages = 0; pages < 10; pages++) {
        const page = await monitored.data<Page>(show, { collection, limit: 2, cursor });
        expect(page).toMatchObject({ total: 7, count: page.rows.length });
        seen.push(...page.rows.map((row) => JSON.stringify(row)));
        if (page.next_cursor === null) break;
        cursor = page.next_cursor;
      }
      expect([seen.length, new Set(seen).size]).toEqual([7, 7]);
    },
  );

  test("shows bytes as text, hashes in hex, and goes by a query", async () => {
    const monitored = await withFiles();
    const find = (query: object) =>
      monitored.data<Page>(show, { collection: "monitor_tracked", query: JSON.stringify(query) });
    const file = path.join(monitored.root, "file-3.txt");
    expect((await find({ path: file })).rows).toMatchObject([
      { path: file, size: 3, sha256: sha256("xxx"), priority: 0 },
    ]);
    expect((await find({ sha256: sha256("xxx") })).rows).toMatchObject([{ path: file }]);
    expect((await find({ size: { gte: 2, lt: 4 } })).rows.map(({ size }) => size)).toEqual([2, 3]);
    expect((await find({ path: { like: "%file-4%" } })).total).toBe(1);
    const [row] = (await find({ path: file })).rows;
    expect((await find({ mtime_ns: row?.mtime_ns, size: 3 })).total).toBe(1);
    const digits = sha256("xxx");
    expect((await find({ sha256: { like: `${digits.slice(0, 12)}%` } })).rows).toMatchObject([{ path: file }]);
    expect((await find({ sha256: digits.toUpperCase() })).rows).toMatchObject([{ path: file }]);
    expect((await find({ sha256: { ne: digits } })).total).toBe(4);
    expect((await find({ path: "'; drop table monitor_files; --" })).total).toBe(0);
  });

  test.each([
    [{ collection: "nothing" }, "`collection` nothing does not exist; known: monitor_files"],
    [{ collection: "pack_schema" }, "does not exist"],
    [{ collection: "monitor_files", query: "{" }, "`query` is not JSON"],
    [{ collection: "monitor_files", query: "[]" }, "`query` must be a JSON object"],
    [
      { collection: "monitor_files", query: '{"nome":1}' },
      "`query` names nome, which is no field; known: folder_id, name",
    ],
    [{ collection: "monitor_files", query: '{"size":{"over":1}}' }, "`query` compares size with over; known: eq, ne"],
    [{ collection: "monitor_files", query: '{"size":{"gt":[1]}}' }, "not a text, a number"],
    [{ collection: "monitor_files", query: '{"size":[1,2]}' }, "`query` gives size a list; give one value"],
    [{ collection: "monitor_files", query: '{"sha256":"xyz"}' }, "`query` compares sha256 with xyz, which is no hash"],
    [{ collection: "monitor_files", query: '{"sha256":{"like":"%xyz%"}}' }, "which is no hash; give its hex digits"],
    [{ collection: "monitor_files", query: '{"sha256":12}' }, "`query` compares sha256 with 12, which is no hash"],
    [
      { collection: "monitor_files", query: '{"synced_at":{"gt":"soon"}}' },
      "`query` compares synced_at with soon, which is no time; write e.g. 2026-01-31",
    ],
    [{ collection: "monitor_files", query: '{"mtime_ns":{"gt":"2026-13-41"}}' }, "which is no time"],
    [{ collection: "monitor_files", query: '{"mtime_ns":{"gt":"2026-02-31"}}' }, "which is no time"],
    [{ collection: "monitor_files", query: '{"mtime_ns":{"like":"2026%"}}' }, "it is a time; use gt, gte, lt and lte"],
    [
      { collection: "monitor_files", query: JSON.stringify({ name: { like: "%a".repeat(300) } }) },
      "a pattern of 600 characters; at most 500 are taken",
    ],
    [{ collection: "monitor_files", cursor: "junk" }, "`cursor` does not belong to this collection and query"],
    [{ collection: "monitor_files", limit: 0 }, "`limit`"],
  ])("refuses %j with a sentence", async (input, sentence) => {
    expect(await (await withFiles()).failure(show, input)).toContain(sentence);
  });

  test("compares times that are given as text as times", async () => {
    const monitored = await withFiles();
    utimesSync(path.join(monitored.root, "file-3.txt"), 0, Date.UTC(2001, 1, 3, 4, 5, 6) / 1000);
    await monitored.sync();
    const count = async (query: object) =>
      (await monitored.data<Page>(show, { collection: "monitor_tracked", query: JSON.stringify(query) })).total;
    expect(await count({ mtime_ns: { lt: "2001-02-04" } })).toBe(1);
    expect(await count({ mtime_ns: { gte: "2001-02-04" } })).toBe(4);
    expect(await count({ mtime_ns: "2001-02-03T04:05:06" })).toBe(1);
    expect(await count({ mtime_ns: { lt: "2001-02-03T05:05:06+01:00" } })).toBe(0);
    expect(await count({ synced_at: { gt: "2001-02-04 10:00" } })).toBe(5);
    expect(await count({ synced_at: { gt: "9999-01-01" } })).toBe(0);
  });

  test("refuses a cursor of another query", async () => {
    const monitored = await withFiles();
    const { next_cursor } = await monitored.data<Page>(show, { collection: "monitor_files", limit: 2 });
    expect(
      await monitored.failure(show, {
        collection: "monitor_files",
        limit: 2,
        cursor: next_cursor,
        query: '{"size":1}',
      }),
    ).toContain("`cursor`");
  });
});

describe("database prune", () => {
  test("forgets files that are gone and nothing else", async () => {
    const monitored = await withFiles();
    rmSync(path.join(monitored.root, "file-2.txt"));
    expect(await monitored.data(prune)).toMatchObject({ checked_count: 5, deleted_count: 1 });
    expect(Object.keys(monitored.recorded())).toHaveLength(4);
    expect(await monitored.failure(prune, { domain: "nobody" })).toContain(
      "`domain` nobody has recorded nothing; known: all, monitor",
    );
  });

  test("goes by the path of any domain, and takes along what refers to it", async () => {
    const monitored = await withFiles();
    await withPack(monitored.home, (db) => {
      ensureSchema(db, "notes", [
        "create table notes_files (id integer primary key, path blob not null); create table notes_words (note integer references notes_files (id) on delete cascade, word text);",
      ]);
      const add = db.prepare("insert into notes_files (path) values (?)");
      add.run(Buffer.from(path.join(monitored.root, "file-1.txt")));
      add.run(Buffer.from("/nowhere/at/all"));
      add.run(Buffer.from("not/a/whole/path"));
      db.exec("insert into notes_words values (1, 'here'), (2, 'gone')");
    });
    expect(await monitored.data(prune, { domain: "notes" })).toMatchObject({ checked_count: 2, deleted_count: 1 });
    expect(monitored.read((db) => db.prepare("select word from notes_words").pluck().all())).toEqual(["here"]);
  });

  test("does not claim to have looked at a vault's notes", async () => {
    const monitored = new Monitored({ "notes/a.md": "[[b]]" });
    await monitored.data(indexVault, { path: path.join(monitored.root, "notes") });
    expect(await monitored.data(prune, { domain: "vault" })).toEqual({
      checked_count: 0,
      deleted_count: 0,
      collections: [],
    });
    await monitored.sync();
    const { collections } = await monitored.data<{ collections: { name: string }[] }>(prune);
    expect(collections.map(({ name }) => name)).toEqual(["monitor_files"]);
  });
});

describe("database reset", () => {
  const asked: string[] = [];
  const answering = (goAhead: boolean) => ({
    ask: async ({ message, isConfirmation }: { message: string; isConfirmation: boolean }) => {
      asked.push(`${isConfirmation}: ${message}`);
      return goAhead
        ? ({ action: "accept", content: { confirm: true, goAhead: true } } as const)
        : ({ action: "decline" } as const);
    },
  });

  test("asks first, and does nothing when the answer is no or nobody can be asked", async () => {
    const monitored = await withFiles();
    expect(await run(reset, { domain: "monitor" }, { home: monitored.home, door: answering(false) })).toMatchObject({
      ending: "failed",
    });
    expect(asked).toEqual(["true: Delete everything that monitor has recorded?"]);
    expect(await run(reset, { domain: "monitor" }, { home: monitored.home })).toMatchObject({ ending: "failed" });
    expect(Object.keys(monitored.recorded())).toHaveLength(5);
    expect([reset.effects, typeof reset.confirm]).toEqual(["destroy", "function"]);
  });

  test("of a domain that there is not is refused before anybody is asked", async () => {
    const monitored = await withFiles();
    asked.length = 0;
    const outcome = await run(reset, { domain: "nobody" }, { home: monitored.home, door: answering(true) });
    expect(outcome).toMatchObject({ ending: "failed", message: expect.stringMatching(/`domain`.*monitor.*ingest/) });
    expect(asked).toEqual([]);
  });

  test("forgets what was recorded and keeps the settings", async () => {
    const monitored = await withFiles(1_200);
    await monitored.data(addFilter, { list: "exclude_globs", value: "*.log" });
    const outcome = await reset.run(
      { domain: "monitor" } as never,
      { home: monitored.home, signal: new AbortController().signal } as never,
    );
    expect(outcome).toMatchObject({ domain: "monitor", deleted_count: 1_203 });
    expect(monitored.recorded()).toEqual({});
    expect(monitored.read((db) => db.prepare("select count(*) from monitor_filter_settings").pluck().get())).toBe(8);
    expect(await monitored.sync()).toMatchObject({ files_updated: 1_200 });
  });
});

describe("the pack's database", () => {
  test("of a newer Meanwhile is refused, and nothing is changed", () => {
    const home = temporaryFolder();
    const db = openPack(home);
    try {
      ensureSchema(db, "notes", ["create table notes_a (x)", "create table notes_b (x)"]);
      expect(() => ensureSchema(db, "notes", ["create table notes_a (x)"])).toThrow(
        "was written by a newer Meanwhile (notes 2, this one knows 1); update Meanwhile",
      );
      ensureSchema(db, "notes", ["create table notes_a (x)", "create table notes_b (x)", "create table notes_c (x)"]);
      expect(db.prepare("select version from pack_schema where domain = 'notes'").pluck().get()).toBe(3);
    } finally {
      db.close();
    }
  });

  test("that is no database is told in one sentence with the cure", async () => {
    const home = temporaryFolder();
    writeFileSync(path.join(home, "pack.db"), "x".repeat(4_096));
    expect(await run(list, {}, { home })).toMatchObject({
      ending: "failed",
      message: expect.stringMatching(/cannot be used: it is no database; move it away/),
    });
  });
});
