/** Letters of East Asian scripts and emoji take two places, marks that combine take none. */
function placesOf(letter: string): number {
  if (/^\p{M}|^\u200d/u.test(letter)) return 0;
  return /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|^\p{Emoji_Presentation}/u.test(
    letter,
  )
    ? 2
    : 1;
}

/** How many places of a terminal a text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const letter of text) width += placesOf(letter);
  return width;
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
  const found: string[] = [];
  let piece = "";
  let places = 0;
  for (const letter of word) {
    const more = placesOf(letter);
    if (piece !== "" && places + more > width) {
      found.push(piece);
      piece = "";
      places = 0;
    }
    piece += letter;
    places += more;
  }
  return [...found, piece];
}

function take(text: string, width: number): string {
  let kept = "";
  let places = 0;
  for (const letter of text) {
    places += placesOf(letter);
    if (places > width) break;
    kept += letter;
  }
  return kept;
}
