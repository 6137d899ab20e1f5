import { utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import check from "../../commands/monitor/check.ts";
import add from "../../commands/monitor/filter/add.ts";
import remove from "../../commands/monitor/filter/remove.ts";
import show from "../../commands/monitor/filter/show.ts";
import addPriority from "../../commands/monitor/priority/add.ts";
import removePriority from "../../commands/monitor/priority/remove.ts";
import setScore from "../../commands/monitor/priority/set.ts";
import showPriorities from "../../commands/monitor/priority/show.ts";
import status from "../../commands/monitor/status.ts";
import { Monitored } from "../fixtures/pack/monitored.ts";
import { run } from "../helpers/run.ts";
import { makeSocket } from "../helpers/unix-socket.ts";

/** What each recorded file scores. */
function scoresOf(monitored: Monitored): Record<string, number> {
  const rows = monitored.read(
    (db) => db.prepare("select path, priority from monitor_tracked").all() as { path: Buffer; priority: number }[],
  );
  return Object.fromEntries(rows.map((row) => [path.relative(monitored.root, row.path.toString()), row.priority]));
}

describe("the filter", () => {
  test("leaves out what nobody wants from the start, and says so", async () => {
    const monitored = new Monitored({ "a.txt": "", ".git/HEAD": "", "node_modules/x/index.js": "", "draft.tmp": "" });
    expect(await monitored.sync()).toMatchObject({ files_updated: 1, files_skipped: 1 });
    const { filters } = await monitored.data<{ filters: { list: string; values: string[] }[] }>(show, {
      list: "exclude_dirnames",
    });
    expect(filters).toEqual([{ list: "exclude_dirnames", values: [".git", ".venv", "__pycache__", "node_modules"] }]);
  });

  test("that changes is obeyed by the next sync, and what it leaves out is forgotten", async () => {
    const monitored = new Monitored({ "a.txt": "", "b.log": "", "build/c.txt": "", "old/d.txt": "" });
    await monitored.sync();
    await monitored.data(add, { list: "exclude_globs", value: "*.log" });
    await monitored.data(add, { list: "exclude_dirnames", value: "build" });
    await monitored.data(add, { list: "exclude_paths", value: path.join(monitored.root, "old") });
    expect(await monitored.sync()).toMatchObject({ files_removed: 3 });
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt"]);
    await monitored.data(remove, { list: "exclude_dirnames", value: "build" });
    await monitored.data(remove, { list: "exclude_paths", value: path.join(monitored.root, "old") });
    await monitored.sync();
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt", "build/c.txt", "old/d.txt"]);
  });

  test("lets in what is listed for that, though it would be left out", async () => {
    const monitored = new Monitored({
      "node_modules/ours/a.js": "",
      "node_modules/other/b.js": "",
      "c.tmp": "",
      "keep.tmp": "",
    });
    await monitored.data(add, { list: "include_dirnames", value: "ours" });
    await monitored.data(add, { list: "include_globs", value: "keep.*" });
    await monitored.sync();
    expect(Object.keys(monitored.recorded())).toEqual(["keep.tmp", "node_modules/ours/a.js"]);
  });

  test("with folders to include has only those, and the nearest folder decides", async () => {
    const monitored = new Monitored({
      "notes/a.txt": "",
      "notes/private/b.txt": "",
      "notes/private/public/c.txt": "",
      "other/d.txt": "",
    });
    const below = (name: string) => path.join(monitored.root, name);
    await monitored.data(add, { list: "include_paths", value: below("notes") });
    await monitored.data(add, { list: "exclude_paths", value: below("notes/private") });
    await monitored.data(add, { list: "include_paths", value: below("notes/private/public") });
    await monitored.sync();
    expect(Object.keys(monitored.recorded())).toEqual(["notes/a.txt", "notes/private/public/c.txt"]);
  });

  test("takes a value once, and says whether it was there", async () => {
    const monitored = new Monitored();
    expect(await monitored.data(add, { list: "exclude_globs", value: "*.log" })).toMatchObject({
      value_stored: "*.log",
      already_exists: false,
    });
    expect(await monitored.data(add, { list: "exclude_globs", value: "*.log" })).toMatchObject({
      already_exists: true,
    });
    expect(await monitored.data(remove, { list: "exclude_globs", value: "*.log" })).toMatchObject({
      value_removed: "*.log",
      not_found: false,
    });
    expect(await monitored.data(remove, { list: "exclude_globs", value: "*.log" })).toMatchObject({ not_found: true });
  });

  test.each([
    [
      { list: "exclude_dirnames", value: "a/b" },
      "is not the plain name of a folder; exclude_globs takes patterns, exclude_paths whole paths",
    ],
    [{ list: "include_dirnames", value: ".git" }, "is in exclude_dirnames; remove it there first"],
    [{ list: "exclude_globs", value: "{a" }, "does not close its brace"],
    [{ list: "exclude_paths", value: "/etc" }, "lies outside the folders that are open to MCP clients"],
    [{ list: "exclude_globs", value: "" }, "`value` is empty"],
  ])("refuses %j", async (input, sentence) => {
    const monitored = new Monitored();
    expect(await monitored.failure(add, input, { origin: { door: "mcp", folder: monitored.root } })).toContain(
      sentence,
    );
  });
});

describe("monitor check", () => {
  test("explains its decision step by step, as a sync would decide", async () => {
    const monitored = new Monitored({ "a.txt": "", "node_modules/b.js": "" });
    await monitored.sync();
    const explain = (name: string) => monitored.data(check, { path: path.join(monitored.root, name) });
    expect(await explain("a.txt")).toMatchObject({
      is_monitored: true,
      is_tracked: true,
      exists: true,
      reason: "include_paths is empty, so every folder is in",
    });
    expect(await explain("node_modules/b.js")).toMatchObject({
      is_monitored: false,
      is_tracked: false,
      reason: "exclude_dirnames holds node_modules",
      decisions: [
        { symbol: "✓", message: "include_paths is empty, so every folder is in" },
        { symbol: "✗", message: "exclude_dirnames holds node_modules" },
        { symbol: "·", message: "no pattern of exclude_globs matches" },
        { symbol: "·", message: "nothing lets it in all the same" },
        { symbol: "·", message: "no priority holds it" },
      ],
    });
    expect(await explain("missing.txt")).toMatchObject({ is_monitored: true, exists: false });
    await makeSocket(path.join(monitored.root, "socket"));
    expect(await explain("socket")).toMatchObject({
      is_monitored: false,
      exists: true,
      reason: "it is not a regular file",
    });
  });
});

describe("priorities", () => {
  test("score files by the nearest folder, less further down and behind underscores, without reading them again", async () => {
    const monitored = new Monitored({ "a.txt": "", "_b.txt": "", "sub/c.txt": "", "_old/d.txt": "", "top/e.txt": "" });
    await monitored.sync();
    expect(await monitored.data(addPriority, { path: monitored.root, priority: 50 })).toMatchObject({
      new_priority: 50,
      old_priority: null,
    });
    expect(await monitored.data(addPriority, { path: monitored.root, priority: 100 })).toMatchObject({
      old_priority: 50,
    });
    await monitored.data(addPriority, { path: path.join(monitored.root, "top"), priority: 7 });
    expect(await monitored.sync()).toMatchObject({ files_updated: 5, bytes_read: 0 });
    expect(scoresOf(monitored)).toEqual({
      "a.txt": 100,
      "_b.txt": 50,
      "sub/c.txt": 90,
      "_old/d.txt": 45,
      "top/e.txt": 7,
    });
    expect(await monitored.sync()).toMatchObject({ files_updated: 0, files_skipped: 5 });
    expect(await monitored.data(showPriorities)).toMatchObject({
      priorities: [
        { path: monitored.root, priority: 100 },
        { path: path.join(monitored.root, "top"), priority: 7 },
      ],
    });
    expect(await monitored.data(removePriority, { path: monitored.root })).toMatchObject({ not_found: false });
    expect(await monitored.data(removePriority, { path: monitored.root })).toMatchObject({ not_found: true });
    expect(await monitored.sync()).toMatchObject({ files_updated: 4, bytes_read: 0 });
  });

  test("of a file are refused, and its folder is named", async () => {
    const monitored = new Monitored({ "a.txt": "" });
    const file = path.join(monitored.root, "a.txt");
    expect(await monitored.failure(addPriority, { path: file, priority: 1 })).toBe(
      `\`path\` ${file} is not a folder; give the one that it lies in, ${monitored.root}.`,
    );
    expect(await monitored.data(showPriorities)).toMatchObject({ priorities: [] });
  });

  test("are made with factors and weights that can be set, and unchanged files get their new score unread", async () => {
    const monitored = new Monitored({
      "a.txt": "",
      "b.MD": "",
      "_c.txt": "",
      "sub/d.txt": "",
      "_/e.txt": "",
      "sub/.md": "",
    });
    await monitored.data(addPriority, { path: monitored.root, priority: 100 });
    await monitored.sync();
    expect(scoresOf(monitored)).toEqual({
      "a.txt": 100,
      "b.MD": 100,
      "_c.txt": 50,
      "sub/d.txt": 90,
      "_/e.txt": 9,
      "sub/.md": 90,
    });
    expect(await monitored.data(setScore, { name: ".MD", value: 1.5 })).toEqual({
      name: ".md",
      new_value: 1.5,
      old_value: 1,
    });
    await monitored.data(setScore, { name: "folder_factor", value: 0.5 });
    await monitored.data(setScore, { name: "underscore_factor", value: 0.1 });
    await monitored.data(setScore, { name: "only_underscore_factor", value: 2 });
    expect(await monitored.sync()).toMatchObject({ files_updated: 5, files_skipped: 1, bytes_read: 0 });
    expect(scoresOf(monitored)).toEqual({
      "a.txt": 100,
      "b.MD": 150,
      "_c.txt": 10,
      "sub/d.txt": 50,
      "_/e.txt": 100,
      "sub/.md": 50,
    });
    expect(await monitored.sync()).toMatchObject({ files_updated: 0, files_skipped: 6 });
    expect(await monitored.data(showPriorities)).toMatchObject({
      settings: {
        folder_factor: 0.5,
        underscore_factor: 0.1,
        only_underscore_factor: 2,
        minimum_priority: 0,
        maximum_files: 0,
      },
      endings: [{ ending: ".md", weight: 1.5 }],
    });
    expect(await monitored.data(setScore, { name: ".md", value: 1 })).toMatchObject({ old_value: 1.5 });
    expect(await monitored.data(showPriorities)).toMatchObject({ endings: [] });
  });

  test("below the lowest that is wanted leave a file unrecorded, and check says why", async () => {
    const monitored = new Monitored({ "a.txt": "", "_b.txt": "", "old/c.txt": "" });
    await monitored.sync();
    await monitored.data(addPriority, { path: monitored.root, priority: 10 });
    await monitored.data(setScore, { name: "minimum_priority", value: 9.5 });
    expect(await monitored.sync()).toMatchObject({ files_removed: 2, files_skipped: 2 });
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt"]);
    expect(await monitored.sync()).toMatchObject({ files_updated: 0, files_removed: 0 });
    expect(await monitored.data(check, { path: path.join(monitored.root, "old/c.txt") })).toMatchObject({
      is_monitored: false,
      reason: "its score 9 is below minimum_priority 9.5",
    });
    await monitored.sync({ path: path.join(monitored.root, "_b.txt") });
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt"]);
    await monitored.data(setScore, { name: "minimum_priority", value: 0 });
    expect(await monitored.sync()).toMatchObject({ files_updated: 2 });
  });

  test("a lowest score where no folder has a priority is warned of, since nothing would be left", async () => {
    const monitored = new Monitored({ "a.txt": "" });
    const { messages } = await run(setScore, { name: "minimum_priority", value: 1 }, { home: monitored.home });
    expect(messages.filter(({ type }) => type === "warning").map(({ text }) => text)).toEqual([
      expect.stringMatching(/every file scores 0 .*`monitor priority add`/),
    ]);
  });

  test("decide what is kept when more files are there than are wanted, and what is left out is not read again and again", async () => {
    const monitored = new Monitored({ "a.txt": "aa", "_b.txt": "bb", "sub/c.txt": "cc", "old.txt": "dd" });
    utimesSync(path.join(monitored.root, "old.txt"), 1, 1);
    await monitored.data(addPriority, { path: monitored.root, priority: 10 });
    await monitored.data(setScore, { name: "maximum_files", value: 2 });
    expect(await monitored.sync()).toMatchObject({ files_updated: 4, files_removed: 2 });
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt", "old.txt"]);
    expect(await monitored.sync()).toMatchObject({
      files_updated: 0,
      files_removed: 0,
      files_skipped: 4,
      bytes_read: 0,
    });
    writeFileSync(path.join(monitored.root, "new.txt"), "newest");
    expect(await monitored.sync()).toMatchObject({ files_updated: 1, files_removed: 1 });
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt", "new.txt"]);
    await monitored.data(setScore, { name: "maximum_files", value: 0 });
    await monitored.sync();
    expect(Object.keys(monitored.recorded())).toHaveLength(5);
  });

  test.each([
    [
      { name: "folders", value: 1 },
      "`name` folders is neither a setting nor an ending; give an ending such as .md, or one of folder_factor, ",
    ],
    [{ name: "*.md", value: 1 }, "`name` *.md is neither a setting nor an ending"],
    [{ name: "constructor", value: 1 }, "`name` constructor is neither"],
    [{ name: "folder_factor", value: 1_001 }, "`value` 1001 is too much for folder_factor; it is at most 1000."],
    [{ name: "maximum_files", value: 1.5 }, "`value` 1.5 is no whole number of files."],
    [{ name: ".md", value: -1 }, "`value`"],
  ])("refuse the setting %j", async (input, sentence) => {
    expect(await new Monitored().failure(setScore, input)).toContain(sentence);
  });

  test("below zero are refused", async () => {
    const monitored = new Monitored();
    expect(await monitored.failure(addPriority, { path: monitored.root, priority: -1 })).toContain("`priority`");
  });
});

describe("monitor status", () => {
  test("counts files by age, each once, and says when they were last synced", async () => {
    const monitored = new Monitored({ "a.txt": "one", "b.txt": "two", "sub/c.txt": "three" });
    expect(await monitored.data(status)).toMatchObject({ tracked_files: 0, last_sync: null, syncs: [] });
    const now = Date.now() / 1000;
    utimesSync(path.join(monitored.root, "b.txt"), now, now - 3 * 86_400);
    utimesSync(path.join(monitored.root, "sub/c.txt"), now, now - 3_000 * 86_400);
    await monitored.sync();
    expect(await monitored.data(status)).toMatchObject({
      tracked_files: 3,
      tracked_folders: 2,
      tracked_bytes: 11,
      ages: { last_hour: 1, last_day: 0, last_week: 1, last_month: 0, last_year: 0, older: 1 },
      last_sync: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      syncs: [
        {
          path: monitored.root,
          recursive: true,
          files_processed: 3,
          files_updated: 3,
          files_removed: 0,
          errors_total: 0,
        },
      ],
    });
  });
});
