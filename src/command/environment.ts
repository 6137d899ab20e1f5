import { createHash } from "node:crypto";
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { foldersBelow } from "./discover.ts";

/**
 * Which variables a project's own code reads, as far as its text tells. Nothing is run. What stands in a comment counts
 * too, and does no harm: a name too many can only keep two sessions apart, a name too few would give one the other's
 * value. So where the environment is used in any other way than by name (a schema is held against it, it is indexed by
 * an expression), every word in capitals counts.
 */

export interface Places {
  /** All code below these counts, and what it imports by path. */
  readonly folders: readonly string[];
  readonly files?: readonly string[];
  /** True for files that are nobody's project. */
  readonly skips?: (file: string) => boolean;
}

export interface Found {
  /** Sorted, each once. */
  readonly names: readonly string[];
  /** False when there was more to look at than is looked at. */
  readonly isWhole: boolean;
}

interface Look {
  readonly names: readonly string[];
  /** Words in capitals. */
  readonly words: readonly string[];
  /** Whether the environment is used in another way than by name. */
  readonly isOpen: boolean;
  /** What it imports by path, as written. */
  readonly imports: readonly string[];
}

const maxFiles = 1_000;
const maxFileBytes = 2 * 1024 * 1024;
const maxBytes = 16 * 1024 * 1024;
const maxNames = 1_000;
const endings = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx"];
/** Tests and types lie beside commands, and no command runs them. */
const besideCode = /\.(test|spec|d)\.\w+$/;

/** The variables that the code in these places reads; the same files always give the same answer. */
export function environmentNames({ folders, files = [], skips = () => false }: Places): Found {
  const looks: Look[] = [];
  const waiting = [...files, ...folders.flatMap(sourcesBelow)].flatMap(toReal);
  const seen = new Set(waiting);
  let bytes = 0;
  let isWhole = true;
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    if (skips(file) || file.split(path.sep).includes("node_modules")) continue;
    const text = readSource(file);
    bytes += text?.length ?? 0;
    if (text === undefined || looks.length === maxFiles || bytes > maxBytes) {
      isWhole = false;
      continue;
    }
    const look = lookOnce(text);
    looks.push(look);
    for (const imported of look.imports.flatMap((specifier) => resolveImport(specifier, file))) {
      if (seen.has(imported)) continue;
      seen.add(imported);
      waiting.push(imported);
    }
  }
  const isOpen = looks.some((look) => look.isOpen);
  const names = new Set(looks.flatMap((look) => [...look.names, ...(isOpen ? look.words : [])]));
  return { names: [...names].sort().slice(0, maxNames), isWhole: isWhole && names.size <= maxNames };
}

/** Whether a text can be the name of a variable, as shells, hosts and we take it. */
export function isVariableName(text: unknown): text is string {
  return typeof text === "string" && text.length <= 256 && /^[A-Za-z_]\w*$/.test(text);
}

function sourcesBelow(folder: string): string[] {
  return foldersBelow(folder).flatMap((one) =>
    namesIn(one)
      .filter((name) => endings.includes(path.extname(name)) && !besideCode.test(name))
      .sort()
      .map((name) => path.join(one, name)),
  );
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function toReal(file: string): string[] {
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? [realpathSync(file)] : [];
}

function readSource(file: string): string | undefined {
  try {
    return statSync(file).size > maxFileBytes ? undefined : readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

/** As Node and the transpiler find it; nothing for what is not there. */
function resolveImport(specifier: string, from: string): string[] {
  const bare = specifier.replace(/[?#].*$/, "");
  const target = bare.startsWith("file:") ? fromUrl(bare) : path.resolve(path.dirname(from), bare);
  if (target === undefined) return [];
  const written = /\.[cm]?jsx?$/.test(target) ? [target, target.replace(/\.([cm]?)js(x?)$/, ".$1ts$2")] : [target];
  const guessed = endings.flatMap((ending) => [`${target}${ending}`, path.join(target, `index${ending}`)]);
  return [...written, ...guessed]
    .flatMap(toReal)
    .filter((file) => endings.includes(path.extname(file)))
    .slice(0, 1);
}

function fromUrl(url: string): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    return undefined;
  }
}

/**
 * What was found in texts, by their digests: a daemon looks again with every change, and most files are as they were.
 */
const known = new Map<string, Look>();

function lookOnce(text: string): Look {
  const digest = createHash("sha256").update(text).digest("base64");
  const look = known.get(digest) ?? lookAt(text);
  if (known.size > 2 * maxFiles) known.clear();
  known.set(digest, look);
  return look;
}

const importPattern = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*(["'`])((?:\.|\/|file:)[^"'`$\n]*)\1/g;
const capitals = /(?<![\w$])[A-Z_][A-Z0-9_]+(?![\w$])/g;

function lookAt(text: string): Look {
  const imports = [...text.matchAll(importPattern)].map((match) => match[2] as string);
  const words = [...new Set(text.match(capitals))].filter(isVariableName);
  if (!/\benv\b/.test(text)) return { names: [], words, isOpen: false, imports };
  const reader = new Reader(text);
  reader.read();
  return { names: [...reader.names].filter(isVariableName), words, isOpen: reader.isOpen, imports };
}

const processModule = `["'](?:node:)?process["']`;
const importsOfProcess = new RegExp(`\\bimport\\s+([^"';]{1,500}?)\\s+from\\s*${processModule}`, "g");
/** `{ env } = process`, and the same of what the module is required as. */
const takenFromProcess = new RegExp(
  `\\{([^{}]{0,500})\\}\\s*=\\s*(?:globalThis\\s*\\.\\s*)?(?:process(?![\\w$])(?!\\s*[.?[])|require\\(\\s*${processModule}\\s*\\)(?!\\s*[.?[]))`,
  "g",
);
const processAs = new RegExp(`([\\w$]+)\\s*=\\s*require\\(\\s*${processModule}\\s*\\)(?!\\s*[.?[])`, "g");

const dotted = /\s*!?\s*(?:\?\.|\.)\s*([A-Za-z_$][\w$]*)/y;
const indexed = /\s*!?\s*(?:\?\.\s*)?\[\s*(["'`])([^"'`$\\]*)\1\s*\]/y;
const asType = /\s+as\s[^();,]*\)/y;
const asKey = /\s*\??:/y;
const destructured = /\{([^{}]*)\}\s*(?::[^=;{}]*)?=\s*$/;
const assigned = /(?<![\w$.])([A-Za-z_$][\w$]*)\s*(?::[^=;{}(),]*)?=\s*$/;
/** How far back a declaration is looked for. */
const maxDeclaration = 4_000;

/** Finds, in one text, what the environment goes by there, and what is read from it. */
class Reader {
  readonly names = new Set<string>();
  isOpen = false;
  #text: string;
  readonly #processes = new Set(["process"]);
  /** Other names of process.env. */
  readonly #aliases = new Set<string>();

  constructor(text: string) {
    this.#text = text;
  }

  read(): void {
    this.#hide(importsOfProcess, (clause) => this.#readImport(clause));
    this.#hide(takenFromProcess, (list) => this.#readTaken(list, ":"));
    this.#hide(processAs, (name) => this.#processes.add(name));
    // Each turn may bring another name for it, which the next one looks for.
    for (let known = -1; known !== this.#aliases.size && known < 50; ) {
      known = this.#aliases.size;
      this.#readUses();
    }
  }

  /** A declaration is no use. */
  #hide(pattern: RegExp, read: (part: string) => void): void {
    this.#text = this.#text.replaceAll(pattern, (whole, part: string) => {
      read(part);
      return " ".repeat(whole.length);
    });
  }

  #readImport(clause: string): void {
    const [, own] = /^\s*(?!type\s)([\w$]+)/.exec(clause) ?? [];
    const [, all] = /\*\s*as\s+([\w$]+)/.exec(clause) ?? [];
    for (const name of [own, all]) if (name !== undefined) this.#processes.add(name);
    this.#readTaken(/\{([^}]*)\}/.exec(clause)?.[1] ?? "", "as");
  }

  #readTaken(list: string, renames: "as" | ":"): void {
    const pattern = renames === "as" ? /^env(?:\s+as\s+([\w$]+))?$/ : /^env(?:\s*:\s*([\w$]+))?$/;
    for (const item of list.split(",")) {
      const match = pattern.exec(item.trim());
      if (match !== null) this.#aliases.add(match[1] ?? "env");
    }
  }

  #readUses(): void {
    const either = (names: ReadonlySet<string>) => [...names].map((name) => name.replaceAll("$", "\\$")).join("|");
    const ofProcess = `(?:globalThis\\s*\\.\\s*|global\\s*\\.\\s*)?(?:${either(this.#processes)})\\s*(?:!?\\.|\\?\\.)\\s*env|(?:${either(this.#processes)})\\s*\\[\\s*["']env["']\\s*\\]`;
    const all = this.#aliases.size === 0 ? ofProcess : `${ofProcess}|${either(this.#aliases)}`;
    // Of something else's property nothing is known; three dots spread it.
    const pattern = new RegExp(`(?<![\\w$])(?<!(?:^|[^.])\\.)(?:${all})(?![\\w$])`, "g");
    for (const match of this.#text.matchAll(pattern)) this.#readUse(match.index, match.index + match[0].length);
  }

  #readUse(start: number, end: number): void {
    const text = this.#text;
    const before = text.slice(Math.max(0, start - maxDeclaration), start);
    // `(process.env as Env).NAME`, but not `parse(process.env).NAME`.
    const after = /(?:^|[^\w$)\s])\s*\(\s*$/.test(before) ? (endOf(asType, text, end) ?? end) : end;
    const name = at(dotted, text, after)?.[1] ?? at(indexed, text, after)?.[2];
    if (name !== undefined) {
      // What every object has says nothing about which variable is meant.
      if (name in Object.prototype) this.isOpen = true;
      else this.names.add(name);
      return;
    }
    if (this.#aliases.has(text.slice(start, end)) && at(asKey, text, end) !== undefined) return;
    const list = destructured.exec(before)?.[1];
    const alias = assigned.exec(before)?.[1];
    const isAlias =
      alias !== undefined && at(/\s*(?:[;,)\n]|$)/y, text, end) !== undefined && !/\bexport\s[^;{}]*$/.test(before);
    if (list !== undefined) this.#readList(list);
    else if (isAlias) this.#aliases.add(alias);
    else this.isOpen = true;
  }

  /** `A, B: b, C = "x"`. What follows three dots is all the rest. */
  #readList(list: string): void {
    for (const item of list.split(",")) {
      const name = /^\s*(?:([A-Za-z_$][\w$]*)|["']([^"']*)["']\s*:)/.exec(item);
      if (name !== null) this.names.add((name[1] ?? name[2]) as string);
      else if (item.trim() !== "") this.isOpen = true;
    }
  }
}

function at(pattern: RegExp, text: string, index: number): RegExpExecArray | undefined {
  pattern.lastIndex = index;
  return pattern.exec(text) ?? undefined;
}

function endOf(pattern: RegExp, text: string, index: number): number | undefined {
  return at(pattern, text, index) === undefined ? undefined : pattern.lastIndex;
}
