/**
 * The last gate before a text is shown. Checks have made their texts printable already, but a report may also come from
 * a file, and a file is anybody's: what a terminal, a page or a viewer would obey is taken out here once more, whatever
 * the format.
 */

// Controls, marks without a look of their own (direction, joiners, tags), private letters, lone halves, and the two
// rare line ends.
const obeyed = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;

/** A text on one line, without anything that would be obeyed. */
export function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll(obeyed, "�").trim();
}

/** The lines of a text, each of them harmless; empty ones at its ends are dropped. */
export function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n|\r/).map((line) => line.replaceAll("\t", "  ").replaceAll(obeyed, "�").trimEnd());
  const first = lines.findIndex((line) => line !== "");
  const last = lines.findLastIndex((line) => line !== "");
  return first === -1 ? [] : lines.slice(first, last + 1);
}

/** A text that ends with … where it is longer than `max`. */
export function shorten(text: string, max: number): string {
  if (text.length <= max) return text;
  // Of a text of many megabytes only the beginning is looked at.
  const letters = Array.from(text.slice(0, max * 2));
  return letters.length > max ? `${letters.slice(0, max - 1).join("")}…` : letters.join("");
}
