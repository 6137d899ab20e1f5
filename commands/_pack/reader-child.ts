import { Socket } from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { FrameReader, Kind, toFrame } from "./frames.ts";
import { BeyondLimit, bytesOf, type Limits, Unreadable } from "./limits.ts";
import { type Reading, readBytes } from "./read-bytes.ts";

/**
 * The process in which documents are read. It gets one after the other, as bytes, and answers with what came of it; the
 * file system, the network and the user's tokens are no business of its own. Whatever a document does to it, it does to
 * itself.
 */

interface Begin {
  readonly domain: string;
  readonly how: never;
  readonly size: number;
  readonly limits: Limits;
}

const pieceBytes = 64 * 1024;
/**
 * A process that holds more than this share of what it may clears away what the document before has left behind: the
 * next one is judged by itself.
 */
const restShare = 0.5;
const growthMb = 16;

const memoryMb = Number(process.argv[2]);
startWatch();
const channel = new Socket({ fd: 3, readable: true, writable: true });
const frames = new FrameReader(bytesOf(1));
let begun: Begin | undefined;
let bytes = Buffer.alloc(0);
let filled = 0;
/** What was held when it was cleared away last. */
let clearedBytes = 0;

channel.on("data", (piece: Buffer) => {
  for (const { kind, payload } of frames.take(piece)) hear(kind, payload);
});
// Whoever wanted to know is gone.
channel.on("end", () => process.exit());
channel.on("error", () => process.exit());

function hear(kind: number, payload: Buffer): void {
  if (kind === Kind.Begin) {
    begun = JSON.parse(payload.toString()) as Begin;
    bytes = Buffer.allocUnsafeSlow(begun.size);
    filled = 0;
  } else if (kind === Kind.Bytes) filled += payload.copy(bytes, filled);
  else if (kind === Kind.End && begun !== undefined) void answer(begun);
  else if (kind === Kind.Drop) release();
}

async function answer({ domain, how, limits }: Begin): Promise<void> {
  const document = bytes;
  release();
  try {
    await tell(await readBytes(domain, document, how, limits), limits);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    await write(
      toFrame(
        Kind.Answer,
        JSON.stringify({ error: reason, isOurs: error instanceof Unreadable, residentMb: restMb() }),
      ),
    );
  }
}

async function tell({ head, text = "", items = [] }: Reading, limits: Limits): Promise<void> {
  let room = bytesOf(limits.textMb);
  const send = async (kind: number, payload: string) => {
    const frame = toFrame(kind, payload);
    room -= Buffer.byteLength(payload);
    if (room < 0) throw new BeyondLimit(`its text has more than ${limits.textMb} MB`, "textMb");
    await write(frame);
  };
  if (Buffer.byteLength(text) > room) throw new BeyondLimit(`its text has more than ${limits.textMb} MB`, "textMb");
  for (let from = 0; from < text.length; ) {
    const end = endOfPiece(text, from + pieceBytes);
    await send(Kind.Text, text.slice(from, end));
    from = end;
  }
  for (const group of inGroups(items)) await send(Kind.Items, `[${group.join(",")}]`);
  await send(Kind.Answer, JSON.stringify({ head, residentMb: restMb() }));
}

/** Megabytes that are held when there is nothing to do. */
function restMb(): number {
  // Not after every document, when it is the libraries that take the room.
  if (process.memoryUsage.rss() > Math.max(bytesOf(memoryMb) * restShare, clearedBytes + bytesOf(growthMb))) {
    globalThis.gc?.();
    clearedBytes = process.memoryUsage.rss();
  }
  return Math.round(process.memoryUsage.rss() / bytesOf(1));
}

/** Not between the halves of a character. */
function endOfPiece(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at + 1 : Math.min(at, text.length);
}

function* inGroups(items: readonly unknown[]): Generator<string[]> {
  let group: string[] = [];
  let length = 0;
  for (const item of items) {
    const json = JSON.stringify(item);
    group.push(json);
    length += json.length;
    if (length < pieceBytes) continue;
    yield group;
    group = [];
    length = 0;
  }
  if (group.length > 0) yield group;
}

async function write(parts: readonly Buffer[]): Promise<void> {
  let hasRoom = true;
  channel.cork();
  for (const part of parts) hasRoom = channel.write(part);
  channel.uncork();
  if (!hasRoom) await new Promise((resolve) => channel.once("drain", resolve));
}

function release(): void {
  begun = undefined;
  bytes = Buffer.alloc(0);
}

function startWatch(): void {
  // The same file is `.ts` in a checkout and `.js` in the package.
  const own = fileURLToPath(import.meta.url);
  new Worker(path.join(path.dirname(own), `reader-watch${path.extname(own)}`), {
    workerData: { maxBytes: bytesOf(memoryMb), parent: process.ppid },
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2, codeRangeSizeMb: 4 },
  }).unref();
}
