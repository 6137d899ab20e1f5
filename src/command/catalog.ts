import { type Logger, silentLog } from "../log.ts";
import type { ToolAlias } from "./aliases.ts";
import { type Claimant, clash, describeClash } from "./clashes.ts";
import { fixedSource } from "./code-source.ts";
import type { Command } from "./command.ts";
import { type FolderOptions, openFolders } from "./folder-source.ts";
import type { CommandSource } from "./source.ts";

/** A loaded command and the names it goes by. */
export interface CatalogEntry {
  readonly toolName: string;
  readonly path: readonly string[];
  /** Empty where the command is in no file. */
  readonly file: string;
  readonly command: Command;
  /** Other names the tool answers to. Its own is among them where its arguments have other names. */
  readonly aliases?: readonly ToolAlias[];
  /**
   * Comes with Meanwhile, and reaches the user's own files and settings: callers whom nobody knows have nothing of it.
   */
  readonly isBundled?: boolean;
  /** The upstream whose tool it is, where a terminal has it behind that name. */
  readonly upstream?: string;
  /** Its own server lists it to each client, and not the catalog. */
  readonly isListedByServer?: boolean;
}

/** What `tools/list` and `prompts/list` show of a command. */
export type ListedCommand = Pick<
  Command,
  | "summary"
  | "description"
  | "inputSchema"
  | "outputSchema"
  | "envelope"
  | "effects"
  | "idempotent"
  | "taskSupport"
  | "long"
  | "foreign"
> &
  Partial<Pick<Command, "scopes">>;

/** A command as lists show it. Its file may not be loaded. */
export interface ListedEntry
  extends Pick<CatalogEntry, "toolName" | "path" | "aliases" | "isBundled" | "isListedByServer"> {
  readonly command: ListedCommand;
}

/** A command whose file was found and is not loaded yet. */
export type PendingCommand = Pick<CatalogEntry, "toolName" | "path" | "file" | "isBundled">;

/** A command that is not served, and why. */
export interface LoadProblem {
  /** Absent for a source as a whole, and for an upstream's tool without a name: then `text` is a whole sentence. */
  readonly toolName?: string;
  /** Its file, or what its source is called where there is none. */
  readonly file: string;
  readonly text: string;
  readonly isBundled?: boolean;
  /** The command is served under its own name; the problem is one of its aliases. */
  readonly isServed?: boolean;
  /** File descriptors were missing, not something in the file: a source that is kept up to date loads the file again. */
  readonly isTransient?: boolean;
}

/** All commands by name. */
export interface Catalog {
  /** The loaded commands in a stable order, by tool name. */
  readonly entries: readonly CatalogEntry[];
  readonly problems: readonly LoadProblem[];
  /** Commands whose files are not loaded yet. `get` knows none of them, and no alias as long as there is one. */
  readonly pending: readonly PendingCommand[];
  /** Grows with every change. */
  readonly revision: number;
  /** By a tool's name, or another one it answers to. */
  get(toolName: string): CatalogEntry | undefined;
  problemOf(toolName: string): LoadProblem | undefined;
  /**
   * Loads what a call of this tool needs: the file of that name, or every file when no file has the name. Returns
   * undefined when nothing is left to load. Never rejects: a file that cannot be loaded becomes a problem.
   */
  load(toolName: string): Promise<void> | undefined;
  /** Loads every pending file. Returns undefined when there is none. Never rejects. */
  loadAll(): Promise<void> | undefined;
  /** Resolves when no file is pending. Loads none. */
  readonly whenLoaded: Promise<void>;
  /**
   * All commands as lists show them. Pending ones are as they were when they were last loaded; when one of them is not
   * known, all files are loaded first. If the files then say something else, `onChange` is called.
   */
  listed(): readonly ListedEntry[] | Promise<readonly ListedEntry[]>;
  /** Called when the lists change. Loading a pending file changes no list. */
  onChange(listener: () => void): () => void;
  close(): void;
}

/** Loads every command below the folders, once. */
export async function openCatalog(options: FolderOptions): Promise<Catalog> {
  return mergeSources([await openFolders(options)], options);
}

/** The commands of this very process, by their tools' names. */
export function catalogOf(commands: Readonly<Record<string, Command>>): Catalog {
  const entries = Object.entries(commands).map(([toolName, command]) => ({
    toolName,
    path: toolName.split("_"),
    file: "",
    command,
  }));
  return mergeSources([fixedSource("the commands in code", entries)], { log: silentLog });
}

/**
 * One catalog of all sources, which are closed with it. Throws when two commands have one tool name, and when commands in
 * code have one alias. Later clashes, and those of an upstream's tools, are problems: of two tool names, the first stays
 * served. A clash that only an alias makes takes that alias away; the command is served under its own name.
 */
export function mergeSources(sources: readonly CommandSource[], { log }: { readonly log: Logger }): Catalog {
  try {
    return new MergedCatalog(sources, log);
  } catch (error) {
    for (const source of sources) source.close();
    throw error;
  }
}

/** A command of a source: loaded, broken or pending. */
interface Claim {
  readonly source: CommandSource;
  readonly item: CatalogEntry | LoadProblem | PendingCommand;
  readonly toolName: string;
}

/** The claim that a name leads to. The name is the command's own, or one of its aliases. */
type Owners = ReadonlyMap<string, Claim>;

class MergedCatalog implements Catalog {
  entries: readonly CatalogEntry[] = [];
  pending: readonly PendingCommand[] = [];
  revision = 0;
  readonly #sources: readonly CommandSource[];
  readonly #log: Logger;
  readonly #listeners = new Set<() => void>();
  readonly #stopListening: readonly (() => void)[];
  #owners: Owners = new Map();
  #ofTools: readonly LoadProblem[] = [];
  readonly #loaded = Promise.withResolvers<void>();
  #loadingAll: Promise<void> | undefined;
  /** The lists that clients were given before all files were loaded. */
  #shown: string | undefined;

  constructor(sources: readonly CommandSource[], log: Logger) {
    this.#sources = sources;
    this.#log = log;
    this.#merge((text, mustThrow) => {
      if (mustThrow) throw clash(text);
      log.error(text);
    });
    this.#stopListening = sources.map((source) => source.onChange(() => this.#onChange()));
  }

  get whenLoaded(): Promise<void> {
    return this.#loaded.promise;
  }

  /** A source in trouble keeps what it has, and says so here. */
  get problems(): readonly LoadProblem[] {
    const troubles = this.#sources.flatMap(({ name, trouble }) =>
      trouble === undefined ? [] : [{ file: name, text: trouble }],
    );
    return troubles.length === 0 ? this.#ofTools : [...this.#ofTools, ...troubles];
  }

  get(toolName: string): CatalogEntry | undefined {
    const item = this.#owners.get(toolName)?.item;
    return item !== undefined && "command" in item ? item : undefined;
  }

  problemOf(toolName: string): LoadProblem | undefined {
    return this.#ofTools.find((problem) => problem.toolName === toolName);
  }

  load(toolName: string): Promise<void> | undefined {
    if (this.pending.length === 0) return undefined;
    const { source, item } = this.#owners.get(toolName) ?? {};
    if (source === undefined || item === undefined) return this.loadAll();
    return isPending(item) ? source.load?.(toolName).then(() => this.#onLoad()) : undefined;
  }

  loadAll(): Promise<void> | undefined {
    if (this.pending.length === 0) return undefined;
    this.#loadingAll ??= Promise.all(this.#sources.map((source) => source.loadAll?.())).then(() => {
      this.#loadingAll = undefined;
      this.#onLoad();
    });
    return this.#loadingAll;
  }

  listed(): readonly ListedEntry[] | Promise<readonly ListedEntry[]> {
    if (this.pending.length === 0) return this.entries;
    const stored = this.#readStored();
    if (stored === undefined) return Promise.resolve(this.loadAll()).then(() => this.entries);
    const listed = inOrder([...this.entries, ...stored]);
    this.#shown = toText(listed);
    return listed;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const stop of this.#stopListening) stop();
    for (const source of this.#sources) source.close();
    this.#listeners.clear();
  }

  /** The pending commands that are served; undefined when one of them is not known. */
  #readStored(): readonly ListedEntry[] | undefined {
    const pending = new Set(this.pending.map(({ toolName }) => toolName));
    const stored: ListedEntry[] = [];
    for (const source of this.#sources) {
      const known = source.readStored === undefined ? [] : source.readStored();
      if (known === undefined) return undefined;
      stored.push(...known.filter(({ toolName }) => pending.has(toolName)));
    }
    return stored;
  }

  /** A source has loaded pending files. */
  #onLoad(): void {
    this.#mergeAgain();
    if (this.pending.length > 0 || this.#shown === undefined) return;
    const isChanged = this.#shown !== toText(this.entries);
    this.#shown = undefined;
    if (isChanged) this.#tellOfChange();
  }

  #onChange(): void {
    if (this.#mergeAgain()) this.#tellOfChange();
  }

  #tellOfChange(): void {
    for (const listener of this.#listeners) listener();
  }

  /** True when a list has changed. Trouble that comes or goes changes none. */
  #mergeAgain(): boolean {
    const before = [...this.entries, ...this.pending, ...this.#ofTools];
    const known = new Set(this.#ofTools.map(({ text }) => text));
    this.#merge((text) => {
      if (!known.has(text)) this.#log.error(text);
    });
    const now = [...this.entries, ...this.pending, ...this.#ofTools];
    if (before.length === now.length && before.every((item, at) => item === now[at])) return false;
    this.revision += 1;
    return true;
  }

  /** Whoever had a name before keeps it, but a tool name takes precedence over an alias. */
  #merge(onClash: (text: string, mustThrow: boolean) => void): void {
    const claims = this.#sources.flatMap(toClaims);
    const kept = new Set(claims.filter((claim) => this.#owns(claim, claim.toolName)));
    const owners = new Map<string, Claim>();
    const problems = this.#sources.flatMap((source) =>
      source.problems.filter(({ toolName }) => toolName === undefined),
    );
    for (const claim of [...kept, ...claims.filter((one) => !kept.has(one))]) {
      const owner = owners.get(claim.toolName);
      const problem = owner && this.#toProblem(claim.toolName, owner, claim);
      if (problem === undefined) owners.set(claim.toolName, claim);
      else onClash(problem.text, owner !== undefined && !isOfUpstream(owner, claim));
      if ("text" in claim.item) problems.push(claim.item);
      else if (problem !== undefined) problems.push(problem);
    }
    const served = [...owners.values()];
    this.pending = served.flatMap(({ item }) => (isPending(item) ? [item] : []));
    this.entries = inOrder(served.flatMap(({ item }) => ("command" in item ? [item] : [])));
    // Which command has an alias is not known before all files are loaded.
    if (this.pending.length === 0) problems.push(...this.#addAliases(served, owners, onClash));
    this.#owners = owners;
    this.#ofTools = problems;
    if (this.pending.length === 0) this.#loaded.resolve();
  }

  #addAliases(
    served: readonly Claim[],
    owners: Map<string, Claim>,
    onClash: (text: string, mustThrow: boolean) => void,
  ): LoadProblem[] {
    const named = served.flatMap((claim) => aliasesOf(claim).map((name) => ({ name, claim })));
    const kept = named.filter(({ name, claim }) => this.#owns(claim, name));
    return [...kept, ...named.filter((one) => !kept.includes(one))].flatMap(({ name, claim }) => {
      const owner = owners.get(name);
      if (owner === undefined) owners.set(name, claim);
      if (owner === undefined || owner === claim) return [];
      const problem = this.#toProblem(name, owner, claim);
      const isInCode = owner.item.file === "" && claim.item.file === "";
      onClash(problem.text, isInCode && !isOfUpstream(owner, claim));
      return [{ ...problem, isServed: true }];
    });
  }

  #owns({ source, toolName }: Claim, name: string): boolean {
    const owner = this.#owners.get(name);
    return owner?.source === source && owner.toolName === toolName;
  }

  /** The very same problem as before while the clash is the same. */
  #toProblem(name: string, owner: Claim, claim: Claim): LoadProblem {
    const isOfOneSource = owner.source === claim.source;
    const text = describeClash(name, toClaimant(owner, name, isOfOneSource), toClaimant(claim, name, isOfOneSource));
    const problem = { toolName: claim.toolName, file: claim.item.file || claim.source.name, text };
    return this.#ofTools.find((known) => known.text === text) ?? problem;
  }
}

function isPending(item: Claim["item"]): item is PendingCommand {
  return !("command" in item || "text" in item);
}

function inOrder<T extends { readonly toolName: string }>(entries: readonly T[]): readonly T[] {
  return [...entries].sort((a, b) => (a.toolName < b.toolName ? -1 : 1));
}

/** Equal for equal lists. */
function toText(entries: readonly ListedEntry[]): string {
  return JSON.stringify(entries.map(({ toolName, command }) => [toolName, listedOf(command)]));
}

/** The fields that lists show, in a stable order. */
export function listedOf(command: ListedCommand): ListedCommand {
  const { summary, description, inputSchema, outputSchema, envelope, effects, idempotent, taskSupport, long } = command;
  const { scopes = [] } = command;
  return {
    ...{ summary, description, inputSchema, outputSchema, envelope, effects, idempotent, taskSupport, long },
    ...(scopes.length > 0 && { scopes }),
  };
}

function toClaims(source: CommandSource): Claim[] {
  const { entries, problems, pending = [] } = source;
  return [...entries, ...problems, ...pending].flatMap((item) => {
    const { toolName } = item;
    return toolName === undefined ? [] : [{ source, item, toolName }];
  });
}

function isOfUpstream(...claims: readonly Claim[]): boolean {
  return claims.some(({ source }) => source.isUpstream === true);
}

function aliasesOf({ item, toolName }: Claim): string[] {
  const aliases = "command" in item ? (item.aliases ?? []) : [];
  return [...new Set(aliases.map(({ name }) => name))].filter((name) => name !== toolName);
}

function toClaimant({ source, item, toolName }: Claim, name: string, isOfOneSource: boolean): Claimant {
  return {
    place: item.file === "" ? source.name : isOfOneSource ? item.file : `${item.file} (${source.name})`,
    isAlias: name !== toolName,
    bundledDomain: item.isBundled === true && "path" in item ? item.path[0] : undefined,
  };
}
