import { linesOf, oneLine, shorten } from "./inert.ts";

/**
 * Texts as Markdown that means itself. Nothing of them becomes a tag, a link, a table cell or a heading, nobody is
 * mentioned and no issue is referred to: in a pull request a tool's name could do all of that. What is shown as code
 * holds plain letters only, so that a code span or its end cannot be forged.
 */

const maxText = 1_000;
/** What a code span may hold: nothing that could end it, split a cell or begin a tag. */
const plainCode = /^[^`<>|&\\]+$/;
/** Words that GitHub turns into links by themselves, escaped or not. */
const linked = /@|#\d|:\/\/|www\./i;

/** A sentence. Names between backticks stay code. */
export function prose(text: string): string {
  const words = shorten(oneLine(text), maxText).split(/(`[^`<>|&\\]+`)/);
  const escaped = words.map((part, at) => (at % 2 === 1 ? part : part.split(/( )/).map(escapeWord).join(""))).join("");
  // At the beginning of a line these would make a list, a heading or a rule.
  return escaped.replace(/^(\d*)([-+=#.)])/, "$1\\$2");
}

/** A name, as code where that is safe. */
export function code(text: string): string {
  const clean = shorten(oneLine(text), maxText);
  if (clean === "") return "–";
  return plainCode.test(clean) ? `\`${clean}\`` : prose(clean);
}

function escapeWord(word: string): string {
  if (linked.test(word) && plainCode.test(word)) {
    // What ends a sentence or stands around a word is no part of it.
    const [, before = "", name = "", after = ""] = /^([("'“]*)(.*?)([.,;:!?)"'”]*)$/.exec(word) ?? [];
    return name === "" ? `\`${word}\`` : `${before}\`${name}\`${after}`;
  }
  return word
    .replaceAll("@", "＠")
    .replaceAll(/#(?=\d)/g, "＃")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll(/[\\`*_[\]~|$]|:(?=\/\/)|(?<=www)\./gi, "\\$&");
}

/** A block of code whose fence is longer than any in it. */
export function fenced(text: string, maxLines = 40): string {
  const lines = linesOf(text).map((line) => shorten(line, maxText));
  const shown =
    lines.length > maxLines ? [...lines.slice(0, maxLines), `… ${lines.length - maxLines} more lines`] : lines;
  const longest = Math.max(0, ...(shown.join("\n").match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(Math.max(3, longest + 1));
  return `${fence}text\n${shown.join("\n")}\n${fence}`;
}

/** A table; the cells are Markdown already. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}
