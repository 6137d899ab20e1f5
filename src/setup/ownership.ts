import { createHash } from "node:crypto";
import type { Deed } from "./setup-record.ts";

/**
 * True for an entry that setup may change: it is as setup left it, or it starts our server. Anything else of that name
 * is another tool's, and its variables may hold secrets that our server has no business with.
 */
export function isOurEntry(found: unknown, deed: Deed | undefined): boolean {
  return (deed?.entry !== undefined && deed.entry === digestOfEntry(found)) || startsOurServer(wordsOf(found));
}

/** Tells an entry from another one, however its file is laid out. */
export function digestOfEntry(entry: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted(entry)))
    .digest("hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, sorted(inner)]);
}

/** What an entry runs: a program and its arguments, apart or in one list. */
function wordsOf(found: unknown): readonly string[] {
  const { command, args } = (typeof found === "object" && found !== null ? found : {}) as {
    command?: unknown;
    args?: unknown;
  };
  const words = [...(Array.isArray(command) ? command : [command]), ...(Array.isArray(args) ? args : [])];
  return words.every((word) => typeof word === "string") ? words : [];
}

/**
 * `node …/meanwhile.cjs serve`, `npx meanwhile serve` or `meanwhile serve`, with `-C <folder>` and flags of npx in
 * between.
 */
function startsOurServer(words: readonly string[]): boolean {
  const rest = words[0] === "cmd" && words[1]?.toLowerCase() === "/c" ? words.slice(2) : [...words];
  const program = nameOf(rest[0]);
  const at =
    program === "meanwhile"
      ? 0
      : program === "npx"
        ? rest.findIndex((word, index) => index > 0 && !word.startsWith("-"))
        : 1;
  const isOurs =
    at === 0 ||
    (program === "npx"
      ? /^meanwhile(@[\w.^~-]+)?$/.test(rest[at] ?? "")
      : program === "node" && nameOf(rest[at]) === "meanwhile.cjs");
  const said = rest.slice(at + 1);
  return isOurs && (said[0] === "-C" ? said[2] : said[0]) === "serve";
}

/** The last part of a path of any system, without what Windows puts behind programs. */
function nameOf(word: string | undefined): string {
  return (word?.split(/[\\/]/).at(-1) ?? "").replace(/\.(?:exe|cmd|bat)$/i, "");
}
