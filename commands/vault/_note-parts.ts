import type { Link } from "./_links.ts";
import type { Heading, Note } from "./_note.ts";

/** A part of a note on its way. */
export type NotePart =
  | { readonly link: Link }
  | { readonly heading: Heading }
  | { readonly tag: string }
  | { readonly block: string };

/** The note that its parts make. */
export function toNote(title: string, parts: readonly NotePart[]): Note {
  return {
    title,
    links: parts.flatMap((part) => ("link" in part ? [part.link] : [])),
    headings: parts.flatMap((part) => ("heading" in part ? [part.heading] : [])),
    tags: parts.flatMap((part) => ("tag" in part ? [part.tag] : [])),
    blocks: parts.flatMap((part) => ("block" in part ? [part.block] : [])),
  };
}
