import { z } from "zod";
import type { Reach } from "../_pack/reach.ts";
import type { IngestOptions } from "./_run.ts";

/** How files are cut and what is too much, for sources and legacy. */
export const cutFields = {
  chunk_size: z.number().int().min(100).max(20_000).default(1_200).describe("Characters in a chunk, at most"),
  overlap: z.number().int().min(0).max(10_000).default(200).describe("Characters that neighbours share"),
  max_file_mb: z.number().int().min(1).max(256).default(16).describe("Larger files are skipped"),
  max_chunks: z.number().int().min(1).max(100_000).default(10_000).describe("Files with more chunks are skipped"),
};

export function toOptions(
  input: { chunk_size: number; overlap: number; max_file_mb: number; max_chunks: number },
  reach: Reach,
): IngestOptions {
  return {
    size: input.chunk_size,
    overlap: input.overlap,
    maxBytes: input.max_file_mb * 1024 * 1024,
    maxChunks: input.max_chunks,
    reach,
  };
}
