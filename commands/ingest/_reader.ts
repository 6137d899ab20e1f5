import type { Limits } from "../_pack/limits.ts";
import type { Reading } from "../_pack/read-bytes.ts";
import { type EngineName, transformBytes } from "../transform/_engines.ts";
import { type Chunk, type ChunkSizes, cutIntoChunks } from "./_chunks.ts";
import { readConversation } from "./_conversation.ts";

/** How a file is read and cut. */
export interface IngestHow extends ChunkSizes {
  readonly engine: EngineName | "conversation";
  readonly name: string;
  readonly maxChunks: number;
}

export interface IngestHead {
  readonly title: string;
  /** True when there were more chunks than wanted, and none is given. */
  readonly hasTooMany: boolean;
  /** How many lines could not be read, and the first of them. */
  readonly badCount: number;
  readonly badLines: readonly number[];
}

const maxBadLines = 100;

/** Runs in the process that reads documents. */
export async function read(
  bytes: Uint8Array,
  { engine, name, maxChunks, ...sizes }: IngestHow,
  limits: Limits,
): Promise<Reading> {
  const { text, title, badCount, badLines } =
    engine === "conversation" ? toRead(readConversation(bytes, name)) : await readFile(bytes, { engine, name, limits });
  const chunks: Chunk[] = [];
  for (const chunk of cutIntoChunks(text, sizes)) {
    if (chunks.length === maxChunks)
      return { head: { title, hasTooMany: true, badCount, badLines } satisfies IngestHead };
    chunks.push(chunk);
  }
  return { head: { title, hasTooMany: false, badCount, badLines } satisfies IngestHead, items: chunks };
}

interface ReadText extends Pick<IngestHead, "title" | "badCount" | "badLines"> {
  readonly text: string;
}

function toRead({ badLines, ...rest }: { text: string; title: string; badLines: readonly number[] }): ReadText {
  return { ...rest, badCount: badLines.length, badLines: badLines.slice(0, maxBadLines) };
}

async function readFile(
  bytes: Uint8Array,
  { engine, name, limits }: { engine: EngineName; name: string; limits: Limits },
): Promise<ReadText> {
  const { text, title, facts } = await transformBytes(engine, { bytes, name, options: { links: false }, limits });
  const { bad_lines = 0, first_bad_line } = facts as { bad_lines?: number; first_bad_line?: number };
  return { text, title, badCount: bad_lines, badLines: first_bad_line === undefined ? [] : [first_bad_line] };
}
