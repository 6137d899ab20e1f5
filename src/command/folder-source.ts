import type { Clock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import { toToolAliases } from "./aliases.ts";
import { settleBuiltins } from "./builtins.ts";
import type { CatalogEntry, LoadProblem } from "./catalog.ts";
import { clash, describeClash } from "./clashes.ts";
import { discover, type FoundCommand } from "./discover.ts";
import { forgetModules, importsOutside } from "./load.ts";
import { loadEntry } from "./load-entry.ts";
import { withPrefix } from "./names.ts";
import type { CommandSource } from "./source.ts";
import { watchFolders } from "./watch.ts";

export interface FolderOptions {
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

export interface LiveFolderOptions extends FolderOptions {
  readonly clock: Clock;
  /**
   * False when the files as they are now are for another process to load: then what was loaded stays. Asked with every
   * change, before anything is loaded.
   */
  readonly mayReload?: ((folders: readonly string[]) => boolean) | undefined;
  /** Live folders are served, and to strangers too: nobody may forget to say it. */
  readonly isBundled: (file: string) => boolean;
}

/** Loads every command below the folders. Two of one name is an error; a broken file is a problem of its own. */
export async function openFolders(options: FolderOptions): Promise<CommandSource> {
  return new FolderSource(options.folders, await loadAll(options));
}

/** The same, kept up to date while files are changed, added or removed. */
export async function openLiveFolders(options: LiveFolderOptions): Promise<CommandSource> {
  const source = new FolderSource(options.folders, await loadAll(options));
  const { isServed = () => true, log } = options;
  const onChange = async (changed: readonly string[]) => {
    for (const folder of changed.filter((one) => !isServed(one)))
      log.warn(
        `${folder} has come after this server started, so nothing in it is loaded; start the server again to serve it`,
      );
    const served = changed.filter((one) => isServed(one));
    if (served.length === 0 || options.mayReload?.(options.folders.filter(isServed)) === false) return;
    forgetModules(served);
    try {
      source.replace(await loadAll(options));
      log.info("commands reloaded", { commands: source.entries.length, problems: source.problems.length });
    } catch (error) {
      log.error(`commands not reloaded: ${messageOf(error)}`);
      source.fail(`its commands are as they were, because they could not be loaded again: ${messageOf(error)}`);
    }
  };
  source.closeWith(watchFolders({ ...options, others: () => importsOutside(options.folders), onChange }));
  return source;
}

interface Loaded {
  readonly entries: readonly CatalogEntry[];
  readonly problems: readonly LoadProblem[];
}

class FolderSource implements CommandSource {
  readonly name: string;
  entries: readonly CatalogEntry[];
  problems: readonly LoadProblem[];
  trouble: string | undefined;
  readonly #listeners = new Set<() => void>();
  #stopWatching: () => void = () => {};

  constructor(folders: readonly string[], { entries, problems }: Loaded) {
    this.name = `the ${folders.length === 1 ? "folder" : "folders"} ${folders.join(", ")}`;
    this.entries = entries;
    this.problems = problems;
  }

  replace({ entries, problems }: Loaded): void {
    this.entries = entries;
    this.problems = problems;
    this.trouble = undefined;
    for (const listener of this.#listeners) listener();
  }

  fail(trouble: string): void {
    this.trouble = trouble;
    for (const listener of this.#listeners) listener();
  }

  get(toolName: string): CatalogEntry | undefined {
    return this.entries.find((entry) => entry.toolName === toolName);
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

async function loadAll(options: FolderOptions): Promise<Loaded> {
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
  return { entries, problems };
}

function refuseClashes(found: readonly FoundCommand[], isBundled: FolderOptions["isBundled"] = () => false): void {
  const toClaimant = ({ file, path: words }: FoundCommand) => ({
    place: file,
    bundledDomain: isBundled(file) ? words[0] : undefined,
  });
  const known = new Map<string, FoundCommand>();
  for (const one of found) {
    const other = known.get(one.toolName);
    if (other !== undefined) throw clash(describeClash(one.toolName, toClaimant(other), toClaimant(one)));
    known.set(one.toolName, one);
  }
}

function withAliases(entry: CatalogEntry, prefix: string): CatalogEntry | LoadProblem {
  const { toolName, file, command } = entry;
  // What an older copy of the package has made knows of none.
  const aliases = toToolAliases(command.aliases ?? [], toolName, prefix);
  if (typeof aliases === "string") return { toolName, file, text: aliases };
  return aliases.length === 0 ? entry : { ...entry, aliases };
}

/** A name that is not in any list must not take a call from a tool that is, nor from another of its kind. */
function refuseAliasClashes(entries: readonly CatalogEntry[], found: readonly FoundCommand[]): void {
  const tools = new Map(found.map(({ toolName, file }) => [toolName, file]));
  const aliases = new Map<string, string>();
  for (const { toolName, file, command, aliases: names = [] } of entries) {
    const own = { place: file, isAlias: true };
    for (const [at, { name }] of names.entries()) {
      if (name === toolName) {
        if (command.aliases[at]?.name !== undefined)
          throw clash(`${file} has its own name ${name} among its \`aliases\`; take it out.`);
        continue;
      }
      const tool = tools.get(name);
      if (tool !== undefined) throw clash(describeClash(name, own, { place: tool }));
      const other = aliases.get(name);
      if (other !== undefined) throw clash(describeClash(name, { place: other, isAlias: true }, own));
      aliases.set(name, file);
    }
  }
}
