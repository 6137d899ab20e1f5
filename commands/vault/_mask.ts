/**
 * Blanks out what is not prose, so that nothing in it is taken for a link or a tag: front matter, fenced code, inline
 * code, HTML comments and %% comments %%. Every character keeps its place and every line its number.
 */
export function maskCode(text: string): string {
  return maskSpans(maskFences(text));
}

const fence = /^[ \t>]*(`{3,}|~{3,})(.*)$/;

/** The length of the front matter, its fences included; 0 without one. */
export function frontMatterLength(text: string): number {
  const opening = /^---[ \t]*\r?\n/.exec(text);
  if (opening === null) return 0;
  const closing = /^(?:---|\.\.\.)[ \t]*$/gm;
  closing.lastIndex = opening[0].length;
  const end = closing.exec(text);
  return end === null ? 0 : end.index + end[0].length;
}

const blank = (text: string) => text.replaceAll(/[^\n]/g, " ");

function maskFences(text: string): string {
  const start = frontMatterLength(text);
  let open: string | undefined;
  const lines = text.slice(start).split("\n");
  for (const [at, line] of lines.entries()) {
    const [, marks = "", rest = ""] = fence.exec(line.endsWith("\r") ? line.slice(0, -1) : line) ?? [];
    if (open === undefined) {
      // A line of backticks with another backtick behind them is inline code.
      if (marks === "" || (marks.startsWith("`") && rest.includes("`"))) continue;
      open = marks;
    } else if (marks.startsWith(open) && rest.trim() === "") open = undefined;
    lines[at] = blank(line);
  }
  return blank(text.slice(0, start)) + lines.join("\n");
}

/**
 * Where a span may begin: a run of backticks, an HTML comment, an Obsidian comment, an escaped character, or the end of
 * a paragraph.
 */
const opening = /\\[\s\S]|`+|<!--|%%|\n[ \t]*\r?\n/g;

function maskSpans(text: string): string {
  const parts: string[] = [];
  /**
   * Runs of backticks that are known to have no partner before this place: without it, many single ones would cost a
   * look to the end each.
   */
  const hopeless = new Map<string, number>();
  let kept = 0;
  opening.lastIndex = 0;
  for (let found = opening.exec(text); found !== null; found = opening.exec(text)) {
    const [mark] = found;
    if (mark.startsWith("\\") || mark.startsWith("\n")) {
      // The line break may begin the next blank line too.
      if (mark.startsWith("\n")) opening.lastIndex = found.index + mark.length - 1;
      continue;
    }
    const from = found.index + mark.length;
    if ((hopeless.get(mark) ?? -1) > found.index) continue;
    const end = mark.startsWith("`") ? endOfCode(text, mark, from) : endOfComment(text, mark, from);
    if (end.isFound) {
      parts.push(text.slice(kept, found.index), blank(text.slice(found.index, end.at)));
      kept = end.at;
      opening.lastIndex = end.at;
    } else hopeless.set(mark, end.at);
  }
  return parts.join("") + text.slice(kept);
}

interface End {
  readonly isFound: boolean;
  /** Where it ends, or up to where there is none. */
  readonly at: number;
}

/** Inline code ends with as many backticks as it began with, in the same paragraph. */
function endOfCode(text: string, mark: string, from: number): End {
  const stop = /`+|\n[ \t]*\r?\n/g;
  stop.lastIndex = from;
  for (let found = stop.exec(text); found !== null; found = stop.exec(text)) {
    if (found[0] === mark) return { isFound: true, at: found.index + mark.length };
    if (found[0].startsWith("\n")) return { isFound: false, at: found.index };
  }
  return { isFound: false, at: text.length };
}

function endOfComment(text: string, mark: string, from: number): End {
  const close = mark === "<!--" ? "-->" : "%%";
  const at = text.indexOf(close, from);
  return at === -1 ? { isFound: false, at: text.length } : { isFound: true, at: at + close.length };
}
