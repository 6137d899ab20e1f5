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

/** A command that is not served, and why. */
export interface LoadProblem {
  /** Absent where it is a whole source that is in trouble. */
  readonly toolName?: string;
  /** Its file, or what its source is called where there is none. */
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
 * One catalog of all sources, which are closed with it. Two commands of one name, or of one alias, is an error now; when
 * it comes to that later, the one that came later is a problem and the other stays served.
 */
export function mergeSources(sources: readonly CommandSource[], { log }: { readonly log: Logger }): Catalog {
  try {
    return new MergedCatalog(sources, log);
  } catch (error) {
    for (const source of sources) source.close();
    throw error;
  }
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

/** A command of a source, served or broken, and all names that it takes. */
interface Claim {
  readonly source: CommandSource;
  readonly item: CatalogEntry | LoadProblem;
  readonly toolName: string;
  readonly names: ReadonlySet<string>;
}

class MergedCatalog implements Catalog {
  entries: readonly CatalogEntry[] = [];
  revision = 0;
  readonly #sources: readonly CommandSource[];
  readonly #log: Logger;
  readonly #listeners = new Set<() => void>();
  readonly #stopListening: readonly (() => void)[];
  #owners: ReadonlyMap<string, Claim> = new Map();
  #ofTools: readonly LoadProblem[] = [];

  constructor(sources: readonly CommandSource[], log: Logger) {
    this.#sources = sources;
    this.#log = log;
    this.#merge((text) => {
      throw clash(text);
    });
    this.#stopListening = sources.map((source) => source.onChange(() => this.#onChange()));
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

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const stop of this.#stopListening) stop();
    for (const source of this.#sources) source.close();
    this.#listeners.clear();
  }

  #onChange(): void {
    const before = [...this.entries, ...this.#ofTools];
    const known = new Set(this.#ofTools.map(({ text }) => text));
    this.#merge((text) => {
      if (!known.has(text)) this.#log.error(text);
    });
    const now = [...this.entries, ...this.#ofTools];
    // Trouble that comes or goes changes no list.
    if (before.length === now.length && before.every((item, at) => item === now[at])) return;
    this.revision += 1;
    for (const listener of this.#listeners) listener();
  }

  /** Whoever has had its names before has them first. */
  #merge(onClash: (text: string) => void): void {
    const claims = this.#sources.flatMap(toClaims);
    const kept = new Set(claims.filter((claim) => this.#isKept(claim)));
    const owners = new Map<string, Claim>();
    const problems: LoadProblem[] = [];
    for (const claim of [...kept, ...claims.filter((one) => !kept.has(one))]) {
      const problem = this.#problemOf(claim, owners);
      if (problem === undefined) for (const name of claim.names) owners.set(name, claim);
      else onClash(problem.text);
      if ("text" in claim.item) problems.push(claim.item);
      else if (problem !== undefined) problems.push(problem);
    }
    this.#owners = owners;
    this.#ofTools = problems;
    this.entries = [...new Set(owners.values())]
      .flatMap(({ item }) => ("command" in item ? [item] : []))
      .sort((a, b) => (a.toolName < b.toolName ? -1 : 1));
  }

  #isKept({ source, toolName, names }: Claim): boolean {
    return [...names].every((name) => {
      const owner = this.#owners.get(name);
      return owner?.source === source && owner.toolName === toolName;
    });
  }

  /** Undefined where nobody has one of its names; the very same as before where somebody still has. */
  #problemOf(claim: Claim, owners: ReadonlyMap<string, Claim>): LoadProblem | undefined {
    for (const name of claim.names) {
      const owner = owners.get(name);
      if (owner === undefined) continue;
      const text = describeClash(name, toClaimant(owner, name), toClaimant(claim, name));
      const problem = { toolName: claim.toolName, file: claim.item.file || claim.source.name, text };
      return this.#ofTools.find((known) => known.text === text) ?? problem;
    }
    return undefined;
  }
}

function toClaims(source: CommandSource): Claim[] {
  const { entries, problems } = source;
  return [...entries, ...problems].flatMap((item) => {
    const { toolName } = item;
    if (toolName === undefined) return [];
    const aliases = "command" in item ? (item.aliases ?? []) : [];
    return [{ source, item, toolName, names: new Set([toolName, ...aliases.map(({ name }) => name)]) }];
  });
}

function toClaimant({ source, item, toolName }: Claim, name: string): Claimant {
  return {
    place: item.file === "" ? source.name : `${item.file} (${source.name})`,
    isAlias: name !== toolName,
    bundledDomain: item.isBundled === true && "path" in item ? item.path[0] : undefined,
  };
}
