import { thisProgram } from "../../program/program.ts";
import { pad, widthOf, wrap } from "../../screen/width.ts";
import type { Terminal } from "../terminal.ts";

/** How wide what is printed may be: as wide as a screen, and in a pipe as wide as it likes. */
export function widthFor({ isDataShown, columns }: Pick<Terminal, "isDataShown" | "columns">): number {
  return isDataShown ? columns : Number.POSITIVE_INFINITY;
}

/** Prints help; on a screen no word of it is broken. */
export function printHelp(text: string, terminal: Terminal): void {
  terminal.print(wrapHelp(text, widthFor(terminal)));
}

/** The least room for words beside something else; with less they go below it. */
export const leastRoom = 24;

/**
 * Help that fits a width: what explains a word stays in its column, and a line for the shell goes on behind a
 * backslash.
 */
export function wrapHelp(text: string, width: number): string {
  return text
    .split("\n")
    .flatMap((line) => (widthOf(line) <= width ? [line] : wrapHelpLine(line, width)))
    .join("\n");
}

function wrapHelpLine(line: string, width: number): string[] {
  const [, lead = "", rest = ""] = /^(\s*)(.*)$/.exec(line) ?? [];
  if (rest.startsWith("$ "))
    return hang(wrapWords(rest, width - lead.length - 2), lead, `${lead}    `).map((part, at, all) =>
      at < all.length - 1 ? `${part} \\` : part,
    );
  const [, term, gap = "", words = ""] = /^(\S.*?)( {2,})(\S.*)$/.exec(rest) ?? [];
  if (term === undefined)
    return hang(wrapWords(rest, width - lead.length - 2), lead, isUsage(rest) ? `${lead}  ` : lead);
  const column = widthOf(lead + term + gap);
  if (width - column >= leastRoom) return hang(wrap(words, width - column), lead + term + gap, " ".repeat(column));
  const below = `${lead}    `;
  return [
    ...hang(wrapWords(term, width - lead.length - 2), lead, below),
    ...wrapWords(words, width - below.length).map((part) => below + part),
  ];
}

const isUsage = (text: string) => text.replace(/^Usage: /, "").startsWith(`${thisProgram.name} `);

/** The first line behind its lead, the others behind theirs. */
function hang([first = "", ...others]: readonly string[], lead: string, below: string): string[] {
  return [lead + first, ...others.map((part) => below + part)];
}

/** Nothing is made so narrow that it cannot be read. */
function wrapWords(text: string, width: number): string[] {
  return wrap(text, Math.max(leastRoom, width));
}

/**
 * Rows under their heads, in columns of equal width; the last column is broken between words. Where there is no room
 * for it, each row is its first cell, and below it the others.
 */
export function toColumns(rows: readonly (readonly string[])[], width = Number.POSITIVE_INFINITY): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? ""))));
  const before = widths.slice(0, -1).reduce((sum, each) => sum + each + 2, 0);
  const room = width - before;
  if (room < Math.min(leastRoom, widths.at(-1) ?? 0)) return toBlocks(rows, width);
  const lines = rows.flatMap((row) => {
    const lead = row.slice(0, -1).map((cell, column) => pad(cell, (widths[column] ?? 0) + 2));
    return hang(wrapCell(row.at(-1) ?? "", room), lead.join(""), " ".repeat(before));
  });
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

function wrapCell(text: string, room: number): string[] {
  return room === Number.POSITIVE_INFINITY ? [text] : wrap(text, room);
}

function toBlocks([, ...rows]: readonly (readonly string[])[], width: number): string {
  const lines = rows.flatMap(([first = "", ...cells]) => {
    const last = cells.pop() ?? "";
    const below = [cells.join("  "), last]
      .filter((text) => text.trim() !== "")
      .flatMap((text) => wrapWords(text, width - 2));
    return [first, ...below.map((line) => `  ${line}`)];
  });
  return lines.map((line) => `${line}\n`).join("");
}
