/**
 * The gate between text and a screen. Much of what we show was written by others: servers, tools, files, logs. A screen
 * obeys escape sequences, C0 and C1 controls, and is deceived by marks that turn the direction of text; what passes
 * here is shown, never obeyed.
 */

const turned = /[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const turnedShown = "\ufffd";

/** A text on one line, without anything that a screen would obey. */
export function clean(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").replace(turned, turnedShown);
}

/** The same for text of several lines. */
export function cleanLines(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]+/g, " ")
    .replace(turned, turnedShown);
}

/** Bold, dim, red, green, yellow, cyan, and their ends: the colours that our own words have. */
const ownColors = /(\x1b\[(?:1|2|22|31|32|33|36|39)m)/;

/** The same for lines of our own, whose colours stay. */
export function cleanKeepingColors(text: string, { hasColor }: { readonly hasColor: boolean }): string {
  if (!hasColor) return cleanLines(text);
  return text
    .split(ownColors)
    .map((part, index) => (index % 2 === 1 ? part : cleanLines(part)))
    .join("");
}
