import { createHash } from "node:crypto";
import path from "node:path";
import { thisProgram } from "../program/program.ts";
import { executable } from "../project/project.ts";
import { scriptEnding } from "./launch.ts";
import type { Deed } from "./setup-record.ts";

/**
 * True for an entry that setup may change: it is as setup left it, or it starts our server. Anything else of that name
 * is another tool's, and its variables may hold secrets that our server has no business with.
 */
export function isOurEntry(found: unknown, deed: Deed | undefined): boolean {
  return (
    (deed?.entry !== undefined && deed.entry === digestOfEntry(found)) ||
    behindVerb(wordsOf(found), "serve") !== undefined
  );
}

/** What an entry says behind our `wrap`; undefined for one that is not behind us. */
export function wrapWordsOf(found: unknown): readonly string[] | undefined {
  return behindVerb(wordsOf(found), "wrap");
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

/** What an entry runs: a program and its arguments, apart, in one list or in an object. */
export function wordsOf(found: unknown): readonly string[] {
  const { command, args } = (typeof found === "object" && found !== null ? found : {}) as {
    command?: unknown;
    args?: unknown;
  };
  if (typeof command === "object" && command !== null && !Array.isArray(command)) {
    const { path: program, args: inner } = command as { path?: unknown; args?: unknown };
    return wordsOf({ command: program, args: inner });
  }
  const words = [...(Array.isArray(command) ? command : [command]), ...(Array.isArray(args) ? args : [])];
  return words.every((word) => typeof word === "string") ? words : [];
}

/**
 * What stands behind a verb of ours in `node …/meanwhile.cjs serve`, `npx meanwhile serve`, `meanwhile serve` or
 * `<home>/bin/meanwhile serve`, with `-C <folder>` and flags of npx in between; for an author's program the same with
 * its own file, package and name.
 */
function behindVerb(words: readonly string[], verb: "serve" | "wrap"): readonly string[] | undefined {
  const own = ownWordsOf(words);
  const said = own === undefined ? [] : own.slice(own[0] === "-C" ? 2 : 0);
  return said[0] === verb ? said.slice(1) : undefined;
}

/** Splits what an entry of ours runs into the program, as it is written, and the arguments of ours behind it. */
export function startOf(
  found: unknown,
): { readonly program: readonly string[]; readonly own: readonly string[] } | undefined {
  const words = wordsOf(found);
  if (behindVerb(words, "serve") === undefined && behindVerb(words, "wrap") === undefined) return undefined;
  const own = ownWordsOf(words) ?? [];
  return { program: words.slice(0, words.length - own.length), own };
}

/** True for an entry as earlier versions wrote it: it names one Node and one copy of the package, or npx. */
export function isEarlierStart(found: unknown): boolean {
  const program = startOf(found)?.program ?? [];
  return program.length > 1 && !(program.at(-1) ?? "").endsWith(launcherScript());
}

/** The name of the launcher's part in JavaScript, which Node starts where a .cmd cannot take the arguments. */
const launcherScript = () => `${thisProgram.name}${scriptEnding}`;

/** The arguments behind the program, where that is this one. */
function ownWordsOf(words: readonly string[]): readonly string[] | undefined {
  const rest = words[0] === "cmd" && words[1]?.toLowerCase() === "/c" ? words.slice(2) : [...words];
  const program = nameOf(rest[0]);
  const at =
    program === thisProgram.name
      ? 0
      : program === "npx"
        ? rest.findIndex((word, index) => index > 0 && !word.startsWith("-"))
        : 1;
  const isOurs =
    at === 0 ||
    (program === "npx"
      ? (rest[at] ?? "").replace(/(?<=.)@[\w.^~-]+$/, "") === thisProgram.packageName
      : program === "node" && isOurFile(rest[at] ?? ""));
  return isOurs ? rest.slice(at + 1) : undefined;
}

/** Authors call their files as others do, so that one is known by its package. */
function isOurFile(file: string): boolean {
  const { authors } = thisProgram;
  if (nameOf(file) === launcherScript()) return true;
  if (authors === undefined) return nameOf(file) === path.basename(executable());
  const isOfPackage =
    authors.packageName !== undefined && file.replaceAll("\\", "/").includes(`/node_modules/${authors.packageName}/`);
  return isOfPackage || file === authors.executable;
}

/** The last part of a path of any system, without what Windows puts behind programs. */
function nameOf(word: string | undefined): string {
  return (word?.split(/[\\/]/).at(-1) ?? "").replace(/\.(?:exe|cmd|bat)$/i, "");
}
