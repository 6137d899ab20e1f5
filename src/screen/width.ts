import stringWidth from "fast-string-width";

/** How many places of a terminal a text takes: two for an East Asian letter or an emoji, none for marks and colours. */
export function widthOf(text: string): number {
  return stringWidth(text, { tabWidth: 1 });
}

/** A text as a person counts it: a letter with its marks, or a family of emoji, is never taken apart. */
function* lettersOf(text: string): Iterable<string> {
  // Nothing combines here, and Node takes 15 ms to load what it knows of other scripts.
  if (/^[\x20-\u02ff\u2010-\u2027\u2190-\u22ff]*$/.test(text)) yield* text;
  else for (const { segment } of new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)) yield segment;
}

/** Filled up with spaces to a width. */
export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

/** Cut to a width, with … at its end when something is gone. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return `${take(text, Math.max(0, width - 1))}…`;
}

/** Cut to a width between words, with … for what is gone. */
export function cutWords(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const kept = take(text, Math.max(0, width - 2));
  const isWhole = text[kept.length] === " ";
  const words = isWhole ? kept : kept.replace(/\S+$/, "");
  return words.trim() === "" ? cut(text, width) : `${words.trimEnd()} …`;
}

/**
 * Lines no wider than `width`, broken between words; a word that is wider than a line is broken where the line ends.
 */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").flatMap((item) => pieces(item, width))) {
    if (line === "") line = word;
    else if (widthOf(line) + 1 + widthOf(word) <= width) line += ` ${word}`;
    else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}

function pieces(word: string, width: number): string[] {
  if (widthOf(word) <= width) return [word];
  const found: string[] = [];
  let piece = "";
  for (const letter of lettersOf(word)) {
    if (piece !== "" && widthOf(piece + letter) > width) {
      found.push(piece);
      piece = "";
    }
    piece += letter;
  }
  return [...found, piece];
}

function take(text: string, width: number): string {
  let kept = "";
  for (const letter of lettersOf(text)) {
    if (widthOf(kept + letter) > width) break;
    kept += letter;
  }
  return kept;
}
