import { createHash } from "node:crypto";
import { readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { type CatalogEntry, type ListedCommand, type LoadProblem, listedOf } from "../command/catalog.ts";
import type { Command, DescribedCommand } from "../command/command.ts";
import { discover, type FoundCommand } from "../command/discover.ts";
import { loadEntry } from "../command/load-entry.ts";
import { createGoneCheck, type Home, isBundledFile, writePrivately } from "../paths.ts";
import { thisProgram } from "../program/program.ts";

/**
 * What help and completion show of a project's commands, kept by whoever loads them, so that nothing has to be run for
 * a Tab. One file a command folder or hook, in the user's home; an entry counts for the very bytes of the command file it was
 * made from. What such a file imports may change without it.
 */

/** A larger file is no command's; a pipe would never end. */
const maxSourceBytes = 1024 * 1024;
const maxCommandBytes = 256 * 1024;
const maxCatalogBytes = 4 * 1024 * 1024;
const maxCatalogs = 200;
/** What nobody takes for an option, and a shell for nothing but a word. */
const wordPattern = /^[A-Za-z][\w.-]{0,127}$/;

type Loaded = CatalogEntry | LoadProblem;

interface StoredCommand {
  readonly summary: string;
  readonly description?: string;
  readonly inputSchema: DescribedCommand["inputSchema"];
  readonly positional: readonly string[];
  readonly examples: readonly string[];
  readonly asks: boolean;
  /** The arguments that have a completer of their own. */
  readonly completers: readonly string[];
  /** What lists show beside the summary, the description and the input schema; absent for tools of other servers. */
  readonly listed?: Omit<ListedCommand, "summary" | "description" | "inputSchema" | "foreign">;
}

/** By the path below the folder, or a hook's tool. Without a command, the file could not be loaded. */
type Stored = Readonly<
  Record<string, { readonly digest: string; readonly command?: StoredCommand; readonly servedAs?: string }>
>;

export class StoredCatalog {
  readonly #home: Home;
  readonly #isHomeGone: () => boolean;
  readonly #folders: readonly string[];
  readonly #read = new Map<string, Stored>();

  constructor(home: Home, folders: readonly string[]) {
    this.#home = home;
    this.#isHomeGone = createGoneCheck(home);
    this.#folders = folders;
  }

  /**
   * A bundled command, one of an author's program, or one of the project's as it was last loaded; undefined when its
   * file has not been loaded as it is.
   */
  async describe(found: FoundCommand): Promise<DescribedCommand | undefined> {
    if (found.isHooked !== true && found.upstream === undefined && isPartOfProgram(found.file)) {
      const entry = await loadEntry(found);
      return "command" in entry ? entry.command : undefined;
    }
    const command = this.#find(found)?.command;
    return command === undefined ? undefined : toDescribed(command);
  }

  /**
   * What lists show of a command: undefined when its file has not been loaded as it is, "broken" when that could not be
   * loaded.
   */
  listed(found: FoundCommand): ListedCommand | "broken" | undefined {
    const stored = this.#find(found);
    if (stored === undefined || stored.command === undefined) return stored && "broken";
    const { summary, description, inputSchema, listed } = stored.command;
    return listed && { ...listed, outputSchema: listed.outputSchema, summary, description, inputSchema };
  }

  /** Whether this command file, or the file whose hook registers it, was loaded before, byte by byte. */
  knows(found: FoundCommand): boolean {
    return this.#find(found) !== undefined;
  }

  /** What the hook of this file registered when it was last asked; only what can be typed without a second thought. */
  findHooked(hookFile: string): FoundCommand[] {
    return Object.keys(this.#open(hookFile))
      .filter((toolName) => wordPattern.test(toolName))
      .map((toolName) => ({ file: hookFile, path: [toolName], toolName, isHooked: true }));
  }

  /**
   * For whoever is about to ask the hook of this file: keeps what it registers, in place of what was known of it, as
   * long as the file stays as it is.
   */
  keeperOf(hookFile: string): (registered: readonly CatalogEntry[]) => void {
    const digest = digestOf(hookFile);
    return (registered) => {
      if (digest === undefined || digestOf(hookFile) !== digest) return;
      const stored = new Map(
        registered.map(({ toolName, command }) => [toolName, { digest, command: toStored(command) }]),
      );
      try {
        this.#write(hookFile, stored);
      } catch {
        // As with commands in files.
      }
    };
  }

  /** What an upstream of a project listed when it was last asked; only what can be typed without a second thought. */
  findUpstream(project: string, upstream: string): FoundCommand[] {
    const file = placeOf(project, upstream);
    return Object.entries(this.#open(file))
      .filter(([toolName]) => wordPattern.test(toolName))
      .map(([toolName, { servedAs }]) => ({
        ...{ file, path: [upstream, toolName], toolName, upstream },
        ...(typeof servedAs === "string" && { servedAs }),
      }));
  }

  /** Keeps what an upstream lists, by its own names. */
  keepUpstream(project: string, upstream: string, entries: readonly CatalogEntry[]): void {
    const stored = entries.map(
      ({ toolName, command }) =>
        [
          String(command.foreign?.listing.name ?? toolName),
          { digest: "", command: toStored(command), servedAs: toolName },
        ] as const,
    );
    try {
      if (stored.length > 0) this.#write(placeOf(project, upstream), new Map(stored));
    } catch {
      // As with commands in files.
    }
  }

  /** Whether every command file of the project is one that was loaded before, byte by byte. */
  isComplete(): boolean {
    const found = this.#folders.flatMap(discover);
    return found.every((one) => isPartOfProgram(one.file) || this.knows(one));
  }

  /** Keeps what was loaded, in place of what was known of the same files. */
  keep(loaded: readonly Loaded[]): void {
    try {
      for (const folder of this.#folders) {
        const inFolder = loaded.filter(({ file }) => isBelow(file, folder));
        if (inFolder.length > 0) this.#keepIn(folder, inFolder);
      }
    } catch {
      // Help and completion know less then; an unusable home is reported by whoever needs it.
    }
  }

  #find({ file, toolName, isHooked, upstream }: FoundCommand): Stored[string] | undefined {
    if (upstream !== undefined) return this.#open(file)[toolName];
    const stored = isHooked === true ? this.#open(file)[toolName] : this.#findFile(file);
    return stored && stored.digest === digestOf(file) ? stored : undefined;
  }

  #findFile(file: string): Stored[string] | undefined {
    const folder = this.#folders.find((one) => isBelow(file, one));
    return folder === undefined ? undefined : this.#open(folder)[path.relative(folder, file)];
  }

  #open(folder: string): Stored {
    const known = this.#read.get(folder) ?? readCatalog(this.#fileOf(folder));
    this.#read.set(folder, known);
    return known;
  }

  #keepIn(folder: string, loaded: readonly Loaded[]): void {
    const before = readCatalog(this.#fileOf(folder));
    const stored = new Map(
      Object.entries(before).filter(
        ([name]) => statSync(path.join(folder, name), { throwIfNoEntry: false }) !== undefined,
      ),
    );
    for (const item of loaded) {
      const digest = digestOf(item.file);
      if (digest !== undefined)
        stored.set(path.relative(folder, item.file), {
          digest,
          ...("command" in item && { command: toStored(item.command) }),
        });
    }
    this.#write(folder, stored);
  }

  /** Writes nothing where the home was moved away. */
  #write(place: string, stored: ReadonlyMap<string, Stored[string]>): void {
    if (this.#isHomeGone()) return;
    const file = this.#fileOf(place);
    const next = withinBounds(stored);
    if (JSON.stringify(next) === JSON.stringify(readCatalog(file))) return;
    writePrivately(file, JSON.stringify(next));
    this.#read.delete(place);
    removeOldest(this.#home.catalogFolder);
  }

  #fileOf(place: string): string {
    const real = statSync(place, { throwIfNoEntry: false }) === undefined ? place : realpathSync(place);
    return path.join(this.#home.catalogFolder, `${createHash("sha256").update(real).digest("base64url")}.json`);
  }
}

/** What an upstream lists stands in no file of its project. */
function placeOf(project: string, upstream: string): string {
  return `upstream:${project}/${upstream}`;
}

/** Whoever runs a program has said yes to its files; a project's may be anybody's. */
function isPartOfProgram(file: string): boolean {
  return thisProgram.authors !== undefined || isBundledFile(file);
}

function isBelow(file: string, folder: string): boolean {
  return file.startsWith(`${folder}${path.sep}`);
}

function digestOf(file: string): string | undefined {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isFile() !== true || stat.size > maxSourceBytes) return undefined;
  return createHash("sha256").update(readFileSync(file)).digest("base64url");
}

function toStored(command: Command): StoredCommand {
  const { description, positional, examples, confirm, complete } = command;
  const { summary, description: _description, inputSchema, ...listed } = listedOf(command);
  return {
    summary,
    ...(description !== undefined && { description }),
    inputSchema,
    positional,
    examples,
    asks: confirm !== false,
    completers: Object.keys(complete),
    ...(command.foreign === undefined && { listed }),
  };
}

function toDescribed({ asks, completers, description, listed: _listed, ...command }: StoredCommand): DescribedCommand {
  // Whose values only its code knows is remembered, and that code is not run.
  const complete = Object.fromEntries(completers.map((name) => [name, undefined]));
  return { ...command, description, confirm: asks ? "Go ahead?" : false, complete };
}

/** What is too large to be kept is forgotten, and shown as if it had never been loaded. */
function withinBounds(stored: ReadonlyMap<string, Stored[string]>): Stored {
  let bytes = 0;
  const kept = [...stored]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .filter(([name, item]) => {
      const size = name.length + JSON.stringify(item).length;
      if (size > maxCommandBytes || bytes + size > maxCatalogBytes / 2) return false;
      bytes += size;
      return true;
    });
  return Object.fromEntries(kept);
}

/** What is damaged is as good as nothing. */
function readCatalog(file: string): Stored {
  try {
    if (statSync(file).size > maxCatalogBytes) return {};
    const parsed = JSON.parse(readFileSync(file, "utf8")) as unknown;
    return Object.fromEntries(Object.entries(parsed as object).filter(([, item]) => isStored(item)));
  } catch {
    return {};
  }
}

function isStored(item: unknown): boolean {
  const { digest, command } = (item ?? {}) as Record<string, unknown>;
  if (typeof digest !== "string") return false;
  if (command === undefined) return true;
  const {
    summary,
    description = "",
    inputSchema,
    positional,
    examples,
    completers,
    listed = {},
  } = (command ?? {}) as Record<string, unknown>;
  const areTexts = [summary, description].every((text) => typeof text === "string");
  const areLists = [positional, examples, completers].every(
    (list) => Array.isArray(list) && list.every((text) => typeof text === "string"),
  );
  const areObjects = [inputSchema, listed].every((value) => typeof value === "object" && value !== null);
  return areTexts && areLists && areObjects;
}

/** Projects come and go; those that were loaded last are remembered. */
function removeOldest(folder: string): void {
  const files = readdirSync(folder).map((name) => path.join(folder, name));
  if (files.length <= maxCatalogs) return;
  const byAge = files
    .map((file) => ({ file, at: statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.at - a.at);
  for (const { file } of byAge.slice(maxCatalogs)) rmSync(file, { force: true });
}
