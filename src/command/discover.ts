import { type Dirent, readdirSync } from "node:fs";
import path from "node:path";
import { RuntimeError } from "../errors.ts";
import { isBundledFile, toReal } from "../paths.ts";
import { system } from "../system/system.ts";
import type { Command } from "./command.ts";
import { problemOfName, toToolName } from "./names.ts";

/** A file that should hold a command, named by where it lies. */
export interface FoundCommand {
  readonly file: string;
  /** The words typed after `meanwhile`, e.g. ["report", "build"]. */
  readonly path: readonly string[];
  /** The MCP tool's name, without a prefix, e.g. report_build. */
  readonly toolName: string;
  /** The file is a symbolic link. */
  readonly isLink?: boolean;
  /** Set when the name itself cannot be used. */
  readonly problem?: string;
  /** Set when it was handed over in code, and there is no file. */
  readonly command?: Command;
  /** Registered in the `mcp` hook of this file when that was last asked. */
  readonly isHooked?: boolean;
  /** The upstream whose tool it is; `toolName` is its own name for it. */
  readonly upstream?: string;
  /** What clients know such a tool by, as far as that is known. */
  readonly servedAs?: string;
}

const extensions = new Set([".ts", ".js", ".mjs"]);
/** What a command, or a file beside it that it imports, is run from. */
const codeExtensions = new Set([...extensions, ".cjs", ".mts", ".cts", ".json"]);

/**
 * Lists the command files below a folder, sorted; loads none. A missing folder has none. Throws when a stranger wrote
 * the folder or a file of code below it, or anybody may: it would be run as this user.
 */
export function discover(folder: string): FoundCommand[] {
  const read = readOnce();
  refuseStrangers(folder, read);
  const found: FoundCommand[] = [];
  walk({ folder, words: [], read }, found);
  return found.sort((a, b) => (a.toolName < b.toolName ? -1 : a.toolName > b.toolName ? 1 : 0));
}

/**
 * The folder and every folder below it that may hold commands or their helpers; below one that cannot be read there are
 * none.
 */
export function foldersBelow(folder: string): string[] {
  return [...eachFolderBelow(folder)];
}

/** One by one: whoever stops early has not walked through everything that a link may lead to. */
function* eachFolderBelow(folder: string, read: ReadFolder = entriesOf): Generator<string> {
  yield folder;
  for (const entry of readableEntriesOf(folder, read)) {
    const mayHelp = isVisible(entry.name) || entry.name.startsWith("_");
    if (entry.isDirectory() && mayHelp) yield* eachFolderBelow(below(folder, entry.name), read);
  }
}

/** Whoever could change the package's own files is trusted already. */
function refuseStrangers(folder: string, read: ReadFolder): void {
  if (isBundledFile(path.join(toReal(folder), "any"))) return;
  for (const one of eachFolderBelow(folder, read)) {
    const files = read(one).filter((entry) => !entry.isDirectory() && codeExtensions.has(path.extname(entry.name)));
    for (const part of [one, ...files.map(({ name }) => below(one, name))]) {
      const refusal = system.refusalOfProjectFile(part);
      if (refusal !== undefined) throw new RuntimeError("CONFIG_INVALID", refusal);
    }
  }
}

interface Walk {
  readonly folder: string;
  readonly words: readonly string[];
  readonly read: ReadFolder;
}

function walk({ folder, words, read }: Walk, found: FoundCommand[]): void {
  for (const entry of read(folder)) {
    if (!isVisible(entry.name)) continue;
    const file = below(folder, entry.name);
    if (entry.isDirectory()) walk({ folder: file, words: [...words, entry.name], read }, found);
    else if (isCommandFile(entry.name)) {
      const named = nameFile(file, words, path.parse(entry.name).name);
      found.push(entry.isSymbolicLink() ? { ...named, isLink: true } : named);
    }
  }
}

/** As `path.join`, which takes most of the time where there are a thousand files. */
function below(folder: string, name: string): string {
  return folder.endsWith(path.sep) ? folder + name : folder + path.sep + name;
}

type ReadFolder = (folder: string) => readonly Dirent[];

/** Reads each folder once: what is looked through is what was checked. */
function readOnce(): ReadFolder {
  const known = new Map<string, readonly Dirent[]>();
  return (folder) => {
    const entries = known.get(folder) ?? entriesOf(folder);
    known.set(folder, entries);
    return entries;
  };
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["ENOENT", "ENOTDIR"].includes(code)) return [];
    throw new RuntimeError(
      "CONFIG_INVALID",
      `${folder} cannot be read (${code}), and commands are looked for in it; chmod u+rx it, or move it elsewhere.`,
    );
  }
}

function readableEntriesOf(folder: string, read: ReadFolder): readonly Dirent[] {
  try {
    return read(folder);
  } catch {
    return [];
  }
}

function isVisible(name: string): boolean {
  return !name.startsWith("_") && !name.startsWith(".") && name !== "node_modules";
}

/** Two dots mean something beside a command: build.test.ts, types.d.ts. */
function isCommandFile(name: string): boolean {
  const { name: stem, ext } = path.parse(name);
  return extensions.has(ext) && !stem.includes(".");
}

function nameFile(file: string, words: readonly string[], stem: string): FoundCommand {
  const isDomainItself = words.length > 0 && (stem === "index" || stem === words.at(-1));
  const commandPath = isDomainItself ? words : [...words, stem];
  const toolName = toToolName(commandPath);
  const problem = problemOfName(commandPath, { domain: "the folder", whole: "the file or folder name" });
  return { file, path: commandPath, toolName, ...(problem !== undefined && { problem }) };
}
