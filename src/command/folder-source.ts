import { statSync } from "node:fs";
import path from "node:path";
import { type Clock, nextTurn } from "../clock.ts";
import { messageOf, outOfDescriptors } from "../errors.ts";
import type { Logger } from "../log.ts";
import { toToolAliases } from "./aliases.ts";
import { settleBuiltins } from "./builtins.ts";
import type { CatalogEntry, ListedCommand, ListedEntry, LoadProblem, PendingCommand } from "./catalog.ts";
import { clash, describeClash } from "./clashes.ts";
import { discover, type FoundCommand } from "./discover.ts";
import { forgetModules, importsOutside } from "./load.ts";
import { loadEntry } from "./load-entry.ts";
import { withPrefix } from "./names.ts";
import { noteLoading } from "./running.ts";
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
  /** With it, files that could not be loaded for want of file descriptors are loaded again. Default: they are not. */
  readonly clock?: Clock;
  /** How long a file may load, in real milliseconds. Default: 10 s. */
  readonly loadLimitMs?: number;
  /** Called with all commands when every file is loaded, and again after each change. */
  readonly onLoad?: (loaded: readonly (CatalogEntry | LoadProblem)[]) => void;
  /**
   * What lists show of a command whose file has not changed since it was last loaded: undefined when nothing is known of
   * it, "broken" when it could not be loaded. Default: nothing is known.
   */
  readonly readStored?: (found: FoundCommand) => ListedCommand | "broken" | undefined;
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
  /** Default false. True: the files are only found, and each is loaded when it is needed. See `Catalog.load`. */
  readonly isLoadedLate?: boolean | undefined;
}

/** Loads every command below the folders. Two of one name is an error; a broken file is a problem of its own. */
export async function openFolders(options: FolderOptions): Promise<CommandSource> {
  const source = new FolderSource(options);
  await source.loadAll();
  return source;
}

/** The same, kept up to date while files are changed, added or removed. */
export async function openLiveFolders(options: LiveFolderOptions): Promise<CommandSource> {
  const source = new FolderSource(options);
  if (options.isLoadedLate !== true) await source.loadAll();
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
      const next = new FolderSource(options);
      await next.loadAll();
      source.replace(next);
      next.close();
      log.info("commands reloaded", { commands: source.entries.length, problems: source.problems.length });
    } catch (error) {
      log.error(`commands not reloaded: ${messageOf(error)}`);
      source.fail(`its commands are as they were, because they could not be loaded again: ${messageOf(error)}`);
    }
  };
  const watch = () => {
    const others = () => importsOutside(options.folders);
    return watchFolders({
      ...options,
      isOutdated: options.isLoadedLate === true && source.isOutdated(),
      others,
      onChange,
    });
  };
  source.watchWith(watch);
  return source;
}

/** So many files begin to load in one turn of the event loop, so that calls are answered between them. */
const filesPerTurn = 8;
/** Files that could not be loaded for want of file descriptors are loaded again after this time. */
const loadAgainMs = 1_000;

/** A file that was found, and the command as it is before it is loaded. */
interface FoundFile {
  readonly found: FoundCommand;
  readonly pending: PendingCommand;
}

/** The commands below some folders. */
class FolderSource implements CommandSource {
  readonly name: string;
  entries: readonly CatalogEntry[] = [];
  problems: readonly LoadProblem[] = [];
  pending: readonly PendingCommand[] = [];
  trouble: string | undefined;
  readonly #options: FolderOptions;
  /** By tool name. */
  #files: ReadonlyMap<string, FoundFile>;
  readonly #loading = new Map<string, Promise<void>>();
  readonly #loaded = new Map<string, CatalogEntry | LoadProblem>();
  /** Modification times of the loaded files. */
  readonly #times = new Map<string, number | undefined>();
  readonly #listeners = new Set<() => void>();
  #watch: (() => () => void) | undefined;
  #stopWatching: () => void = () => {};
  #cancelLoadAgain: (() => void) | undefined;

  /** Finds the files and loads none. Throws when two have one tool name. */
  constructor(options: FolderOptions) {
    const { folders, toolPrefix } = options;
    this.name = `the ${folders.length === 1 ? "folder" : "folders"} ${folders.join(", ")}`;
    this.#options = options;
    const all = this.#discover().map((item) => withPrefix(item, toolPrefix));
    const isBundled = bundledOnce(options.isBundled);
    refuseClashes(all, isBundled);
    const files = all.map((found) => {
      const { toolName, path: words, file } = found;
      return [toolName, { found, pending: { toolName, path: words, file, isBundled: isBundled(found) } }] as const;
    });
    this.#files = new Map(files);
    this.pending = files.map(([, { pending }]) => pending);
  }

  async load(toolName: string): Promise<void> {
    await this.#loadFile(toolName);
    this.#update();
  }

  async loadAll(): Promise<void> {
    this.#startWatching();
    const loading: Promise<void>[] = [];
    for (const { toolName } of this.pending) {
      loading.push(this.#loadFile(toolName));
      if (loading.length % filesPerTurn === 0) await nextTurn();
    }
    await Promise.all(loading);
    this.#update();
  }

  readStored(): readonly ListedEntry[] | undefined {
    const listed: ListedEntry[] = [];
    for (const pending of this.pending) {
      const found = this.#files.get(pending.toolName)?.found;
      const command = found?.problem === undefined ? found && this.#options.readStored?.(found) : "broken";
      if (command === undefined) return undefined;
      if (command !== "broken") listed.push({ ...pending, command });
    }
    return listed;
  }

  #loadFile(toolName: string): Promise<void> {
    const loading = this.#loading.get(toolName) ?? this.#loadOnce(toolName);
    this.#loading.set(toolName, loading);
    return loading;
  }

  async #loadOnce(toolName: string): Promise<void> {
    const file = this.#files.get(toolName);
    if (file === undefined) return;
    this.#times.set(file.found.file, timeOf(file.found.file));
    const noteEnd = noteLoading(toolName);
    const item = await loadEntry(file.found, this.#options.loadLimitMs).finally(noteEnd);
    if (isTransient(item) && this.#loaded.has(toolName)) return;
    const loaded = "command" in item ? withAliases(item, this.#options.toolPrefix) : item;
    this.#loaded.set(toolName, { ...loaded, isBundled: file.pending.isBundled === true });
  }

  #loadAgainLater(): void {
    const { clock } = this.#options;
    if (clock === undefined || !this.problems.some(isTransient)) return;
    this.#cancelLoadAgain ??= clock.after(loadAgainMs, () => void this.#loadAgain());
  }

  async #loadAgain(): Promise<void> {
    const before = this.problems.filter(isTransient);
    for (const { toolName = "" } of before) await this.#loadOnce(toolName);
    // It was closed or replaced meanwhile.
    if (this.#cancelLoadAgain === undefined) return;
    this.#cancelLoadAgain = undefined;
    this.#take();
    if (this.problems.filter(isTransient).length < before.length) for (const listener of this.#listeners) listener();
    this.#loadAgainLater();
  }

  #stopLoadingAgain(): void {
    this.#cancelLoadAgain?.();
    this.#cancelLoadAgain = undefined;
  }

  /** Takes what was loaded into `entries` and `problems`. */
  #take(): void {
    const loaded = [...this.#files.keys()].flatMap((toolName) => this.#loaded.get(toolName) ?? []);
    this.entries = loaded.filter((item): item is CatalogEntry => "command" in item);
    this.problems = loaded.filter((item): item is LoadProblem => "text" in item);
    if (this.pending.length === 0) this.#options.onLoad?.(loaded.filter((item) => !isTransient(item)));
  }

  /** Takes what was loaded out of `pending`. */
  #update(): void {
    const { log, folders } = this.#options;
    const isNew = ({ toolName }: PendingCommand) => this.#loaded.has(toolName);
    const news = this.pending.filter(isNew).flatMap(({ toolName }) => this.#loaded.get(toolName) ?? []);
    if (news.length === 0) return;
    const changes = settleBuiltins();
    if (changes.length > 0)
      log.error(
        `while the commands of ${folders.join(", ")} were loaded, ${changes.join(", ")}; that was undone, because every command would inherit it`,
      );
    this.pending = this.pending.filter((command) => !isNew(command));
    this.#take();
    if (this.pending.length === 0) this.#startWatching();
    this.#loadAgainLater();
    const transient = news.filter(isTransient).length;
    if (transient > 0) log.error(`${transient} of ${news.length} commands not loaded: ${outOfDescriptors}`);
    for (const item of news)
      if ("text" in item && !isTransient(item)) log.error(`command not loaded: ${item.file}: ${item.text}`);
  }

  replace({ entries, problems }: CommandSource): void {
    this.#stopLoadingAgain();
    this.#files = new Map();
    this.pending = [];
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

  /** Calls `watch` once: now if every file is loaded, else before the pending files are loaded. */
  watchWith(watch: () => () => void): void {
    this.#watch = watch;
    if (this.pending.length === 0) this.#startWatching();
  }

  /** True when files came, went or changed since they were found or loaded. */
  isOutdated(): boolean {
    if ([...this.#times].some(([file, time]) => timeOf(file) !== time)) return true;
    const known = [...this.#files.values()].map(({ found }) => found.file);
    try {
      const now = this.#discover().map(({ file }) => file);
      return now.join("\n") !== known.join("\n");
    } catch {
      // A file that must not be loaded has come; the reload says so.
      return true;
    }
  }

  #startWatching(): void {
    const watch = this.#watch;
    this.#watch = undefined;
    if (watch !== undefined) this.#stopWatching = watch();
  }

  #discover(): readonly FoundCommand[] {
    const { folders, isServed = () => true, select = (all) => all } = this.#options;
    return select(folders.filter((folder) => isServed(folder)).flatMap(discover));
  }

  close(): void {
    this.#watch = undefined;
    this.#stopWatching();
    this.#stopLoadingAgain();
    this.#listeners.clear();
  }
}

function isTransient(item: CatalogEntry | LoadProblem): boolean {
  return "text" in item && item.isTransient === true;
}

function timeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs;
}

/** Asks once for each folder, because the answer takes the real path. A link is asked for itself. */
function bundledOnce(isBundled: FolderOptions["isBundled"] = () => false): (found: FoundCommand) => boolean {
  const known = new Map<string, boolean>();
  return ({ file, isLink }) => {
    if (isLink === true) return isBundled(file);
    const folder = path.dirname(file);
    const answer = known.get(folder) ?? isBundled(file);
    known.set(folder, answer);
    return answer;
  };
}

function refuseClashes(found: readonly FoundCommand[], isBundled: (found: FoundCommand) => boolean): void {
  const toClaimant = (one: FoundCommand) => ({
    place: one.file,
    bundledDomain: isBundled(one) ? one.path[0] : undefined,
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
  if (aliases.some(({ name }, at) => name === toolName && command.aliases[at]?.name !== undefined))
    return { toolName, file, text: `it has its own name ${toolName} among its \`aliases\`; take it out` };
  return aliases.length === 0 ? entry : { ...entry, aliases };
}
