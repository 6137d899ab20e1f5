export interface Chunk {
  readonly text: string;
  /** Of its first character, counted from 1. */
  readonly line: number;
}

export interface ChunkSizes {
  /** Characters in a chunk, at most. */
  readonly size: number;
  /** Characters that a chunk shares with the one before it, about. */
  readonly overlap: number;
}

/** Where a chunk may end, the best place first. */
const ends = ["\n\n", "\n", ". ", " "] as const;
/** The last part of a chunk, in which an end is looked for. */
const tail = 0.3;

/**
 * Cuts a text into chunks that begin and end between words where that is possible, and share a little with their
 * neighbours.
 */
export function* cutIntoChunks(text: string, { size, overlap }: ChunkSizes): Generator<Chunk> {
  let line = 1;
  let counted = 0;
  for (let start = 0; start < text.length; ) {
    const end = findEnd(text, start, size);
    const piece = text.slice(start, end);
    const lead = piece.length - piece.trimStart().length;
    for (; counted < start + lead; counted++) if (text.charCodeAt(counted) === 10) line++;
    const trimmed = piece.trim();
    if (trimmed !== "") yield { text: trimmed, line };
    if (end >= text.length) return;
    const next = findStart(text, end - overlap, end);
    start = next > start ? next : end;
    // Lines are counted forward only: step back over what the next chunk shares with this one.
    for (; counted > start; counted--) if (text.charCodeAt(counted - 1) === 10) line--;
  }
}

function findEnd(text: string, start: number, size: number): number {
  const limit = start + size;
  if (limit >= text.length) return text.length;
  const from = start + Math.ceil(size * (1 - tail));
  const window = text.slice(from, limit);
  for (const mark of ends) {
    const at = window.lastIndexOf(mark);
    if (at !== -1) return from + at + mark.length;
  }
  // Between the halves of a character nothing may end.
  return isHalf(text, limit) ? limit - 1 : limit;
}

/** The first place behind a space, from here on; the given one when a single word fills it all. */
function findStart(text: string, from: number, end: number): number {
  const window = text.slice(Math.max(0, from - 1), end);
  const space = window.search(/\s/);
  if (space !== -1 && space + 1 < window.length) return end - window.length + space + 1;
  return isHalf(text, from) ? from + 1 : from;
}

function isHalf(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff;
}
