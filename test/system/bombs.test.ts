import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  endlessPdf,
  laughingNote,
  packedLetters,
  packedPdf,
  recursivePdf,
  selfContainedPdf,
  zip,
} from "../fixtures/pack/bombs.ts";
import { killDaemons } from "../helpers/daemon.ts";
import { cleanUp, shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { cases } from "../helpers/long.ts";
import { codeCache, executable, runMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { overPipes, resultOf, WireClient } from "../helpers/wire.ts";

/**
 * All processes together, while a document does its worst: two readers of at most 192 MB, the daemon and two fronts. What
 * they share (Node's own code, in every one of them) counts for nobody, and what is left of the 600 is what a reader
 * takes between two looks of its watch.
 */
const maxMb = 600;
/** It is a few milliseconds; whoever had to wait for a document could wait for the minute that it may take. */
const maxPingMs = 20_000;
/** It is a few milliseconds, too; without the cancel it would be as long as a document may take. */
const maxCancelMs = 30_000;

interface Place {
  readonly folder: string;
  readonly home: string;
}

function openPlace(pack: object = {}): Place {
  const folder = temporaryFolder();
  const home = path.join(temporaryFolder(), "home");
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(path.join(home, "config.json"), JSON.stringify({ pack }), { mode: 0o600 });
  cleanUp(() => killDaemons(home));
  return { folder, home };
}

/**
 * A server as a host starts it, with two sessions: one that works, and one that only wants to know that the server is
 * there.
 */
async function openServer() {
  const place = openPlace();
  const connect = async () => {
    const env = {
      ...process.env,
      NODE_COMPILE_CACHE: codeCache,
      MEANWHILE_HOME: place.home,
      MEANWHILE_PACK_ROOTS: place.folder,
      ACME_API_KEY: "secret",
    };
    // Without the room that other tests give a start: memory is what is measured here.
    const front = spawn(process.execPath, [executable, "serve"], { cwd: place.folder, env });
    front.stderr.resume();
    const client = new WireClient(overPipes(front), { revision: "2025-11-25" });
    cleanUp(() => client.close());
    await client.begin();
    return { client, pid: front.pid ?? 0 };
  };
  const [worker, other] = [await connect(), await connect()];
  const daemon = await waitFor(() => daemonsOf(place.home)[0]);
  return { ...place, client: worker.client, other: other.client, daemon, fronts: [worker.pid, other.pid] };
}

const server = shareAmongTests(openServer);

/** The daemon has a record; it is nobody's child. */
function daemonsOf(home: string): number[] {
  const folder = path.join(home, "run");
  const records = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  return records.map((name) => (JSON.parse(readFileSync(path.join(folder, name), "utf8")) as { pid: number }).pid);
}

/** The processes that read documents. */
function readersOf(pid: number): number[] {
  const text = readQuietly(`/proc/${pid}/task/${pid}/children`);
  return text.split(" ").filter(Boolean).map(Number);
}

/** What a process has in memory of its own, in megabytes: what is resident, less what it shares with others. */
function ownMbOf(pid: number): number {
  const [, resident = 0, shared = 0] = readQuietly(`/proc/${pid}/statm`).split(" ").map(Number);
  return ((resident - shared) * 4096) / 1024 / 1024;
}
const isRunning = (pid: number) =>
  readQuietly(`/proc/${pid}/statm`).split(" ")[1] !== undefined &&
  !/^State:\s+[ZX]/m.test(readQuietly(`/proc/${pid}/status`));

function readQuietly(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // It has ended.
  }
}

/** Looks at the memory of all, and asks after the server's health over and over, until the work is done. */
async function watched<T>(work: Promise<T>): Promise<{ result: T; peakMb: number; pings: number[] }> {
  const { daemon, fronts, other } = await server();
  let peakMb = 0;
  let isDone = false;
  const pings: number[] = [];
  const look = setInterval(() => {
    const all = [...fronts, daemon, ...readersOf(daemon)];
    peakMb = Math.max(
      peakMb,
      all.reduce((sum, pid) => sum + ownMbOf(pid), 0),
    );
  }, 20);
  const done = work.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const startedAt = performance.now();
    await other.request("ping");
    pings.push(performance.now() - startedAt);
    await Promise.race([done.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, 10))]);
  }
  clearInterval(look);
  return { result: await done, peakMb, pings: pings.sort((a, b) => a - b) };
}

/** Calls a tool, and holds the server to what everybody else may expect of it meanwhile. */
async function callWatched(
  tool: string,
  input: object,
): Promise<{ text: string; data: Record<string, unknown> | undefined }> {
  const { client } = await server();
  const { result, peakMb, pings } = await watched(client.call(tool, input));
  if (process.env.MEANWHILE_TEST_FIGURES === "1")
    console.info(
      `${tool} ${JSON.stringify(input).slice(-40)}: ${Math.round(peakMb)} MB, ping median ${pings[pings.length >> 1]?.toFixed(1)} ms, most ${pings.at(-1)?.toFixed(1)} ms`,
    );
  expect(peakMb, "megabytes of all processes").toBeLessThan(maxMb);
  expect(pings[pings.length >> 1], "half of the pings, in milliseconds").toBeLessThan(maxPingMs);
  const envelope = result.structuredContent as
    | { data?: Record<string, unknown>; messages?: { text: string }[] }
    | undefined;
  return { text: JSON.stringify(result.content), data: envelope?.data };
}

async function transformed(name: string, content: Buffer | string, input: object = {}) {
  const { folder } = await server();
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return await callWatched("transform", { file, max_characters: 20, ...input });
}

const word = deflateRawSync(Buffer.from("<w:document><w:p><w:r><w:t>hello</w:t></w:r></w:p></w:document>"));
const sixty = packedLetters(60);
const claimed = 60 * 1024 * 1024;
const byMemory = "reading it takes more than 192 MB of memory; the setting pack.memoryMb allows more.";

/** What it is called, the file, and what is said of it. */
const refused: [title: string, name: string, make: () => Buffer | string, sentence: string, input?: object][] = [
  ["a PDF of 2 kB that unpacks to half a gigabyte", "packed.pdf", () => packedPdf(512), byMemory],
  [
    "a PDF with more pages than any book",
    "pages.pdf",
    () => endlessPdf(20_000),
    "it has more than 10000 pages; the setting pack.documentParts allows more.",
  ],
  ["a PDF whose objects lie in themselves", "self.pdf", selfContainedPdf, "it could not be read as pdf: "],
  [
    "a DOCX of 40 entries over one stream",
    "forty.docx",
    () =>
      zip(
        Array.from({ length: 40 }, (_, at) => ({
          name: "word/document.xml",
          packed: sixty,
          claimed,
          ...(at > 0 && { sharesBytes: true }),
        })),
      ),
    "two of the files inside have the same name.",
  ],
  [
    "a DOCX whose files share their bytes",
    "shared.docx",
    () =>
      zip(
        ["word/document.xml", "docProps/core.xml"].map((name, at) => ({
          name,
          packed: sixty,
          claimed,
          ...(at > 0 && { sharesBytes: true }),
        })),
      ),
    "files inside share the same bytes.",
  ],
  [
    "a DOCX that unpacks to more than it says",
    "lie.docx",
    () => zip([{ name: "word/document.xml", packed: packedLetters(200), claimed: 10 }]),
    "it unpacks to more than 32 MB; the setting pack.unpackedMb allows more.",
  ],
  [
    "a DOCX whose parts are too much together",
    "sum.docx",
    () => zip(["word/document.xml", "docProps/core.xml"].map((name) => ({ name, packed: packedLetters(20) }))),
    "it unpacks to more than 32 MB; the setting pack.unpackedMb allows more.",
  ],
  [
    "a DOCX of 20,000 files",
    "many.docx",
    () => zip(Array.from({ length: 20_000 }, (_, at) => ({ name: `f${at}`, packed: Buffer.alloc(0) }))),
    "it has more than 10000 files inside; the setting pack.documentParts allows more.",
  ],
  [
    "an XLSX, which no engine reads",
    "table.xlsx",
    () => zip([{ name: "xl/workbook.xml", packed: word }]),
    "it is binary, and no engine knows its ending; ",
  ],
  [
    "an HTML nested 200,000 deep",
    "deep.html",
    () => "<div>".repeat(200_000),
    "its elements are nested more than 2000 deep.",
  ],
  [
    "a CSV of 10 million columns",
    "columns.csv",
    () => ",".repeat(10_000_000),
    "it has more than 10000 columns; the setting pack.documentParts allows more.",
  ],
  ["a CSV whose quote is never closed, 100 MB long", "quote.csv", unclosedCsv, byMemory, { max_mb: 128 }],
  [
    "a CSV that would be written out at length",
    "wide.csv",
    wideCsv,
    "its text has more than 32 MB; the setting pack.textMb allows more.",
  ],
  ["a JSON of 50 MB of [", "deep.json", () => Buffer.alloc(50_000_000, "["), byMemory],
  [
    "a JSON nested 200,000 deep",
    "nested.json",
    () => `${"[".repeat(200_000)}1${"]".repeat(200_000)}`,
    "its values are nested too deep; ",
  ],
];

/** 100 MB, and a quote at the beginning of the second line. */
function unclosedCsv(): Buffer {
  const text = Buffer.alloc(100_000_000, "x\n");
  text.write('a,b\n"');
  return text;
}

/** 500 names on each of 10,000 lines, and nothing but commas below them. */
function wideCsv(): string {
  return `${Array.from({ length: 500 }, (_, at) => `column_${at}`).join(",")}\n${`${",".repeat(499)}\n`.repeat(10_000)}`;
}

describe("a document that is a bomb is refused in one sentence, and nobody else notices", () => {
  // Every day each limit is reached by one document.
  test.for(cases(refused, 0, 1, 2, 3, 5, 7, 8, 9, 10, 12, 14))("%s", async ([_title, name, make, sentence, input]) => {
    const { text } = await transformed(name, make(), input);
    expect(text).toContain(`${name} was not transformed: ${sentence}`);
  });

  test.each([
    ["a PDF whose forms draw one another without end", "forms.pdf", recursivePdf],
    ["an HTML of 5 MB of <", "open.html", () => "<".repeat(5_000_000)],
    ["a Markdown note whose front matter multiplies itself", "laughs.md", laughingNote],
    [
      "a Markdown note with front matter nested 10,000 deep",
      "deep.md",
      () => `---\n${"[".repeat(10_000)}\n---\n# Still a note\n`,
    ],
  ])("%s is read as far as there is something to read", async (_title, name, make) => {
    const { data } = await transformed(name, make());
    expect(data).toMatchObject({ source: expect.stringContaining(name), characters: expect.any(Number) });
  });

  test("one of them costs no other document of a batch, an ingest or a vault", async () => {
    const { folder } = await server();
    const notes = path.join(folder, "notes");
    mkdirSync(notes);
    const files = {
      "a.md": "# A\n[[b]]",
      "b.md": "# B",
      "links.md": "[[a]]".repeat(20_000),
      "packed.pdf": packedPdf(512),
      "c.json": '{"c":1}',
    };
    for (const [name, content] of Object.entries(files)) writeFileSync(path.join(notes, name), content);
    const batch = await callWatched("transform_batch", { glob: `${notes}/*` });
    expect(batch.data).toMatchObject({
      files_transformed: 4,
      errors_total: 1,
      errors: [{ reason: byMemory.slice(0, -1) }],
    });
    const ingest = await callWatched("ingest_sources", { paths: [notes] });
    expect(ingest.data).toMatchObject({
      files_ingested: 4,
      errors_total: 1,
      errors: [{ reason: byMemory.slice(0, -1) }],
    });
    const vault = await callWatched("vault_index", { path: notes });
    expect(vault.data).toMatchObject({
      errors_total: 1,
      errors: [{ reason: "it has more than 10000 links; the setting pack.documentParts allows more" }],
    });
    expect((await callWatched("vault_links", { note: "b" })).data).toMatchObject({ total: 1 });
  });

  test("a text of many megabytes is made searchable, a little at a time", async () => {
    const { folder } = await server();
    const file = path.join(folder, "long.txt");
    writeFileSync(file, "Some words of which there are many, one after the other.\n".repeat(150_000));
    expect((await callWatched("ingest_sources", { paths: [file], chunk_size: 2_000 })).data).toMatchObject({
      files_ingested: 1,
      errors_total: 0,
    });
  });

  test("two at a time stay within the same bounds, and a third document is read meanwhile", async () => {
    const { client, folder } = await server();
    for (const name of ["one.pdf", "two.pdf"]) writeFileSync(path.join(folder, name), packedPdf(512));
    writeFileSync(path.join(folder, "small.txt"), "small");
    const { result, peakMb, pings } = await watched(
      Promise.all(
        ["one.pdf", "two.pdf", "small.txt"].map((name) => client.call("transform", { file: path.join(folder, name) })),
      ),
    );
    expect(result.map(({ isError }) => isError === true)).toEqual([true, true, false]);
    if (process.env.MEANWHILE_TEST_FIGURES === "1")
      console.info(`two at a time: ${Math.round(peakMb)} MB, ping most ${pings.at(-1)?.toFixed(1)} ms`);
    expect(peakMb).toBeLessThan(maxMb);
  });
});

describe("the process that reads a document", () => {
  test("is ended at once by a cancel, and has no secrets", async () => {
    const { client, daemon, folder } = await server();
    writeFileSync(path.join(folder, "endless.pdf"), endlessPdf(9_000));
    const { id } = client.startCall("transform", { file: path.join(folder, "endless.pdf") });
    const reader = await busyReader(daemon);
    const names = readQuietly(`/proc/${reader}/environ`)
      .split("\0")
      .map((entry) => entry.split("=")[0]);
    expect(
      names.filter(
        (name) => name !== "" && !["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "NODE_COMPILE_CACHE"].includes(name ?? ""),
      ),
    ).toEqual([]);
    const startedAt = performance.now();
    client.cancel(id);
    await waitFor(() => !isRunning(reader));
    const tookMs = performance.now() - startedAt;
    if (process.env.MEANWHILE_TEST_FIGURES === "1") console.info(`cancel: ${tookMs.toFixed(0)} ms`);
    expect(tookMs).toBeLessThan(maxCancelMs);
    // The next document gets another.
    writeFileSync(path.join(folder, "next.txt"), "next");
    expect(
      resultOf(await client.startCall("transform", { file: path.join(folder, "next.txt") }).answer).isError,
    ).not.toBe(true);
  });

  test("ends with the server, also when that is killed and the document keeps it busy", async () => {
    const { client, daemon, folder } = await openServer();
    // Code that is never closed, each time with another mark: one look to the end for each, and not a moment for
    // anything else.
    const note = Array.from({ length: 5_000 }, (_, at) => "`".repeat(at)).join(" ");
    writeFileSync(path.join(folder, "busy.md"), note);
    client.startCall("transform", { file: path.join(folder, "busy.md") });
    const reader = await busyReader(daemon);
    process.kill(daemon, "SIGKILL");
    await waitFor(
      () => !isRunning(reader),
      () => "the process that reads went on",
      25_000,
    );
  });

  test("has as long as the setting says, in a terminal too", async () => {
    const { folder, home } = openPlace({ documentSeconds: 1 });
    writeFileSync(path.join(folder, "endless.pdf"), endlessPdf(9_000));
    const env = { MEANWHILE_HOME: home, MEANWHILE_PACK_ROOTS: folder };
    expect(await runMeanwhile(["transform", "endless.pdf"], { cwd: folder, env })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(
        "endless.pdf was not transformed: reading it takes longer than 1 seconds; the setting pack.documentSeconds allows more.",
      ),
    });
  });
});

/** The process that reads a document, once it is at it: it has used more than a start takes. */
async function busyReader(daemon: number): Promise<number> {
  return await waitFor(() => readersOf(daemon).find((pid) => ticksOf(pid) > 60));
}

/** Hundredths of a second on the processor. */
function ticksOf(pid: number): number {
  const fields = readQuietly(`/proc/${pid}/stat`).split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
}
