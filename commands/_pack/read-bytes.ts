import type { Limits } from "./limits.ts";

/** What a reader found in a document: a head, and the two parts that may be large. */
export interface Reading {
  readonly head: unknown;
  readonly text?: string;
  readonly items?: readonly unknown[];
}

/** What a domain exports to read its documents. */
export type Read = (bytes: Uint8Array, how: never, limits: Limits) => Reading | Promise<Reading>;

/** Each library is loaded at its first use: most runs need one of them. */
const domains: Readonly<Record<string, () => Promise<{ readonly read: Read }>>> = {
  transform: () => import("../transform/_reader.ts"),
  ingest: () => import("../ingest/_reader.ts"),
  vault: () => import("../vault/_reader.ts"),
};

/**
 * Parses one document with the reader of its domain. Nothing here bounds the time or memory that a hostile document
 * takes: the product calls this in a reader process only.
 */
export async function readBytes(domain: string, bytes: Uint8Array, how: never, limits: Limits): Promise<Reading> {
  const reader = await domains[domain]?.();
  if (reader === undefined) throw new Error(`The domain ${domain} has no reader.`);
  return await reader.read(bytes, how, limits);
}
