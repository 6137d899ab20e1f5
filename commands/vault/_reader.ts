import { parse } from "yaml";
import { BeyondLimit, type Limits } from "../_pack/limits.ts";
import type { Reading } from "../_pack/read-bytes.ts";
import { decodeText } from "../transform/_text.ts";
import { readNote } from "./_note.ts";
import type { NotePart } from "./_note-parts.ts";
import { type Replacement, rewriteLinks } from "./_rewrite.ts";

/** How a note is read: for what is in it, or to have some of its links written anew. */
export interface NoteHow {
  readonly name: string;
  readonly replacements?: readonly Replacement[];
}

/** Runs in the process that reads documents. */
export function read(bytes: Uint8Array, { name, replacements }: NoteHow, limits: Limits): Reading {
  if (replacements !== undefined) {
    const { text, changed } = rewriteLinks(bytes, replacements);
    return { head: { changed }, text };
  }
  const { title, links, headings, tags, blocks } = readNote(decodeText(bytes), name, parse);
  for (const [what, parts] of Object.entries({ links, headings, tags, blocks }))
    if (parts.length > limits.documentParts)
      throw new BeyondLimit(`it has more than ${limits.documentParts} ${what}`, "documentParts");
  const items: NotePart[] = [
    ...links.map(({ span: _span, ...link }) => ({ link })),
    ...headings.map((heading) => ({ heading })),
    ...tags.map((tag) => ({ tag })),
    ...blocks.map((block) => ({ block })),
  ];
  return { head: { title }, items };
}
