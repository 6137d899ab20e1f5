import {
  appendFileSync,
  existsSync,
  globSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { strToU8, zipSync } from "fflate";
import { beforeEach, describe, expect, test } from "vitest";
import { defaultLimits } from "../../commands/_pack/limits.ts";
import { openReach, type Reach } from "../../commands/_pack/reach.ts";
import reset from "../../commands/database/reset.ts";
import { type EngineName, transformBytes } from "../../commands/transform/_engines.ts";
import { Source } from "../../commands/transform/_source.ts";
import batch from "../../commands/transform/batch.ts";
import cache from "../../commands/transform/cache.ts";
import transform from "../../commands/transform/index.ts";
import info from "../../commands/transform/info.ts";
import list from "../../commands/transform/list.ts";
import type { Steps } from "../../src/command/context.ts";
import { Cancelled } from "../../src/errors.ts";
import { anywhere, inSession, openRoots } from "../fixtures/pack/reaches.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { readDocumentsHere } from "../helpers/read-here.ts";
import { run } from "../helpers/run.ts";

readDocumentsHere();

let home: string;
let folder: string;

beforeEach(() => {
  home = temporaryFolder();
  folder = temporaryFolder();
});

async function dataOf(
  command: Parameters<typeof run>[0],
  input: object = {},
  options: Parameters<typeof run>[2] = {},
): Promise<Record<string, unknown>> {
  const outcome = await run(command, input, { home, ...options });
  if (outcome.ending !== "completed") throw new Error(outcome.message);
  return outcome.data as Record<string, unknown>;
}

const made = (name: string, content: string | Uint8Array, input: object = {}) => {
  writeFileSync(path.join(folder, name), content);
  return dataOf(transform, { file: path.join(folder, name), ...input });
};

const textOf = async (engine: EngineName, content: string | Uint8Array, name = "file") =>
  (
    await transformBytes(engine, {
      bytes: Buffer.from(content),
      name,
      options: { links: false },
      limits: defaultLimits,
    })
  ).text;

const keptFiles = () => globSync("cache/transform/*/*", { cwd: home });

/** A PDF of one line a page, as small as the format allows. */
function makePdf(pages: readonly string[], title = ""): Buffer {
  const kids = pages.map((_, at) => `${4 + at * 2} 0 R`).join(" ");
  const objects = [
    `<</Type/Catalog/Pages 2 0 R>>`,
    `<</Type/Pages/Kids[${kids}]/Count ${pages.length}>>`,
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
  ];
  for (const [at, text] of pages.entries()) {
    const stream = `BT /F1 18 Tf 20 100 Td (${text}) Tj ET`;
    objects.push(
      `<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 144]/Contents ${5 + at * 2} 0 R/Resources<</Font<</F1 3 0 R>>>>>>`,
    );
    objects.push(`<</Length ${stream.length}>>\nstream\n${stream}\nendstream`);
  }
  objects.push(`<</Title(${title})>>`);
  let out = "%PDF-1.4\n";
  const places = objects.map((object, at) => {
    const place = out.length;
    out += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(place).padStart(10, "0")} 00000 n \n`;
  });
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${places.join("")}`;
  return Buffer.from(
    `${out}${table}trailer<</Size ${objects.length + 1}/Root 1 0 R/Info ${objects.length} 0 R>>\nstartxref\n${out.length}\n%%EOF\n`,
  );
}

function makeDocx(body: string, parts: Record<string, string> = {}): Uint8Array {
  const document = `<?xml version="1.0"?><w:document xmlns:w="x"><w:body>${body}</w:body></w:document>`;
  return zipSync(
    Object.fromEntries(
      Object.entries({ "word/document.xml": document, ...parts }).map(([name, text]) => [name, strToU8(text)]),
    ),
  );
}

describe("the engines", () => {
  test("text is decoded by its byte order mark, as UTF-8, or as Windows-1252", async () => {
    expect(await textOf("text", "a\r\nb\rç")).toBe("a\nb\nç");
    expect(await textOf("text", Buffer.from("\ufeffaç", "utf16le"))).toBe("aç");
    expect(await textOf("text", Buffer.from("\ufeffaç"))).toBe("aç");
    expect(await textOf("text", Buffer.from([0x61, 0xe7, 0x80]))).toBe("aç€");
    await expect(textOf("text", Buffer.from([1, 0, 2]))).rejects.toThrow("it is binary, not text");
  });

  test("markdown loses its front matter and comments, and keeps the rest", async () => {
    expect(await made("a.md", "---\ntitle: T\ntags: [x]\n---\n# H\n\ntext <!-- no --> more\n")).toMatchObject({
      engine: "markdown",
      title: "T",
      text: "# H\n\ntext  more\n",
      facts: { headings: 1, tags: "x" },
    });
  });

  test("html becomes what a reader sees", async () => {
    const page =
      "<html><head><title> A  page</title><style>p{}</style></head><body><h2>One &amp; two</h2><p>Some <b>bold</b>\n words.<script>x()</script></p>" +
      "<ul><li>first</li><li><a href='https://x.org'>second</a></ul><table><tr><td>a</td><td>b</td></tr></table><pre>x\n  y</pre></body>";
    expect(await made("a.html", page)).toMatchObject({
      engine: "html",
      title: "A page",
      text: "## One & two\n\nSome bold words.\n\n- first\n- second\n\n| a | b\n\nx\n  y\n",
    });
    expect((await made("a.html", page, { links: true })).text).toContain("- second (https://x.org)");
  });

  test("hostile pages and notes take one pass", async () => {
    const startedAt = performance.now();
    for (const piece of ["<b>x</b>", "<!--", "<p>x", "&amp", "<td>", "<br>"])
      await textOf("html", piece.repeat(20_000));
    for (const piece of ["<!--", "<!-- -->", "-->"]) await textOf("markdown", piece.repeat(20_000));
    for (const piece of ['"', '"",\n', ",\n", "\n"]) await textOf("csv", piece.repeat(40_000));
    for (const piece of ["<ul><li>", "<head>", "<div>"])
      await expect(textOf("html", piece.repeat(20_000))).rejects.toThrow("nested more than 2000 deep");
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(await textOf("html", "<head><title>t</title><body><p>seen")).toBe("seen\n");
    // A name that stands on every line must not make a large text of a small file.
    expect(await textOf("csv", `${"h".repeat(20_000)}\n${"a\n".repeat(5_000)}`)).toHaveLength(
      5_000 * (200 + ": a\n".length),
    );
    const wide = JSON.stringify({ ["k".repeat(200_000)]: Array.from({ length: 1_000 }, () => 1) });
    await expect(textOf("json", wide, "a.json")).rejects.toThrow(
      "its text has more than 32 MB; the setting pack.textMb allows more",
    );
  });

  test("pdf gives the text of its pages", async () => {
    const pdf = makePdf(["Hello from page one", "and two"], "A title");
    expect(await made("a.pdf", pdf)).toMatchObject({
      engine: "pdf",
      title: "A title",
      text: "Hello from page one\n\nand two\n",
      facts: { pages: 2, pages_with_text: 2 },
    });
    expect(await made("no-ending", pdf)).toMatchObject({ engine: "pdf", cached: true });
    await expect(textOf("pdf", "not a pdf")).rejects.toThrow(/could not be read as pdf: Invalid PDF/);
    await expect(made("bad.pdf", "not a pdf")).rejects.toThrow(/ was not transformed: .*[^.]\.$/);
  });

  test("docx gives headings, lists, tables and links, and no deleted passages", async () => {
    const paragraph = (text: string, properties = "") =>
      `<w:p><w:pPr>${properties}</w:pPr><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`;
    const body =
      paragraph("Top", '<w:pStyle w:val="Heading1"/>') +
      paragraph("Some &lt;words&gt;") +
      paragraph("item", "<w:numPr/>") +
      `<w:tbl><w:tr><w:tc>${paragraph("a")}</w:tc><w:tc>${paragraph("b")}</w:tc></w:tr></w:tbl>` +
      '<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:hyperlink r:id="r1"><w:r><w:t>here</w:t></w:r></w:hyperlink></w:p>';
    const docx = makeDocx(body, {
      "docProps/core.xml": "<c><dc:title>Report</dc:title></c>",
      "word/_rels/document.xml.rels": '<R><Relationship Id="r1" Target="https://x.org" TargetMode="External"/></R>',
    });
    expect(await made("a.docx", docx)).toMatchObject({
      engine: "docx",
      title: "Report",
      text: "# Top\n\nSome <words>\n\n- item\n\na | b\n\nhere\n",
    });
    expect((await made("a.docx", docx, { links: true })).text).toContain("here (https://x.org)");
    await expect(textOf("docx", zipSync({ "other.xml": strToU8("x") }))).rejects.toThrow("it holds no Word document");
    await expect(textOf("docx", "no zip")).rejects.toThrow(/it is no zip archive/);
  });

  test("csv names every value by its column, whatever the delimiter and the quotes", async () => {
    expect(await textOf("csv", 'name,quote\nAda,"a ""b"", c\nd"\n\nBob,\n')).toBe(
      'name: Ada; quote: a "b", c d\nname: Bob; quote: \n',
    );
    expect(await textOf("csv", "a;b\r\n1;2\r\n3;4;5")).toBe("a: 1; b: 2\na: 3; b: 4; column 3: 5\n");
    expect(await textOf("csv", 'a\tb\n"never closed')).toBe("a: never closed\n");
    expect(await textOf("csv", "")).toBe("");
    expect(await made("one.csv", 'Ada,"first  programmer",1815\n')).toMatchObject({
      text: "Ada; first programmer; 1815\n",
      facts: { rows: 0, columns: 3 },
    });
  });

  test("json names every value by its path; JSON Lines are documents of their own", async () => {
    expect(await textOf("json", '{"a":{"b":[1,"x"]},"c":null}')).toBe("a.b[0]: 1\na.b[1]: x\nc: null\n");
    expect(await textOf("json", '{"a":1}\n\n{"a":2}\n', "x.jsonl")).toBe("[0].a: 1\n[1].a: 2\n");
    await expect(textOf("json", "\n{", "x.jsonl")).rejects.toThrow(/no valid JSON in line 2/);
  });

  test("json keeps the digits of numbers that a double cannot hold", async () => {
    const numbers =
      '{"id":12345678901234567890,"few":1.5,"many":0.12345678901234567890,"huge":1e400,"text":"12345678901234567890"}';
    const told =
      "id: 12345678901234567890\nfew: 1.5\nmany: 0.12345678901234567890\nhuge: 1e400\ntext: 12345678901234567890\n";
    expect(await textOf("json", numbers)).toBe(told);
    expect(await textOf("json", "12345678901234567890\n", "x.jsonl")).toBe("[0]: 12345678901234567890\n");
    // Also where a value is told as JSON, because it lies too deep for a path.
    expect(await textOf("json", `${"[".repeat(66)}12345678901234567890${"]".repeat(66)}`)).toContain(
      ": [[12345678901234567890]]\n",
    );
  });

  test("a damaged line of JSON Lines, or one that is cut off, is counted and costs no other", async () => {
    expect(await made("a.jsonl", '{"a":1}\n{"a":\n{"a":3}\n{"a":4,"b')).toMatchObject({
      text: "[0].a: 1\n[1].a: 3\n",
      facts: { documents: 2, values: 2, bad_lines: 2, first_bad_line: 2 },
    });
    expect((await made("b.jsonl", '{"a":1}\n')).facts).toEqual({ documents: 1, values: 1 });
  });

  test("json that is nested without end is refused in words", async () => {
    const nested = (inside: string) => `${"[".repeat(200_000)}${inside}${"]".repeat(200_000)}`;
    await expect(textOf("json", nested("1"))).rejects.toThrow(/^its values are nested too deep; /);
    await expect(textOf("json", nested("12345678901234567890"))).rejects.toThrow(/^its values are nested too deep; /);
  });

  test("code is kept, with its language", async () => {
    expect(await made("a.py", "def f():\n\tpass\n")).toMatchObject({
      engine: "code",
      text: "def f():\n\tpass\n",
      facts: { language: "py", lines: 2 },
    });
  });

  test("list and info describe them all", async () => {
    const { engines } = (await dataOf(list)) as { engines: { engine: string; endings: string[] }[] };
    expect(engines.map(({ engine }) => engine)).toEqual([
      "text",
      "markdown",
      "html",
      "pdf",
      "docx",
      "csv",
      "json",
      "code",
    ]);
    const endings = engines.flatMap((engine) => engine.endings);
    expect(new Set(endings).size).toBe(endings.length);
    await made("a.txt", "x");
    expect(await dataOf(info, { engine: "text" })).toMatchObject({
      engine: "text",
      cached_entries: 1,
      cached_bytes: 1,
      library: "none",
    });
  });
});

describe("transform", () => {
  test("the same content is transformed once, under whatever name; other options are another text", async () => {
    expect(await made("a.txt", "same")).toMatchObject({ cached: false, title: "a.txt" });
    expect(await made("b.txt", "same")).toMatchObject({ cached: true, title: "b.txt", text: "same" });
    expect(await made("b.txt", "same", { engine: "code" })).toMatchObject({ cached: false });
    expect(await made("b.txt", "other")).toMatchObject({ cached: false });
    expect(await made("a.json", "[1]")).toMatchObject({ cached: false, text: "[0]: 1\n" });
    expect(await made("a.jsonl", "[1]")).toMatchObject({ cached: false, text: "[0][0]: 1\n" });
    expect(keptFiles()).toHaveLength(5);
  });

  test("a cached text that was damaged or removed is made again", async () => {
    const { cache_file } = (await made("a.txt", "whole")) as { cache_file: string };
    expect(statSync(cache_file).mode & 0o777).toBe(0o600);
    appendFileSync(cache_file, "x");
    expect(await made("a.txt", "whole")).toMatchObject({ cached: false, text: "whole" });
    rmSync(cache_file);
    expect(await made("a.txt", "whole")).toMatchObject({ cached: false, text: "whole" });
    expect(await made("a.txt", "whole")).toMatchObject({ cached: true });
  });

  test("above its limit, the cache lets go of what was unused longest", async () => {
    await dataOf(cache, { limit_mb: 1 });
    const big = (letter: string) => letter.repeat(400 * 1024);
    const first = await made("1.txt", big("a"), { max_characters: 0 });
    await made("2.txt", big("b"), { max_characters: 0 });
    expect(existsSync(first.cache_file as string)).toBe(true);
    await made("3.txt", big("c"), { max_characters: 0 });
    expect(existsSync(first.cache_file as string)).toBe(false);
    expect(await dataOf(cache)).toMatchObject({ entries: 2, bytes: 800 * 1024, limit_bytes: 1024 * 1024 });
    expect(await made("4.txt", "d".repeat(2 * 1024 * 1024))).toMatchObject({
      cache_file: null,
      is_truncated: true,
      characters: 2 * 1024 * 1024,
    });
  });

  test("files that no row knows are swept once they are old", async () => {
    const { cache_file } = (await made("a.txt", "x")) as { cache_file: string };
    const orphan = path.join(path.dirname(cache_file), "orphan.txt");
    writeFileSync(orphan, "left by a run that was killed");
    expect(await dataOf(cache)).toMatchObject({ removed: 0 });
    utimesSync(orphan, 1, 1);
    expect(await dataOf(cache)).toMatchObject({ removed: 1 });
    expect(keptFiles()).toHaveLength(1);
  });

  test("a reset of the database takes the texts along, and leaves the limit", async () => {
    await dataOf(cache, { limit_mb: 7 });
    const { cache_file } = (await made("a.txt", "x")) as { cache_file: string };
    await made("b.txt", "y");
    const draft = `${cache_file}.1.draft`;
    writeFileSync(draft, "somebody is writing this");
    const answer = { ask: async () => ({ action: "accept", content: { confirm: true } }) as const };
    expect(await dataOf(reset, { domain: "transform" }, { door: answer })).toMatchObject({
      deleted_count: 2,
      files_removed: 2,
    });
    expect(keptFiles()).toEqual([path.relative(home, draft)]);
    expect(await dataOf(cache)).toMatchObject({ entries: 0, bytes: 0, limit_bytes: 7 * 1024 * 1024, removed: 0 });
    expect(await made("a.txt", "x")).toMatchObject({ cached: false, cache_file });
    expect(await dataOf(reset, { domain: "all" }, { door: answer })).toMatchObject({ files_removed: 1 });
  });

  test("a long text is cut between characters, and lies whole in the cache", async () => {
    const data = await made("a.txt", `${"x".repeat(9)}😀end`, { max_characters: 10 });
    expect(data).toMatchObject({ text: "x".repeat(9), is_truncated: true, characters: 14 });
    expect(readFileSync(data.cache_file as string, "utf8")).toBe(`${"x".repeat(9)}😀end`);
  });

  test("what cannot be transformed is refused in one sentence that names the file", async () => {
    writeFiles(folder, { "a.bin": "a\0b", "a.json": "{" });
    symlinkSync("/etc/hostname", path.join(folder, "out.txt"));
    for (const [file, sentence] of [
      ["a.bin", /`file` .*a\.bin was not transformed: it is binary, and no engine knows its ending; choose one/],
      ["a.json", /a\.json was not transformed: it is no valid JSON/],
      ["none.txt", /none\.txt is not there; check the path/],
      [".", /is no file; transform batch takes many/],
      [
        "out.txt",
        /out\.txt lies outside the folders that are open to MCP clients \(.*\); a person can open it with the setting `pack\.roots`/,
      ],
    ] as const)
      expect(
        await run(transform, { file: path.join(folder, file) }, { home, origin: { door: "mcp", folder } }),
      ).toMatchObject({
        ending: "failed",
        message: expect.stringMatching(sentence),
      });
  });

  test("a file that a link has taken the place of is not read, where the link leads out of reach", () => {
    const outside = writeFiles(temporaryFolder(), {
      "theirs.txt": "secret",
      "d/theirs.txt": "secret",
      ".hidden/a.txt": "secret",
      "server.key": "secret",
    });
    symlinkSync(path.join(outside, "theirs.txt"), path.join(folder, "a.txt"));
    symlinkSync(path.join(outside, "d"), path.join(folder, "d"));
    const read = (reach: Reach, name: string) => {
      const source = new Source(Buffer.from(path.join(folder, name)), { maxBytes: 1_000, reach });
      source.close();
      return source.head.toString();
    };
    for (const name of ["a.txt", "d/theirs.txt"])
      expect(() => read(openReach(inSession(folder)), name)).toThrow(
        "it lies outside the folders that are open to MCP clients",
      );
    const wider = { ...openRoots(outside), home };
    expect(read(openReach(wider), "a.txt")).toBe("secret");
    symlinkSync(path.join(outside, ".hidden"), path.join(folder, "plain"));
    expect(() => read(openReach(wider), "plain/a.txt")).toThrow("it has a name that begins with a dot");
    symlinkSync(path.join(outside, "server.key"), path.join(folder, "plain.txt"));
    expect(() => read(openReach(wider), "plain.txt")).toThrow("it has the name of a key");
    expect(read(anywhere, "plain/a.txt")).toBe("secret");
  });

  test("a file that grows while it is read is not taken for whole", () => {
    // Its size is said to be 0, and there is more to read: as with a file that somebody writes to.
    const read = () => new Source(Buffer.from("/proc/self/status"), { maxBytes: 1_000, reach: anywhere });
    expect(read).toThrow("it changed while it was read; the next run takes it");
  });
});

describe("transform batch", () => {
  /** What a task keeps of its steps, for a second attempt. */
  function rememberSteps(): Steps & { readonly kept: Map<string, string> } {
    const kept = new Map<string, string>();
    return {
      kept,
      get: (name) => kept.get(name),
      keep: async (name, json) => void kept.set(name, json),
      all: () => [...kept],
    };
  }

  test("takes what the glob means, tells what failed, and answers from the cache the second time", async () => {
    writeFiles(folder, {
      "a.md": "# A",
      "sub/b.md": "# B",
      "sub/c.txt": "c",
      "sub/bad.json": "{",
      ".hidden/d.md": "# D",
      "node_modules/e.md": "# E",
    });
    const glob = `${folder}/**/*.{md,json}`;
    expect(await dataOf(batch, { glob })).toMatchObject({
      files_matched: 3,
      files_transformed: 2,
      files_cached: 0,
      characters: 6,
      errors_total: 1,
    });
    expect(await dataOf(batch, { glob })).toMatchObject({
      files_matched: 3,
      files_transformed: 0,
      files_cached: 2,
      errors_total: 1,
    });
    expect(await dataOf(batch, { glob: `${folder}/sub/?.txt` })).toMatchObject({ files_matched: 1 });
    expect(await dataOf(batch, { glob: `${folder}/a.md` })).toMatchObject({ files_matched: 1, files_cached: 1 });
    expect(await run(batch, { glob, limit: 2 }, { home })).toMatchObject({
      message: "`glob` means more than 2 files; narrow it, or raise `limit`.",
    });
    expect(await run(batch, { glob: `${folder}/none/*.md` }, { home })).toMatchObject({
      message: expect.stringMatching(/which is no folder/),
    });
  });

  test("an attempt after a crash goes on at the step where the first one stopped", async () => {
    writeFiles(
      folder,
      Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`f${String(at).padStart(2, "0")}.txt`, `text ${at}`])),
    );
    const steps = rememberSteps();
    const stop = new AbortController();
    const progress = ({ done }: { done?: number }) => (done ?? 0) >= 30 && stop.abort(new Cancelled());
    const first = await run(
      batch,
      { glob: `${folder}/*.txt` },
      { home, steps, signals: [stop.signal], door: { progress } },
    );
    expect(first.ending).toBe("cancelled");
    expect([...steps.kept.keys()]).toEqual(["list", "hidden", "files 1"]);
    // Neither the files of a finished step nor new ones are looked at again.
    rmSync(path.join(folder, "f00.txt"));
    writeFiles(folder, { "new.txt": "x" });
    expect(await dataOf(batch, { glob: `${folder}/*.txt` }, { steps })).toMatchObject({
      files_matched: 50,
      files_transformed: 40,
      files_cached: 10,
      errors_total: 0,
    });
  });
});
