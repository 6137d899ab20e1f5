import { type Catalog, type CatalogOptions, type LiveCatalogOptions, openLiveCatalog } from "../command/catalog.ts";
import { discover, type FoundCommand } from "../command/discover.ts";
import { closest } from "../command/suggest.ts";
import type { Logger } from "../log.ts";
import { type Home, isBundledFile } from "../paths.ts";
import { type Bundled, packFolder, selectServed, terminalFolders } from "./project.ts";
import { StoredCatalog } from "./stored-catalog.ts";
import { servedFolders } from "./stored-project.ts";

/** The settings that say which commands a project has. */
interface ProjectSettings {
  readonly home: Home;
  readonly configFile: string | undefined;
  readonly commandFolders: readonly string[];
  readonly bundled: Bundled | undefined;
  readonly toolPrefix: string;
}

/** How the commands of a project are loaded, whoever serves, lists or runs them; what was loaded is kept. */
export function servedCatalog({ home, commandFolders, bundled, toolPrefix }: ProjectSettings, log: Logger) {
  const stored = new StoredCatalog(home, commandFolders);
  return {
    folders: commandFolders,
    toolPrefix,
    log,
    isBundled: isBundledFile,
    select: (found) => selectServed(found, bundled),
    onLoad: (loaded) => stored.keep(loaded),
  } satisfies CatalogOptions;
}

/** The commands of a project that are served, kept up to date while their files change. */
export function openServedCatalog(
  project: ProjectSettings,
  options: Pick<LiveCatalogOptions, "clock" | "log" | "mayReload">,
): Promise<Catalog> {
  return openLiveCatalog({ ...servedCatalog(project, options.log), ...options, isServed: servedFolders(project) });
}

/** The command files whose commands MCP clients get; none is loaded. */
export function findServed({ commandFolders, bundled }: ProjectSettings): readonly FoundCommand[] {
  return selectServed(commandFolders.flatMap(discover), bundled);
}

/**
 * The command files whose commands can be run in a terminal: a project's own, and the bundled ones whose words lead to
 * none of them.
 */
export function findForTerminal({ commandFolders, bundled }: ProjectSettings): readonly FoundCommand[] {
  const found = terminalFolders({ folders: commandFolders, bundled }).flatMap(discover);
  const own = found.filter(({ file }) => !isBundledFile(file));
  return found.filter(
    ({ file, path }) => !isBundledFile(file) || !own.some((one) => one.path.every((word, at) => path[at] === word)),
  );
}

/** The command files that come with Meanwhile, whatever a project says of them. */
export function findBundled(): readonly FoundCommand[] {
  return discover(packFolder);
}

/** The commands of a project whose words, in a terminal, would otherwise be those of a bundled one. */
export function takingPlaceOfBundled<T extends { readonly path: readonly string[]; readonly isBundled?: boolean }>(
  entries: readonly T[],
): T[] {
  const bundled = findBundled();
  return entries.filter(
    (entry) =>
      entry.isBundled !== true && bundled.some(({ path }) => entry.path.every((word, at) => path[at] === word)),
  );
}

/** Says which of the tools that are to count as long are none; undefined when all are there. */
export function unknownLongTools(names: readonly string[] = [], catalog: Catalog): string | undefined {
  const unknown = names.filter((name) => catalog.get(name) === undefined && catalog.problemOf(name) === undefined);
  if (unknown[0] === undefined) return undefined;
  const guess = closest(
    unknown[0],
    catalog.entries.map(({ toolName }) => toolName),
  );
  const cure = guess === undefined ? "`meanwhile tools` lists what there is" : `did you mean ${guess}?`;
  return `MEANWHILE_AUTO_TASK_TOOLS (\`deferral.tools\` in a config) names ${unknown.join(", ")}, which is no tool here; ${cure}`;
}
