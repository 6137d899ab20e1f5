import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { openPack } from "../../commands/_pack/database.ts";
import reset from "../../commands/database/reset.ts";
import { cutIntoChunks } from "../../commands/ingest/_chunks.ts";
import { IngestRun } from "../../commands/ingest/_run.ts";
import { withIngested } from "../../commands/ingest/_store.ts";
import discover from "../../commands/ingest/discover.ts";
import legacy from "../../commands/ingest/legacy.ts";
import search from "../../commands/ingest/search.ts";
import sources from "../../commands/ingest/sources.ts";
import type { RunOptions } from "../../src/command/run.ts";
import { Cancelled } from "../../src/errors.ts";
import { anywhere } from "../fixtures/pack/reaches.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { readDocumentsHere } from "../helpers/read-here.ts";
import { rounds } from "../helpers/rounds.ts";
import { run } from "../helpers/run.ts";

readDocumentsHere();

let home: string;
let folder: string;

beforeEach(() => {
  home = temporaryFolder();
  folder = temporaryFolder();
  vi.stubEnv("HOME", folder);
  onTestFinished(() => void vi.unstubAllEnvs());
});

async function dataOf(command: Parameters<typeof run>[0], input: object = {}): Promise<Record<string, unknown>> {
  const outcome = await run(command, input, { home });
  if (outcome.ending !== "completed") throw new Error(outcome.message);
  return outcome.data as Record<string, unknown>;
}

const ingested = (files: Record<string, string> = {}, input: object = {}) => {
  writeFiles(folder, files);
  return dataOf(sources, { paths: [folder], ...input });
};

interface Result {
  readonly path: string;
  readonly line: number;
  readonly snippet: string;
  readonly score: number;
}

async function found(query: string, input: object = {}): Promise<string[]> {
  const { results } = (await dataOf(search, { query, ...input })) as { results: Result[] };
  return results.map((result) => path.relative(folder, result.path));
}

describe("chunks", () => {
  const cut = (text: string, size: number, overlap: number) => [...cutIntoChunks(text, { size, overlap })];

  test("end between paragraphs, lines, sentences or words, in this order", () => {
    expect(cut(`${"a".repeat(80)}\n\n${"b".repeat(60)}`, 100, 0).map(({ text }) => text)).toEqual([
      "a".repeat(80),
      "b".repeat(60),
    ]);
    expect(cut(`${"one two. ".repeat(5)}three four five six`, 50, 0)[0]?.text).toBe(
      "one two. one two. one two. one two. one two.",
    );
  });

  test("are cut in one pass, also from a text of one word", () => {
    const startedAt = performance.now();
    for (const piece of ["x", "x ", "\n", "x\n\n"]) cut(piece.repeat(2_000_000 / piece.length), 500, 100);
    // Looking back to the beginning for each of them takes minutes.
    expect(performance.now() - startedAt).toBeLessThan(30_000);
  });

  test("know the line they begin in", () => {
    const text = Array.from({ length: 60 }, (_, at) => `n${at + 1} `.repeat(1 + (at % 4))).join("\n");
    const chunks = cut(text, 100, 30);
    expect(chunks.length).toBeGreaterThan(5);
    for (const { text: piece, line } of chunks) expect(piece).toMatch(new RegExp(`^n${line}\\b`));
  });

  test("hold every word of a text, never half a character, and are never too long", () => {
    const words = fc.array(
      fc.oneof(
        fc.string({ unit: "grapheme", maxLength: 30 }),
        fc.constantFrom("\n", "\n\n", ". ", "word", "😀".repeat(70)),
      ),
      {
        maxLength: 60,
      },
    );
    fc.assert(
      fc.property(
        words,
        fc.integer({ min: 100, max: 300 }),
        fc.integer({ min: 0, max: 99 }),
        (parts, size, overlap) => {
          const text = parts.join(" ");
          const chunks = cut(text, size, overlap);
          for (const chunk of chunks) {
            expect(chunk.text.length).toBeLessThanOrEqual(size);
            expect(chunk.text.isWellFormed() || !text.isWellFormed()).toBe(true);
          }
          const all = chunks.map((chunk) => chunk.text).join(" ");
          for (const word of text.split(/\s+/)) if (word.length < overlap) expect(all).toContain(word);
          if (overlap === 0)
            expect(chunks.map((chunk) => chunk.text.replaceAll(/\s/g, "")).join("")).toBe(text.replaceAll(/\s/g, ""));
        },
      ),
      { numRuns: 50 * rounds.propertyFactor, seed: 1 },
    );
  });
});

describe("ingest sources", () => {
  test("takes what it can read, and says why it skips the rest", async () => {
    writeFileSync(path.join(folder, "binary.txt"), Buffer.from([1, 0, 2]));
    const data = await ingested(
      {
        "a.md": "# Apples\n",
        "sub/b.html": "<p>Bananas</p>",
        "c.csv": "fruit\ncherry",
        "d.xyz": "x",
        "empty.txt": "",
        "blank.txt": " \n",
        "big.txt": "x".repeat(1024 * 1024 + 1),
        ".git/e.md": "x",
      },
      { max_file_mb: 1 },
    );
    expect(data).toMatchObject({
      files_seen: 8,
      files_ingested: 3,
      chunks_written: 3,
      files_skipped: 5,
      skip_reasons: { binary: 1, "unknown ending": 1, empty: 1, "no text": 1, "too large": 1 },
      errors_total: 0,
    });
    expect(data.skipped).toContainEqual({ path: path.join(folder, "big.txt"), reason: "too large" });
    expect(await found("bananas")).toEqual(["sub/b.html"]);
    expect(await ingested({}, { max_chunks: 1, chunk_size: 100, overlap: 10 })).toMatchObject({
      skip_reasons: { "too many chunks": 1 },
    });
    expect(await run(sources, { paths: [folder], chunk_size: 100, overlap: 100 }, { home })).toMatchObject({
      message: "`overlap` must be smaller than `chunk_size`.",
    });
  });

  test("reads only what changed, and forgets what vanished or is skipped by now", async () => {
    expect(await ingested({ "a.txt": "alpha", "b.txt": "beta", "c.txt": "gamma" })).toMatchObject({
      files_ingested: 3,
      files_unchanged: 0,
    });
    expect(await ingested()).toMatchObject({ files_ingested: 0, files_unchanged: 3, chunks_written: 0 });
    rmSync(path.join(folder, "a.txt"));
    expect(await ingested({ "b.txt": "better", "c.txt": "" })).toMatchObject({
      files_ingested: 1,
      files_removed: 2,
      files_skipped: 1,
    });
    expect([await found("alpha"), await found("beta"), await found("gamma"), await found("better")]).toEqual([
      [],
      [],
      [],
      ["b.txt"],
    ]);
    expect(await ingested({}, { chunk_size: 500 })).toMatchObject({ files_ingested: 1, files_unchanged: 0 });
  });

  test("passes over hidden folders, installed packages and Meanwhile's own", async () => {
    home = path.join(folder, "home");
    await ingested({ "a.txt": "one", ".secret/b.txt": "two", "node_modules/c.txt": "three" });
    expect(await ingested({ "home/cache/transform/aa/d.txt": "four" })).toMatchObject({ files_seen: 1 });
  });

  test("takes single files of any ending, leaves alone what lies elsewhere, and forgets a path that is gone", async () => {
    writeFiles(folder, { "one/a.xyz": "odd words", "two/b.txt": "other words" });
    await dataOf(sources, { paths: [path.join(folder, "one/a.xyz"), path.join(folder, "two")] });
    expect((await found("words")).sort()).toEqual(["one/a.xyz", "two/b.txt"]);
    rmSync(path.join(folder, "two"), { recursive: true });
    expect(await dataOf(sources, { paths: [path.join(folder, "two")] })).toMatchObject({
      files_removed: 1,
      errors_total: 0,
    });
    expect(await found("words")).toEqual(["one/a.xyz"]);
    expect(await dataOf(sources, { paths: [path.join(folder, "three")] })).toMatchObject({
      files_removed: 0,
      errors_total: 1,
    });
  });

  test("without --recursive, what lies deeper stays as it was", async () => {
    await ingested({ "a.txt": "top", "sub/b.txt": "deep" });
    expect(await ingested({}, { recursive: false })).toMatchObject({ files_seen: 1, files_removed: 0 });
    expect(await found("deep")).toEqual(["sub/b.txt"]);
  });

  test("odd names, links that lead out or in circles, and files that fail are told one by one", async () => {
    writeFiles(folder, { "line\nbreak.txt": "newline", "bad.json": "{" });
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/bytes-`), Buffer.from([0xff]), Buffer.from(".txt")]), "notutf");
    symlinkSync("/etc/hostname", path.join(folder, "out.txt"));
    symlinkSync("loop.txt", path.join(folder, "loop.txt"));
    mkdirSync(path.join(folder, "deep"));
    symlinkSync("..", path.join(folder, "deep/circle"));
    const data = await ingested();
    expect(data).toMatchObject({ files_ingested: 2, errors_total: 3 });
    expect((data.errors as { path: string }[]).map((error) => path.basename(error.path)).sort()).toEqual([
      "bad.json",
      "loop.txt",
      "out.txt",
    ]);
    expect([await found("newline"), await found("notutf")]).toEqual([["line%0Abreak.txt"], ["bytes-%FF.txt"]]);
    expect(await ingested()).toMatchObject({ files_unchanged: 2 });
  });

  test("a run that is cancelled keeps what it has, and the next does only the rest", async () => {
    writeFiles(
      folder,
      Object.fromEntries(
        Array.from({ length: 120 }, (_, at) => [`d${at % 10}/f${at}.txt`, `number ${at} ${"words ".repeat(400)}`]),
      ),
    );
    const stop = new AbortController();
    const outcome = await run(
      sources,
      { paths: [folder] },
      { home, signals: [stop.signal], door: { progress: () => stop.abort(new Cancelled()) } },
    );
    expect(outcome.ending).toBe("cancelled");
    const data = (await ingested()) as { files_ingested: number; files_unchanged: number };
    expect(data.files_unchanged).toBeGreaterThan(0);
    expect(data.files_ingested + data.files_unchanged).toBe(120);
    const counts = await withIngested(home, (db) =>
      db
        .prepare(
          "select (select count(*) from ingest_chunks) as chunks, (select count(*) from ingest_texts) as texts, (select sum(chunks) from ingest_files) as sum",
        )
        .get(),
    );
    expect(counts).toEqual({ chunks: 360, texts: 360, sum: 360 });
  });

  test("a disk that fills up is told of per file, and nothing stored before is lost", async () => {
    await ingested({ "first.txt": "first" });
    writeFiles(
      folder,
      Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`f${at}.txt`, `${"some words ".repeat(4_000)}`])),
    );
    const db = openPack(home);
    db.pragma(`max_page_count = ${(db.pragma("page_count", { simple: true }) as number) + 100}`);
    const options = { size: 1_000, overlap: 100, maxBytes: 1e6, maxChunks: 1_000, reach: anywhere };
    const ingest = new IngestRun(db, options, {
      home,
      config: {},
      signal: new AbortController().signal,
      progress() {},
    });
    await ingest.take(
      {
        path: Buffer.from(folder),
        kind: "folder",
        recursive: true,
        source: "",
        format: "files",
        takes: (name) => name !== "first.txt",
      },
      30,
    );
    db.close();
    const { files_ingested, errors_total, errors } = ingest.toOutput();
    expect(errors_total).toBeGreaterThan(0);
    expect(files_ingested + errors_total).toBe(30);
    expect(errors[0]?.reason).toMatch(/not stored: the disk is full/);
    expect(await found("first")).toEqual(["first.txt"]);
    expect(await ingested()).toMatchObject({ errors_total: 0, files_seen: 31 });
  });

  test("a reset of the database takes the texts along", async () => {
    await ingested({ "a.txt": "findable" });
    await run(
      reset,
      { domain: "ingest" },
      { home, door: { ask: async () => ({ action: "accept", content: { confirm: true } }) } },
    );
    expect(await found("findable")).toEqual([]);
    expect(await ingested()).toMatchObject({ files_ingested: 1 });
    expect(await found("findable")).toEqual(["a.txt"]);
  });
});

describe("ingest search", () => {
  test("ranks, quotes, and says where", async () => {
    await ingested({
      "much.txt": "apple apple apple pie",
      "little.txt": `one apple ${"and other words ".repeat(40)}`,
      "none.txt": "pear",
    });
    const data = (await dataOf(search, { query: "Ápple" })) as { results: Result[] };
    expect(data).toMatchObject({ matched: "all", count: 2, has_more: false, is_complete: true, ignored: [] });
    expect(data.results[0]).toMatchObject({
      path: path.join(folder, "much.txt"),
      line: 1,
      snippet: "«apple» «apple» «apple» pie",
    });
    expect(data.results[0]?.score).toBeGreaterThan(data.results[1]?.score ?? 0);
    expect(await found("apple", { limit: 1 })).toEqual(["much.txt"]);
    expect(await found("apple", { limit: 1, offset: 1 })).toEqual(["little.txt"]);
  });

  test("finds all words, else any; phrases, and beginnings", async () => {
    await ingested({
      "a.txt": "rolling update of a deployment",
      "b.txt": "update, then rolling",
      "c.txt": "unrelated",
    });
    expect((await found("rolling update")).sort()).toEqual(["a.txt", "b.txt"]);
    expect(await found('"rolling update"')).toEqual(["a.txt"]);
    expect(await found("deploy*")).toEqual(["a.txt"]);
    expect(await found("deploy")).toEqual([]);
    expect(await dataOf(search, { query: "unrelated deployment" })).toMatchObject({ matched: "any", count: 2 });
    expect(await found("de*")).toEqual([]);
  });

  test("a word that is nearly everywhere does not hide a rare one, nor the newest chunks", async () => {
    await withIngested(home, (db) => {
      db.exec(`insert into ingest_files values (1, x'61', 'a', 's', '', '', 'text', 'a', 1, 1, 1);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 21000) insert into ingest_chunks select i, 1, i, 1, 1 from n;
        insert into ingest_texts (rowid, text) select id, 'the common words' || case when id in (5, 20990) then ' rareword' else '' end from ingest_chunks;`);
    });
    expect(await dataOf(search, { query: "the common rareword" })).toMatchObject({
      matched: "all",
      count: 2,
      ignored: ["the", "common"],
      is_complete: true,
    });
    const common = (await dataOf(search, { query: "common" })) as { results: { chunk: number }[] };
    expect(common).toMatchObject({ count: 10, has_more: true, is_complete: false });
    expect(Math.min(...common.results.map(({ chunk }) => chunk))).toBeGreaterThan(14_000);
    expect(await dataOf(search, { query: "the nowhere" })).toMatchObject({ matched: "any", count: 10 });
  });

  test.each([
    '"',
    '""',
    '"unclosed',
    "a AND",
    "NOT a",
    "a OR",
    "(",
    "a)",
    "NEAR(a b)",
    "text:a",
    "a^b",
    "^a",
    "-a",
    "a*b*",
    "* a",
    "'; drop table ingest_files; --",
    "a\0b",
    "{a b}: c",
    "a + b",
    "\\",
    "😀 a",
    "ＡＢ",
  ])("%j is only text", async (query) => {
    await ingested({ "a.txt": "a b c" });
    const outcome = await run(search, { query }, { home });
    if (outcome.ending === "failed")
      expect(outcome.message).toBe("`query` holds no word; give at least one letter or digit.");
    else expect(outcome.ending).toBe("completed");
  });

  test("no query at all is a syntax error", async () => {
    await ingested({ "a.txt": "a b c" });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ unit: "binary", minLength: 1 }),
          fc.string({
            unit: fc.constantFrom('"', "*", "(", ")", "a", " ", ":", "-", "^", "+", "AND ", "NEAR"),
            minLength: 1,
          }),
        ),
        async (query) => {
          const outcome = await run(search, { query }, { home });
          expect(outcome.ending === "failed" ? outcome.message : "").toMatch(/^$|holds no word/);
        },
      ),
      { numRuns: 40 * rounds.propertyFactor, seed: 2 },
    );
  });
});

describe("ingest discover and legacy", () => {
  const said = (role: string, text: string) =>
    JSON.stringify({ type: role, message: { role, content: [{ type: "text", text }] } });

  test("discover lists what is known, and opens no file", async () => {
    writeFiles(folder, {
      ".claude/projects/p/one.jsonl": `${said("user", "hello")}\n`,
      ".claude/projects/p/two.jsonl": "x",
      ".codex/history.jsonl": "{}",
      ".config/Cursor/User/globalStorage/state.vscdb": "x",
      "Documents/My Notes/.obsidian/app.json": "{}",
      "Documents/My Notes/a.md": "note",
      "unrelated/a.jsonl": "x",
    });
    const data = (await dataOf(discover)) as { sources: Record<string, unknown>[] };
    expect(data.sources.map(({ id, kind, files, can_ingest }) => [id, kind, files, can_ingest])).toEqual([
      ["claude-code", "history", 2, true],
      ["codex-prompts", "history", 1, true],
      ["cursor", "history", 1, false],
      ["obsidian-Documents-My-Notes", "notes", 1, true],
    ]);
    expect(data.sources[0]).toMatchObject({
      assistant: "Claude Code",
      provider: "claude-code",
      path: path.join(folder, ".claude/projects"),
      newest: expect.stringMatching(/^20/),
    });
    expect(await found("hello")).toEqual([]);
  });

  test("legacy takes what was said from the histories that were listed", async () => {
    const codex = (role: string, text: string) =>
      JSON.stringify({
        type: "response_item",
        payload: { type: "message", role, content: [{ type: "input_text", text }] },
      });
    writeFiles(folder, {
      ".claude/projects/p/one.jsonl": [
        said("user", "why is the sky blue"),
        said("assistant", "because of scattering"),
        JSON.stringify({
          type: "assistant",
          message: { role: "assistant", content: [{ type: "tool_use", name: "x", input: { secretword: 1 } }] },
        }),
        JSON.stringify({
          type: "assistant",
          message: { role: "assistant", content: [{ type: "thinking", text: "secretword" }] },
        }),
        '{"half": ',
      ].join("\n"),
      ".codex/sessions/2026/01/r.jsonl": [
        codex("user", "rename the variable"),
        JSON.stringify({ type: "response_item", payload: { type: "function_call", arguments: "secretword" } }),
      ].join("\n"),
      ".gemini/tmp/h/chats/s.json": JSON.stringify({
        messages: [
          { type: "user", content: "a question" },
          { type: "gemini", content: "geminianswer" },
        ],
      }),
      "Downloads/conversations.json": JSON.stringify([
        {
          title: "Trip",
          mapping: { a: { message: { author: { role: "user" }, content: { parts: ["chatgptwords"] } } } },
        },
      ]),
      "Documents/V/.obsidian/x": "",
      "Documents/V/n.md": "vaultwords",
    });
    await dataOf(discover);
    const ids = ["claude-code", "codex", "gemini-cli", "chat-export", "obsidian-Documents-V"];
    expect(await dataOf(legacy, { ids })).toMatchObject({ sources: ids, files_ingested: 5, errors_total: 0 });
    for (const [query, file] of [
      ["scattering", ".claude/projects/p/one.jsonl"],
      ['"user: why is the sky"', ".claude/projects/p/one.jsonl"],
      ["rename variable", ".codex/sessions/2026/01/r.jsonl"],
      ["geminianswer", ".gemini/tmp/h/chats/s.json"],
      ["chatgptwords", "Downloads/conversations.json"],
      ["vaultwords", "Documents/V/n.md"],
    ] as const)
      expect(await found(query), query).toEqual([file]);
    expect(await found("secretword")).toEqual([]);
    expect(await found("user", { source: "codex" })).toEqual([".codex/sessions/2026/01/r.jsonl"]);
    expect(await dataOf(legacy, { ids: ["claude-code"] })).toMatchObject({ files_ingested: 0, files_unchanged: 1 });
  });

  test("legacy knows only what discover listed", async () => {
    expect(await run(legacy, { ids: ["claude-code"] }, { home })).toMatchObject({
      message: "`ids` claude-code has not been listed; run `ingest discover` first.",
    });
    writeFiles(folder, {
      ".codex/history.jsonl": JSON.stringify({ session_id: "1", ts: 1, text: "typed words" }),
      ".config/Cursor/User/globalStorage/state.vscdb": "x",
    });
    await dataOf(discover);
    expect(await run(legacy, { ids: ["cursor"] }, { home })).toMatchObject({
      message: expect.stringMatching(/another program's database/),
    });
    expect(await run(legacy, { ids: ["nope"] }, { home })).toMatchObject({
      message: "`ids` nope has not been listed; known: codex-prompts.",
    });
    await dataOf(legacy, { ids: ["codex-prompts"] });
    expect(await found("typed words")).toEqual([".codex/history.jsonl"]);
  });

  interface Listed {
    readonly id: string;
    readonly assistant: string;
    readonly provider: string;
    readonly root: string;
    readonly project: string;
    readonly session: string;
    readonly path: string;
    readonly files: number;
  }

  const listed = async (input: object, options: Partial<RunOptions> = {}) => {
    const outcome = await run(discover, input, { home, ...options });
    expect(outcome, JSON.stringify(outcome)).toMatchObject({ ending: "completed" });
    return (
      outcome as unknown as { data: { sources: Listed[]; total: number; errors: { path: string; reason: string }[] } }
    ).data;
  };

  const histories = {
    ".claude/projects/-home-me-website/s1.jsonl": `${said("user", "colours of the website")}\n`,
    ".claude/projects/-home-me-website/s2.jsonl": `${said("user", "fonts of the website")}\n`,
    ".claude/projects/-home-me-engine/s3.jsonl": `${said("user", "noise of the engine")}\n`,
    ".claude/CLAUDE.md": "remember the website",
    ".codex/sessions/2026/01/02/rollout-abc.jsonl": `${said("user", "codexwords")}\n`,
    ".config/Code/User/workspaceStorage/hash1/chatSessions/c1.json": JSON.stringify({
      requests: [{ message: { text: "copilotwords" } }],
    }),
  };

  test("discover tells sources apart by provider, root, project and session", async () => {
    writeFiles(folder, histories);
    const projects = await listed({ by: "project", providers: ["claude-code"] });
    expect(projects.sources.map(({ id, project, session, files }) => [id, project, session, files]).sort()).toEqual([
      ["claude-code-memory", "", "", 1],
      ["claude-code/-home-me-engine", "-home-me-engine", "", 1],
      ["claude-code/-home-me-website", "-home-me-website", "", 2],
    ]);
    expect(projects.sources.find(({ id }) => id.endsWith("website"))).toMatchObject({
      assistant: "Claude Code",
      provider: "claude-code",
      root: path.join(folder, ".claude/projects"),
      path: path.join(folder, ".claude/projects/-home-me-website"),
    });
    const sessions = await listed({ by: "session" });
    expect(sessions.sources.map(({ id }) => id).sort()).toEqual([
      "claude-code-memory",
      "claude-code/-home-me-engine/s3",
      "claude-code/-home-me-website/s1",
      "claude-code/-home-me-website/s2",
      "codex/rollout-abc",
      "copilot-vscode/hash1/c1",
    ]);
    expect((await listed({ by: "session", projects: ["WEBSITE"], sessions: ["s2"] })).sources).toMatchObject([
      {
        id: "claude-code/-home-me-website/s2",
        session: "s2",
        path: path.join(folder, ".claude/projects/-home-me-website/s2.jsonl"),
      },
    ]);
    expect(await listed({ by: "session", limit: 2 })).toMatchObject({ sources: [{}, {}], total: 6 });
    expect((await listed({ providers: ["Claude Code"] })).sources.map(({ id }) => id)).toEqual([
      "claude-code",
      "claude-code-memory",
    ]);
  });

  test.each([
    [{ ids: ["claude-code/-home-me-website"] }, 2, ["fonts"], ["noise"]],
    [{ ids: ["claude-code/-home-me-website/s1"] }, 1, ["colours"], ["fonts"]],
    [{ ids: ["codex/rollout-abc"] }, 1, ["codexwords"], []],
    [{ ids: ["all"], projects: ["engine"] }, 1, ["noise"], ["fonts", "codexwords"]],
    [{ ids: ["all"], sessions: ["s2", "c1"] }, 2, ["fonts", "copilotwords"], ["colours"]],
    [{ ids: ["all"], providers: ["codex"] }, 1, ["codexwords"], ["noise"]],
    [{ ids: ["all"], roots: ["~/.config"] }, 1, ["copilotwords"], ["noise"]],
  ])("legacy takes what %j selects, and nothing else", async (input, files, there, missing) => {
    writeFiles(folder, histories);
    await dataOf(discover);
    expect(await dataOf(legacy, input)).toMatchObject({ files_ingested: files, errors_total: 0 });
    for (const word of there) expect(await found(word), word).toHaveLength(1);
    for (const word of missing) expect(await found(word), word).toEqual([]);
  });

  test("a project or session that is not there is named, and filters that leave nothing are refused", async () => {
    writeFiles(folder, histories);
    await dataOf(discover);
    expect(await dataOf(legacy, { ids: ["claude-code/nope"] })).toMatchObject({
      files_seen: 0,
      errors: [{ path: "claude-code/nope", reason: expect.stringContaining("no such project or session") }],
    });
    expect(await run(legacy, { ids: ["codex"], providers: ["claude-code"] }, { home })).toMatchObject({
      message: "Nothing that was listed fits `ids`, `providers` and `roots` together; leave one of them out.",
    });
  });

  test("what was ingested of one project stays when another is taken", async () => {
    writeFiles(folder, histories);
    await dataOf(discover);
    await dataOf(legacy, { ids: ["claude-code/-home-me-engine"] });
    expect(await dataOf(legacy, { ids: ["claude-code/-home-me-website"] })).toMatchObject({ files_removed: 0 });
    expect(await found("noise", { source: "claude-code" })).toHaveLength(1);
  });

  test("another home is looked in when it is given, and its sources are told apart", async () => {
    const other = writeFiles(temporaryFolder(), {
      ".codex/history.jsonl": JSON.stringify({ session_id: "1", text: "otherwords" }),
    });
    writeFiles(folder, { ".codex/history.jsonl": JSON.stringify({ session_id: "1", text: "ownwords" }) });
    const { sources: all } = await listed({ roots: [other] });
    expect(all.map(({ id, root }) => [id.replace(/@.*/, "@"), root])).toEqual([
      ["codex-prompts", path.join(folder, ".codex")],
      ["codex-prompts@", path.join(other, ".codex")],
    ]);
    await dataOf(legacy, { ids: ["all"], roots: [other] });
    expect(await found("ownwords")).toEqual([]);
    expect(await found("otherwords")).toHaveLength(1);
  });

  const aider = (words: string) => `# aider chat started\n\n#### ${words}\n\nanswer\n`;

  test("Aider's histories are found in the projects below the home, around the working folder and below given roots", async () => {
    const elsewhere = writeFiles(realpathSync(temporaryFolder()), {
      "app/.aider.chat.history.md": aider("workingwords"),
      "app/src/deep/x.ts": "",
      "node_modules/x/.aider.chat.history.md": aider("x"),
    });
    const given = writeFiles(realpathSync(temporaryFolder()), { "a/.aider.chat.history.md": aider("givenwords") });
    writeFiles(folder, {
      ".aider.chat.history.md": aider("homewords"),
      "code/api/.aider.chat.history.md": aider("apiwords"),
      "a/b/c/d/e/.aider.chat.history.md": aider("too deep"),
      "code/node_modules/x/.aider.chat.history.md": aider("installed"),
    });
    const origin = { door: "terminal", folder: path.join(elsewhere, "app/src/deep") } as const;
    const { sources: all } = await listed({ providers: ["aider"], roots: [given] }, { origin });
    expect(all.map(({ project, path: file }) => [project, file]).sort()).toEqual(
      [
        [path.basename(folder), path.join(folder, ".aider.chat.history.md")],
        ["api", path.join(folder, "code/api/.aider.chat.history.md")],
        ["app", path.join(elsewhere, "app/.aider.chat.history.md")],
        ["a", path.join(given, "a/.aider.chat.history.md")],
      ].sort(),
    );
    expect(await dataOf(legacy, { ids: ["aider"] })).toMatchObject({ files_ingested: 4, errors_total: 0 });
    expect(await found("apiwords", { source: "aider-code-api" })).toEqual(["code/api/.aider.chat.history.md"]);
    expect(await dataOf(legacy, { ids: ["aider"], projects: ["api"] })).toMatchObject({
      files_seen: 1,
      files_unchanged: 1,
    });
    rmSync(path.join(folder, "code/api/.aider.chat.history.md"));
    expect(await dataOf(legacy, { ids: ["aider-code-api"] })).toMatchObject({ files_removed: 1 });
  });

  test("through MCP an Aider history is closed as every dot file is, unless a root names it, and what lies elsewhere is not even named", async () => {
    const project = writeFiles(realpathSync(temporaryFolder()), { ".aider.chat.history.md": aider("projectwords") });
    writeFiles(folder, { "secret-project/.aider.chat.history.md": aider("secretwords") });
    const through = { origin: { door: "mcp", folder: project } } as const;
    const closed = await listed({ providers: ["aider"] }, through);
    expect(closed.sources).toEqual([]);
    expect(closed.errors).toEqual([]);
    const file = path.join(project, ".aider.chat.history.md");
    const opened = { ...through, config: { pack: { roots: [file] } } };
    expect((await listed({ providers: ["aider"] }, opened)).sources).toMatchObject([{ provider: "aider", path: file }]);
    expect(await run(legacy, { ids: ["aider"] }, { home, ...opened })).toMatchObject({ data: { files_ingested: 1 } });
    expect(await run(legacy, { ids: ["aider"] }, { home, ...through })).toMatchObject({ ending: "failed" });
  });

  test("lines that could not be read are counted and named", async () => {
    writeFiles(folder, {
      ".claude/projects/p/one.jsonl": [
        said("user", "first words"),
        "{broken",
        "",
        said("user", "last words"),
        '{"half": ',
      ].join("\n"),
      ".claude/projects/p/none.jsonl": "not json\n",
      "data.jsonl": '{"a":1}\nnope\n{"b":2}\nnope\n',
    });
    await dataOf(discover);
    const file = (name: string) => path.join(folder, name);
    const taken = await dataOf(legacy, { ids: ["claude-code"] });
    expect(taken).toMatchObject({ files_ingested: 1, skip_reasons: { "no text": 1 }, lines_unreadable: 3 });
    expect([...(taken.unreadable as string[])].sort()).toEqual(
      [
        `${file(".claude/projects/p/none.jsonl")}:1`,
        `${file(".claude/projects/p/one.jsonl")}:2`,
        `${file(".claude/projects/p/one.jsonl")}:5`,
      ].sort(),
    );
    expect(await found("last words")).toEqual([".claude/projects/p/one.jsonl"]);
    expect(await dataOf(sources, { paths: [file("data.jsonl")] })).toMatchObject({
      lines_unreadable: 2,
      unreadable: [`${file("data.jsonl")}:2`],
    });
    writeFiles(folder, { ".claude/projects/p/many.jsonl": `${"x\n".repeat(250)}${said("user", "after all")}` });
    const many = await dataOf(legacy, { ids: ["claude-code/p/many"] });
    expect([many.lines_unreadable, (many.unreadable as string[]).length]).toEqual([250, 100]);
  });
});
