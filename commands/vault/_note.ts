import { findLinks, type Link, type PlacedLink } from "./_links.ts";
import { frontMatterLength, maskCode } from "./_mask.ts";

export interface Heading {
  readonly level: number;
  readonly text: string;
  readonly line: number;
}

/** What a note says about itself and others. */
export interface Note {
  readonly title: string;
  readonly headings: readonly Heading[];
  /** Lower case, without `#`, each once. */
  readonly tags: readonly string[];
  readonly links: readonly Link[];
  /** What `^block` marks name, in lower case, each once. */
  readonly blocks: readonly string[];
}

/** A note that was just read. */
export interface ReadNote extends Note {
  readonly links: readonly PlacedLink[];
}

const headingLine = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const maxHeading = 500;
const blockMark = /(?:^|[ \t])\^([A-Za-z0-9-]{1,100})$/;
/** Longer ones are no tags but something else behind a #. */
const maxTag = 200;
/** What a person writes about a note, not data. */
const maxFrontMatter = 64 * 1024;
/** `#tag` behind a space, a bracket or at the start; letters, digits, _, - and /, and not digits alone. */
const tagPattern = /(?<=^|[\s({,;])#([\p{L}\p{N}_/-]+)/gmu;
/** Where a link leads: a `#` in it begins a heading. */
const targetPattern = /\[\[[^[\]\n]*\]\]|\]\([^()\n]*\)/g;

/** Reads one Markdown note. `parseYaml` reads its front matter; what it cannot read is left out. */
export function readNote(text: string, name: string, parseYaml: (text: string) => unknown): ReadNote {
  const masked = maskCode(text);
  const headings = findHeadings(text, masked);
  const properties = readFrontMatter(text, parseYaml);
  const title =
    typeof properties.title === "string" && properties.title.trim() !== ""
      ? properties.title.trim()
      : headings.find(({ level }) => level === 1)?.text;
  const inline = [...masked.replaceAll(targetPattern, " ").matchAll(tagPattern)].map((match) => match[1] as string);
  const tags = cleanTags([...listOf(properties.tags), ...listOf(properties.tag), ...inline]);
  return { title: title ?? name, headings, tags, links: findLinks(masked), blocks: findBlocks(masked) };
}

/** `^block` at the end of a line marks what is written there. */
function findBlocks(masked: string): string[] {
  const found = masked
    .split("\n")
    .flatMap((line) => (line.includes("^") ? (blockMark.exec(line.trimEnd())?.[1] ?? []) : []));
  return [...new Set(found.map(blockKey))];
}

/** How marks of blocks are compared. */
export function blockKey(mark: string): string {
  return mark.toLowerCase();
}

/** Headings are found in what is left without code, and quoted with the code they hold. */
function findHeadings(text: string, masked: string): Heading[] {
  const headings: Heading[] = [];
  const original = text.split("\n");
  for (const [at, line] of masked.split("\n").entries()) {
    if (!line.includes("#") || !headingLine.test(line)) continue;
    const [, marks = "", rest = ""] = headingLine.exec(original[at] ?? "") ?? [];
    // The marks may be repeated behind the words.
    const words = rest
      .trimEnd()
      .replace(/(?:^|[ \t])#+$/, "")
      .trim()
      .slice(0, maxHeading);
    if (words !== "") headings.push({ level: marks.length, text: words, line: at + 1 });
  }
  return headings;
}

function readFrontMatter(text: string, parseYaml: (text: string) => unknown): Record<string, unknown> {
  const length = frontMatterLength(text);
  if (length === 0 || length > maxFrontMatter) return {};
  const inside = text.slice(text.indexOf("\n") + 1, length).replace(/(?:---|\.\.\.)[ \t]*$/, "");
  try {
    const read = parseYaml(inside);
    return typeof read === "object" && read !== null && !Array.isArray(read) ? (read as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** A list, or one text with commas or spaces between the tags. */
function listOf(value: unknown): string[] {
  if (Array.isArray(value))
    return value.filter((item) => typeof item === "string" || typeof item === "number").map(String);
  return typeof value === "string" ? value.split(/[\s,]+/) : [];
}

function cleanTags(tags: readonly string[]): string[] {
  const cleaned = tags.map((tag) => withoutEndSlashes(tag.trim().replace(/^#/, "")).normalize("NFC").toLowerCase());
  return [...new Set(cleaned)].filter((tag) => tag !== "" && tag.length <= maxTag && !/^\d+$/.test(tag));
}

/** Without a pattern, which would take the square of the time on many slashes that are not at the end. */
function withoutEndSlashes(tag: string): string {
  let end = tag.length;
  while (tag[end - 1] === "/") end--;
  return tag.slice(0, end);
}

/**
 * How headings are compared: case, punctuation and the spaces between words do not count, as in the hosts' own links
 * (`#my-heading`, `#My Heading`).
 */
export function headingKey(text: string): string {
  return text
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
}
