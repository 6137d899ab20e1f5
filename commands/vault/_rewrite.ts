import { Unreadable } from "../_pack/limits.ts";
import { findLinks, type Link } from "./_links.ts";
import { maskCode } from "./_mask.ts";

/** A link of a note, and what is to be written in its place: its target, heading included. */
export interface Replacement extends Pick<Link, "line" | "kind" | "target" | "heading"> {
  readonly written: string;
}

/**
 * Writes some links of a note anew, and leaves every other byte as it is. Refuses what is not UTF-8, which could not be
 * written back the same.
 */
export function rewriteLinks(
  bytes: Uint8Array,
  replacements: readonly Replacement[],
): { text: string; changed: number } {
  const raw = decodeExactly(bytes);
  const normal = raw.replace(/^\ufeff/, "").replaceAll(/\r\n?/g, "\n");
  const wanted = new Map(replacements.map((replacement) => [keyOf(replacement), replacement.written]));
  const places = findLinks(maskCode(normal))
    .flatMap((link) => {
      const written = wanted.get(keyOf(link));
      return written === undefined ? [] : [{ from: link.span[0], to: link.span[1], written }];
    })
    .sort((a, b) => a.from - b.from);
  const toRaw = rawOffsets(raw);
  const parts: string[] = [];
  let kept = 0;
  for (const { from, to, written } of places) {
    const start = toRaw(from);
    parts.push(raw.slice(kept, start), written);
    kept = toRaw(to);
  }
  return { text: parts.join("") + raw.slice(kept), changed: places.length };
}

function keyOf({ line, kind, target, heading }: Pick<Link, "line" | "kind" | "target" | "heading">): string {
  return JSON.stringify([line, kind, target, heading]);
}

function decodeExactly(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Unreadable("it is not written in UTF-8; change its links by hand");
  }
}

/**
 * Where a place of the text lies in the file's own characters, byte order mark and line ends included; asked for in
 * rising order.
 */
function rawOffsets(raw: string): (offset: number) => number {
  let at = raw.startsWith("\ufeff") ? 1 : 0;
  let passed = 0;
  return (offset) => {
    for (; passed < offset; passed++) at += raw[at] === "\r" && raw[at + 1] === "\n" ? 2 : 1;
    return at;
  };
}
