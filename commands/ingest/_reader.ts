import type { Limits } from "../_pack/limits.ts";
import type { Reading } from "../_pack/reader-child.ts";
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
}

/** Runs in the process that reads documents. */
export async function read(bytes: Uint8Array, { engine, name, maxChunks, ...sizes }: IngestHow, limits: Limits): Promise<Reading> {
  const { text, title } =
    engine === "conversation" ? readConversation(bytes, name) : await transformBytes(engine, { bytes, name, options: { links: false }, limits });
  const chunks: Chunk[] = [];
  for (const chunk of cutIntoChunks(text, sizes)) {
    if (chunks.length === maxChunks) return { head: { title, hasTooMany: true } satisfies IngestHead };
    chunks.push(chunk);
  }
  return { head: { title, hasTooMany: false } satisfies IngestHead, items: chunks };
}
