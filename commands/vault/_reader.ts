import { parse } from "yaml";
import { BeyondLimit, type Limits } from "../_pack/limits.ts";
import type { Reading } from "../_pack/reader-child.ts";
import { decodeText } from "../transform/_text.ts";
import { readNote } from "./_note.ts";
import type { NotePart } from "./_note-parts.ts";

/** Runs in the process that reads documents. */
export function read(bytes: Uint8Array, { name }: { readonly name: string }, limits: Limits): Reading {
  const { title, links, headings, tags } = readNote(decodeText(bytes), name, parse);
  for (const [what, parts] of Object.entries({ links, headings, tags }))
    if (parts.length > limits.documentParts) throw new BeyondLimit(`it has more than ${limits.documentParts} ${what}`, "documentParts");
  const items: NotePart[] = [...links.map((link) => ({ link })), ...headings.map((heading) => ({ heading })), ...tags.map((tag) => ({ tag }))];
  return { head: { title }, items };
}
