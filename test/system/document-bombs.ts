import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { deflateRawSync } from "node:zlib";
import { expect } from "vitest";
import { endlessPdf, packedLetters, packedPdf, selfContainedPdf, zip } from "../fixtures/pack/bombs.ts";
import { killDaemons } from "../helpers/daemon.ts";
import { cleanUp, shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { codeCache, executable, waitFor } from "../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../helpers/wire.ts";

/**
 * All processes together, while a document does its worst: two readers of at most 192 MB, the daemon and two fronts. What
 * they share (Node's own code, in every one of them) counts for nobody, and what is left of the 600 is what a reader
 * takes between two looks of its watch.
 */
export const maxMb = 600;
/** It is a few milliseconds; whoever had to wait for a document could wait for the minute that it may take. */
const maxPingMs = 20_000;
interface Place {
  readonly folder: string;
  readonly home: string;
}

export function openPlace(pack: object = {}): Place {
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
export async function openServer() {
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

export const server = shareAmongTests(openServer);

/** The daemon has a record; it is nobody's child. */
function daemonsOf(home: string): number[] {
  const folder = path.join(home, "run");
  const records = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  return records.map((name) => (JSON.parse(readFileSync(path.join(folder, name), "utf8")) as { pid: number }).pid);
}

/** The processes that read documents. */
export function readersOf(pid: number): number[] {
  const text = readQuietly(`/proc/${pid}/task/${pid}/children`);
  return text.split(" ").filter(Boolean).map(Number);
}

/** What a process has in memory of its own, in megabytes: what is resident, less what it shares with others. */
function ownMbOf(pid: number): number {
  const [, resident = 0, shared = 0] = readQuietly(`/proc/${pid}/statm`).split(" ").map(Number);
  return ((resident - shared) * 4096) / 1024 / 1024;
}
export const isRunning = (pid: number) =>
  readQuietly(`/proc/${pid}/statm`).split(" ")[1] !== undefined &&
  !/^State:\s+[ZX]/m.test(readQuietly(`/proc/${pid}/status`));

export function readQuietly(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // It has ended.
  }
}

/** Looks at the memory of all, and asks after the server's health over and over, until the work is done. */
export async function watched<T>(work: Promise<T>): Promise<{ result: T; peakMb: number; pings: number[] }> {
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
export async function callWatched(
  tool: string,
  input: object,
): Promise<{ text: string; data: Record<string, unknown> | undefined }> {
  const { client } = await server();
  const { result, peakMb, pings } = await watched(client.call(tool, input));
  expect(peakMb, "megabytes of all processes").toBeLessThan(maxMb);
  expect(pings[pings.length >> 1], "half of the pings, in milliseconds").toBeLessThan(maxPingMs);
  const envelope = result.structuredContent as
    | { data?: Record<string, unknown>; messages?: { text: string }[] }
    | undefined;
  return { text: JSON.stringify(result.content), data: envelope?.data };
}

export async function transformed(name: string, content: Buffer | string, input: object = {}) {
  const { folder } = await server();
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return await callWatched("transform", { file, max_characters: 20, ...input });
}

const word = deflateRawSync(Buffer.from("<w:document><w:p><w:r><w:t>hello</w:t></w:r></w:p></w:document>"));
const sixty = packedLetters(60);
const claimed = 60 * 1024 * 1024;
export const byMemory = "reading it takes more than 192 MB of memory; the setting pack.memoryMb allows more.";

/** The title of a test, the file's name, its content, the sentence that it is refused with, and more of the input. */
type Refused = readonly [title: string, name: string, make: () => Buffer | string, sentence: string, input?: object];

/** A document for each limit. */
export const refused: readonly Refused[] = [
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
    "a DOCX that unpacks to more than it says",
    "lie.docx",
    () => zip([{ name: "word/document.xml", packed: packedLetters(200), claimed: 10 }]),
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
  [
    "a CSV that would be written out at length",
    "wide.csv",
    wideCsv,
    "its text has more than 32 MB; the setting pack.textMb allows more.",
  ],
  [
    "a JSON nested 200,000 deep",
    "nested.json",
    () => `${"[".repeat(200_000)}1${"]".repeat(200_000)}`,
    "its values are nested too deep; ",
  ],
];

/** More documents for the same limits, of which some take 26 seconds. */
export const slowlyRefused: readonly Refused[] = [
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
    "a DOCX whose parts are too much together",
    "sum.docx",
    () => zip(["word/document.xml", "docProps/core.xml"].map((name) => ({ name, packed: packedLetters(20) }))),
    "it unpacks to more than 32 MB; the setting pack.unpackedMb allows more.",
  ],
  ["a CSV whose quote is never closed, 100 MB long", "quote.csv", unclosedCsv, byMemory, { max_mb: 128 }],
  ["a JSON of 50 MB of [", "deep.json", () => Buffer.alloc(50_000_000, "["), byMemory],
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
