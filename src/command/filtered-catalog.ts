import type { Catalog, CatalogEntry, ListedEntry, LoadProblem, PendingCommand } from "./catalog.ts";

type Tool = CatalogEntry | ListedEntry | PendingCommand | (LoadProblem & { readonly toolName: string });

/** Which commands of a catalog somebody sees. What is listed must be known. */
export interface CatalogFilter {
  /** False for a command that is not there, by no name. */
  isKnown(tool: Tool): boolean;
  /** False for a command that is found by its name, and stands in no list. */
  isListed(tool: Tool): boolean;
}

/** A catalog without what the filter leaves out. Its files are loaded as those of the whole catalog. */
export function filterCatalog(catalog: Catalog, filter: CatalogFilter): Catalog {
  let seen: { revision: number; entries: readonly CatalogEntry[] } | undefined;
  const ifKnown = <T extends Tool>(tool: T | undefined) =>
    tool !== undefined && filter.isKnown(tool) ? tool : undefined;
  const isShown = (problem: LoadProblem) =>
    problem.toolName === undefined || filter.isKnown({ ...problem, toolName: problem.toolName });
  return {
    get entries() {
      if (seen?.revision !== catalog.revision)
        seen = { revision: catalog.revision, entries: catalog.entries.filter((entry) => filter.isListed(entry)) };
      return seen.entries;
    },
    get problems() {
      return catalog.problems.filter(isShown);
    },
    get pending() {
      return catalog.pending.filter((command) => filter.isKnown(command));
    },
    get revision() {
      return catalog.revision;
    },
    get whenLoaded() {
      return catalog.whenLoaded;
    },
    load: (toolName) => catalog.load(toolName),
    loadAll: () => catalog.loadAll(),
    async listed() {
      return (await catalog.listed()).filter((entry) => filter.isListed(entry));
    },
    get: (toolName) => ifKnown(catalog.get(toolName)),
    problemOf(toolName) {
      const problem = catalog.problemOf(toolName);
      return problem !== undefined && isShown(problem) ? problem : undefined;
    },
    onChange: (listener) => catalog.onChange(listener),
    close: () => catalog.close(),
  };
}
