import { existsSync, readFileSync, realpathSync } from "node:fs";
import path from "node:path";
import { type Clock, systemClock, within } from "../clock.ts";
import { messageOf, RuntimeError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { ToolAlias } from "./aliases.ts";
import { settleBuiltins } from "./builtins.ts";
import { type Command, isCommand } from "./command.ts";
import { discover, type FoundCommand, maxToolNameLength } from "./discover.ts";
import { forgetModules, importsOutside, loadModule } from "./load.ts";
import { placeOf, type SourcePlace } from "./place.ts";
import { watchFolders } from "./watch.ts";

const loadTimeoutMs = 10_000;

/** A loaded command and the names it goes by. */
export interface CatalogEntry {
  readonly toolName: string;
  readonly path: readonly string[];
  readonly file: string;
  readonly command: Command;
  /** Other names the tool answers to. Its own is among them where its arguments have other names. */
  readonly aliases?: readonly ToolAlias[];
  /**
   * Comes with Meanwhile, and reaches the user's own files and settings: callers whom nobody knows have nothing of it.
   */
  readonly isBundled?: boolean;
}

/** A command file that could not be loaded, and why. */
export interface LoadProblem {
  readonly toolName: string;
  readonly file: string;
  readonly text: string;
  readonly isBundled?: boolean;
}

/** All commands by name. */
export interface Catalog {
  /** In a stable order, by tool name. */
  readonly entries: readonly CatalogEntry[];
  readonly problems: readonly LoadProblem[];
  /** Grows with every change. */
  readonly revision: number;
  /** By a tool's name, or another one it answers to. */
  get(toolName: string): CatalogEntry | undefined;
  problemOf(toolName: string): LoadProblem | undefined;
  onChange(listener: () => void): () => void;
  close(): void;
}

export interface CatalogOptions {
  readonly folders: readonly string[];
  readonly toolPrefix: string;
  readonly log: Logger;
  /** Whether a command file comes with Meanwhile; left out where everybody may see everything. */
  readonly isBundled?: (file: string) => boolean;
  /** Which of the commands that were found are served, asked again after each change. Without it, all are. */
  readonly select?: (found: readonly FoundCommand[]) => readonly FoundCommand[];
  /** False for a folder whose files must not be loaded, now; asked again after each change. Without it, all are. */
  readonly isServed?: (folder: string) => boolean;
  /** Told what was loaded, each time. */
  readonly onLoad?: (loaded: readonly (CatalogEntry | LoadProblem)[]) => void;
}

/** Loads every command below the folders. Two of one name is an error; a broken file is a problem of its own. */
export async function openCatalog(options: CatalogOptions): Promise<Catalog> {
  return new LoadedCatalog(await loadAll(options));
}

/** The commands of this very process, by their tools' names. */
export function catalogOf(commands: Readonly<Record<string, Command>>): Catalog {
  const entries = Object.entries(commands).map(([toolName, command]) => ({
    toolName,
    path: toolName.split("_"),
    file: "",
    command,
  }));
  return new LoadedCatalog({ entries, problems: [] });
}

export interface LiveCatalogOptions extends CatalogOptions {
  readonly clock: Clock;
  /**
   * False when the files as they are now are for another process to load: then what was loaded stays. Asked with every
   * change, before anything is loaded.
   */
  readonly mayReload?: (folders: readonly string[]) => boolean;
  /** Live catalogs are served, and to strangers too: nobody may forget to say it. */
  readonly isBundled: (file: string) => boolean;
}

/** The same, kept up to date while files are changed, added or removed. */
export async function openLiveCatalog(options: LiveCatalogOptions): Promise<Catalog> {
  const catalog = new LoadedCatalog(await loadAll(options));
  catalog.closeWith(
    watchFolders({
      ...options,
      others: () => importsOutside(options.folders),
      onChange: async (changed) => {
        const { isServed = () => true, log } = options;
        for (const folder of changed.filter((one) => !isServed(one)))
          log.warn(
            `${folder} has come after this server started, so nothing in it is loaded; start the server again to serve it`,
          );
        const served = changed.filter((one) => isServed(one));
        if (served.length === 0 || options.mayReload?.(options.folders.filter(isServed)) === false) return;
        forgetModules(served);
        try {
          catalog.replace(await loadAll(options));
          options.log.info("commands reloaded", {
            commands: catalog.entries.length,
            problems: catalog.problems.length,
          });
        } catch (error) {
          options.log.error(`commands not reloaded: ${messageOf(error)}`);
        }
      },
    }),
  );
  return catalog;
}

interface Loaded {
  readonly entries: readonly CatalogEntry[];
  readonly problems: readonly LoadProblem[];
}

/** The catalog as callers see it whom nobody knows: what is bundled is not there, by no name and in no list. */
export function withoutBundled(catalog: Catalog): Catalog {
  let seen: { revision: number; entries: readonly CatalogEntry[] } | undefined;
  const unlessBundled = <T extends { readonly isBundled?: boolean }>(item: T | undefined) =>
    item?.isBundled === true ? undefined : item;
  return {
    get entries() {
      if (seen?.revision !== catalog.revision)
        seen = { revision: catalog.revision, entries: catalog.entries.filter((entry) => entry.isBundled !== true) };
      return seen.entries;
    },
    get problems() {
      return catalog.problems.filter((problem) => problem.isBundled !== true);
    },
    get revision() {
      return catalog.revision;
    },
    get: (toolName) => unlessBundled(catalog.get(toolName)),
    problemOf: (toolName) => unlessBundled(catalog.problemOf(toolName)),
    onChange: (listener) => catalog.onChange(listener),
    close: () => catalog.close(),
  };
}

class LoadedCatalog implements Catalog {
  entries: readonly CatalogEntry[] = [];
  problems: readonly LoadProblem[] = [];
  revision = 0;
  #byName = new Map<string, CatalogEntry>();
  readonly #listeners = new Set<() => void>();
  #stopWatching: () => void = () => {};

  constructor(loaded: Loaded) {
    this.replace(loaded);
  }

  replace(loaded: Loaded): void {
    this.entries = loaded.entries;
    this.problems = loaded.problems;
    const named = loaded.entries.flatMap((entry) => [
      ...(entry.aliases ?? []).map(({ name }) => [name, entry] as const),
      [entry.toolName, entry] as const,
    ]);
    this.#byName = new Map(named);
    this.revision += 1;
    for (const listener of this.#listeners) listener();
  }

  get(toolName: string): CatalogEntry | undefined {
    return this.#byName.get(toolName);
  }

  problemOf(toolName: string): LoadProblem | undefined {
    return this.problems.find((problem) => problem.toolName === toolName);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  closeWith(stop: () => void): void {
    this.#stopWatching = stop;
  }

  close(): void {
    this.#stopWatching();
    this.#listeners.clear();
  }
}

async function loadAll(options: CatalogOptions): Promise<Loaded> {
  const { isServed = () => true, select = (all) => all } = options;
  const found = select(options.folders.filter((folder) => isServed(folder)).flatMap(discover)).map((item) =>
    withPrefix(item, options.toolPrefix),
  );
  refuseClashes(found, options.isBundled);
  const loaded = (await Promise.all(found.map(loadEntry))).map((item): CatalogEntry | LoadProblem => ({
    ...("command" in item ? withAliases(item, options.toolPrefix) : item),
    isBundled: options.isBundled?.(item.file) ?? false,
  }));
  const changes = settleBuiltins();
  if (changes.length > 0) {
    const folders = options.folders.join(", ");
    options.log.error(
      `while the commands of ${folders} were loaded, ${changes.join(", ")}; that was undone, because every command would inherit it`,
    );
  }
  options.onLoad?.(loaded);
  const entries = loaded.filter((item): item is CatalogEntry => "command" in item);
  const problems = loaded.filter((item): item is LoadProblem => "text" in item);
  refuseAliasClashes(entries, found);
  for (const problem of problems) options.log.error(`command not loaded: ${problem.file}: ${problem.text}`);
  return { entries: entries.sort((a, b) => (a.toolName < b.toolName ? -1 : 1)), problems };
}

function withPrefix(found: FoundCommand, prefix: string): FoundCommand {
  if (prefix === "") return found;
  const toolName = `${prefix}_${found.toolName}`;
  const isTooLong = found.problem === undefined && toolName.length > maxToolNameLength;
  return {
    ...found,
    toolName,
    ...(isTooLong
      ? {
          problem: `its tool name ${toolName} has ${toolName.length} characters, at most ${maxToolNameLength} are allowed; shorten toolPrefix or the name`,
        }
      : {}),
  };
}

function refuseClashes(found: readonly FoundCommand[], isBundled: CatalogOptions["isBundled"] = () => false): void {
  const files = new Map<string, string>();
  for (const { toolName, file, path: words } of found) {
    const other = files.get(toolName);
    if (other !== undefined) {
      const cure = isBundled(file) || isBundled(other) ? cureOfBundled(words[0] ?? "") : "rename one";
      throw new RuntimeError("COMMAND_CLASH", `Two commands are called ${toolName}: ${other} and ${file}; ${cure}.`);
    }
    files.set(toolName, file);
  }
}

function cureOfBundled(domain: string): string {
  return `rename yours, or leave the bundled one out: --no-bundled, or in the config \`bundled: false\` or a list of domains without ${domain}`;
}

function withAliases(entry: CatalogEntry, prefix: string): CatalogEntry | LoadProblem {
  // What an older copy of the package has made knows of none.
  const { aliases: given = [] } = entry.command;
  const aliases = given.map((alias) => ({
    ...alias,
    name: alias.name === undefined ? entry.toolName : prefix === "" ? alias.name : `${prefix}_${alias.name}`,
  }));
  const long = aliases.find(({ name }) => name.length > maxToolNameLength)?.name;
  if (long === undefined) return aliases.length === 0 ? entry : { ...entry, aliases };
  const text = `its alias ${long} has ${long.length} characters, at most ${maxToolNameLength} are allowed; shorten ${prefix === "" ? "it" : "toolPrefix or the alias"}`;
  return { toolName: entry.toolName, file: entry.file, text };
}

/** A name that is not in any list must not take a call from a tool that is, nor from another of its kind. */
function refuseAliasClashes(entries: readonly CatalogEntry[], found: readonly FoundCommand[]): void {
  const tools = new Map(found.map(({ toolName, file }) => [toolName, file]));
  const aliases = new Map<string, string>();
  const clash = (text: string) => new RuntimeError("COMMAND_CLASH", text);
  for (const { toolName, file, command, aliases: names = [] } of entries) {
    for (const [at, { name }] of names.entries()) {
      if (name === toolName) {
        if (command.aliases[at]?.name !== undefined)
          throw clash(`${file} has its own name ${name} among its \`aliases\`; take it out.`);
        continue;
      }
      const tool = tools.get(name);
      if (tool !== undefined)
        throw clash(
          `The alias ${name} of ${file} is the name of another tool, ${tool}; take the alias out, or rename the tool.`,
        );
      const other = aliases.get(name);
      if (other !== undefined)
        throw clash(`Two commands have the alias ${name}: ${other} and ${file}; take it out of one.`);
      aliases.set(name, file);
    }
  }
}

/** Loads one command file; what is wrong with it becomes a problem, not an exception. */
export async function loadEntry(found: FoundCommand): Promise<CatalogEntry | LoadProblem> {
  const { file, toolName, path: words } = found;
  const problem = (text: string): LoadProblem => ({ toolName, file, text });
  if (found.problem !== undefined) return problem(found.problem);
  try {
    // A file that waits for something that never comes must not keep the others from being served.
    const loaded = await within(systemClock, loadTimeoutMs, loadModule(file), () => {
      throw new Error(`it did not finish loading within ${loadTimeoutMs / 1000} s; a top-level await that never ends?`);
    });
    const exported = loaded.default;
    if (!isCommand(exported))
      return problem(
        `its default export is ${exported === undefined ? "missing" : "not a command"}; write: export default defineCommand({ … })`,
      );
    return { toolName, path: words, file, command: exported };
  } catch (error) {
    return problem(describeLoadError(error, file));
  }
}

function describeLoadError(error: unknown, file: string): string {
  const text = messageOf(error).split("\n")[0] ?? "";
  const kind = error instanceof SyntaxError ? "SyntaxError: " : "";
  return `${kind}${text}${whereIn(file, placeOf(error))}${aliasHint(text, file)}`;
}

/** A name that only a tsconfig knows means nothing when the file is run. */
function aliasHint(text: string, file: string): string {
  const name = /^Cannot find package '([^']+)'/.exec(text)?.[1];
  if (name === undefined || !isTsconfigPath(name, path.dirname(file))) return "";
  return "; `paths` of a tsconfig are for the type checker alone: import it by a relative path, or give it a name in the `imports` of package.json (#lib/…)";
}

function isTsconfigPath(name: string, folder: string): boolean {
  const file = path.join(folder, "tsconfig.json");
  const isNamed =
    existsSync(file) &&
    [`"${name}"`, `"${name.split("/")[0]}/*"`].some((key) => readFileSync(file, "utf8").includes(key));
  const parent = path.dirname(folder);
  return /^[@~]\//.test(name) || isNamed || (parent !== folder && isTsconfigPath(name, parent));
}

/** A line of the file itself, or of another that it imports, by the way from one to the other. */
function whereIn(file: string, place: SourcePlace | undefined): string {
  if (place === undefined) return "";
  const way = path.relative(path.dirname(realpathSync(file)), place.file);
  return way === path.basename(file) ? ` (line ${place.line})` : ` (${way}:${place.line})`;
}
