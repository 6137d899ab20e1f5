import type { Catalog } from "../command/catalog.ts";
import { commandsOf } from "../command/code-source.ts";
import { isCommand } from "../command/command.ts";
import { discover, type FoundCommand } from "../command/discover.ts";
import { type FolderOptions, type LiveFolderOptions, openLiveFolders } from "../command/folder-source.ts";
import type { CommandSource } from "../command/source.ts";
import { closest } from "../command/suggest.ts";
import type { Logger } from "../log.ts";
import { type Home, isBundledFile } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
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
  readonly project: string;
  readonly upstreams: Readonly<Record<string, unknown>>;
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
    readStored: (found) => stored.listed(found),
  } satisfies FolderOptions;
}

/** The commands of a project that are served, kept up to date while their files change. */
export function openServedFolders(
  project: ProjectSettings,
  options: Pick<LiveFolderOptions, "clock" | "log" | "mayReload" | "isLoadedLate">,
): Promise<CommandSource> {
  return openLiveFolders({ ...servedCatalog(project, options.log), ...options, isServed: servedFolders(project) });
}

/** Those that an author's program hands over in code: one source, or none. */
export function codeSources({ toolPrefix }: Pick<ProjectSettings, "toolPrefix">): CommandSource[] {
  const commands = thisProgram.parts.commands.filter(isCommand);
  return commands.length === 0 ? [] : [commandsOf(commands, { toolPrefix })];
}

function findInCode(): FoundCommand[] {
  const entries = codeSources({ toolPrefix: "" }).flatMap((source) => source.entries);
  return entries.map(({ path, toolName, file, command }) => ({ path, toolName, file, command }));
}

/** The file that the project's `mcp` hook stands in, if it has one; empty where it can have none. */
export function hookFileOf({ configFile }: Pick<ProjectSettings, "configFile">): string {
  return configFile ?? thisProgram.authors?.executable ?? "";
}

/** What the hook registered when it was last asked; nothing is run. */
function findHooked({ home, configFile }: ProjectSettings): FoundCommand[] {
  const hookFile = hookFileOf({ configFile });
  return hookFile === "" ? [] : new StoredCatalog(home, []).findHooked(hookFile);
}

/** The commands that MCP clients get; no file is loaded. */
export function findServed(project: ProjectSettings): readonly FoundCommand[] {
  const { commandFolders, bundled } = project;
  return [...selectServed(commandFolders.flatMap(discover), bundled), ...findInCode(), ...findHooked(project)];
}

/**
 * The commands that can be run in a terminal: a project's own, the bundled ones whose words lead to none of them, and
 * what is registered under a word that none of these has.
 */
export function findForTerminal(project: ProjectSettings): readonly FoundCommand[] {
  const { commandFolders, bundled } = project;
  const found = [...terminalFolders({ folders: commandFolders, bundled }).flatMap(discover), ...findInCode()];
  const own = found.filter(({ file }) => !isBundledFile(file));
  const reached = found.filter(
    ({ file, path }) => !isBundledFile(file) || !own.some((one) => one.path.every((word, at) => path[at] === word)),
  );
  const known = [...reached, ...findHooked(project).filter(({ toolName }) => !isTaken(toolName, found))];
  return [...known, ...findUpstreamTools(project).filter(({ upstream = "" }) => !isTaken(upstream, known))];
}

/** What the upstreams listed when they were last asked: typed behind the name of each. */
export function findUpstreamTools({ home, project, upstreams }: ProjectSettings): FoundCommand[] {
  const stored = new StoredCatalog(home, []);
  return Object.keys(upstreams).flatMap((name) => stored.findUpstream(project, name));
}

function isTaken(word: string, found: readonly FoundCommand[]): boolean {
  return found.some(({ path, toolName }) => path[0] === word || toolName === word);
}

/** The command files that come with Meanwhile, whatever a project says of them; an author's program has none. */
export function findBundled(): readonly FoundCommand[] {
  return thisProgram.authors === undefined ? discover(packFolder()) : [];
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

/**
 * Says which of the tools that are to count as long are none; undefined when all are there. The catalog must be loaded.
 */
export function unknownLongTools(names: readonly string[] = [], catalog: Catalog): string | undefined {
  const unknown = names.filter((name) => catalog.get(name) === undefined && catalog.problemOf(name) === undefined);
  if (unknown[0] === undefined) return undefined;
  const guess = closest(
    unknown[0],
    catalog.entries.map(({ toolName }) => toolName),
  );
  const cure = guess === undefined ? `\`${thisProgram.name} tools\` lists what there is` : `did you mean ${guess}?`;
  return `${thisProgram.variable("AUTO_TASK_TOOLS")} (\`deferral.tools\` in a config) names ${unknown.join(", ")}, which is no tool here; ${cure}`;
}
