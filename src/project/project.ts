import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { RuntimeError, UsageError } from "../errors.ts";
import { packageFolder, readConfigText, toReal } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { nobodys } from "../system/child-environment.ts";
import { system } from "../system/system.ts";
import { type Wrap, wrapParts, wrapVariable } from "./wrap.ts";

/**
 * What a project is, without loading any of its code: a front names its daemon by this in a blink,
 * and the daemon, which loads everything, comes to the same name.
 */

/** The part of a config file that says which project it is. */
export interface ProjectConfig {
  readonly commands?: readonly string[];
  readonly bundled?: Bundled;
  /** Variables whose values make another daemon. */
  readonly env?: readonly string[];
  /** Servers that stand behind this one, by name; not checked here. */
  readonly upstreams?: Readonly<Record<string, unknown>>;
}

export interface ProjectFlags {
  readonly commands?: readonly string[];
  readonly bundled?: boolean;
  readonly scope?: ProjectScope;
  /** Nothing but these upstreams: no folder counts, nor what lies in it. */
  readonly wrap?: Wrap;
}

/**
 * Which bundled commands are served: all, none, or those of these domains, beside the project's own. Where nothing is
 * said, all of them, as long as the project has no command of its own.
 */
export type Bundled = boolean | readonly string[];

/**
 * How much of the working folder counts, for our own processes: `folders`, its commands and no config file; `pack`,
 * nothing of it; `bundled`, nothing but the bundled commands, whatever any config says. Without one, all.
 */
export type ProjectScope = "folders" | "pack" | "bundled";

/** Where a project's commands are looked for, and which bundled ones are served. */
export interface CommandSources {
  readonly folders: readonly string[];
  readonly bundled: Bundled | undefined;
  /** In place of all that. */
  readonly wrap?: Wrap | undefined;
}

/** The flags as the words that one process of ours gives another. */
export function flagWords({ commands = [], bundled, scope }: ProjectFlags): string[] {
  return [
    ...commands.flatMap((folder) => ["--commands", folder]),
    ...(bundled === undefined ? [] : [bundled ? "--bundled" : "--no-bundled"]),
    ...(scope === undefined ? [] : ["--scope", scope]),
  ];
}

/** The file that Node starts this program by. */
export function executable(): string {
  return thisProgram.authors?.executable ?? path.join(packageFolder(), "bin", "meanwhile.cjs");
}

/** Returns the folder of the bundled commands. */
export function packFolder(): string {
  return path.join(packageFolder(), "dist", "commands");
}

/** What a project's config may be called; the first that is there counts. */
export const configNames = [
  "meanwhile.config.ts",
  "meanwhile.config.js",
  "meanwhile.config.mjs",
  "meanwhile.config.json",
];

/** The version of this program. */
export function programVersion(): string {
  return thisProgram.authors?.version ?? packageVersion();
}

/** The version of Meanwhile, whichever program it is inside of. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(path.join(packageFolder(), "package.json"), "utf8")) as { version: string }).version;
}

/**
 * The `version` in the `package.json` of a project's folder: beside its config file, or beside its folder `commands`.
 * Undefined for the bundled commands, for what is wrapped, and where the file has none.
 */
export function projectVersion(
  cwd: string,
  { folders }: CommandSources,
  configFile: string | undefined,
): string | undefined {
  const commands = path.join(cwd, "commands");
  if (configFile === undefined && !(folders.includes(commands) && existsSync(commands))) return undefined;
  try {
    const { version } = JSON.parse(readConfigText(path.join(cwd, "package.json"))) as { readonly version?: unknown };
    return typeof version === "string" && version !== "" ? version : undefined;
  } catch {
    // A missing or broken package.json is for npm to report.
    return undefined;
  }
}

/** The project's config file. Throws when a stranger wrote it, or anybody may: it would be run as this user. */
export function findConfigFile(cwd: string, { scope, wrap }: ProjectFlags = {}): string | undefined {
  if (scope !== undefined || wrap !== undefined || thisProgram.authors !== undefined) return undefined;
  const found = configFilesOf(cwd)[0];
  const refusal = found === undefined ? undefined : system.refusalOfProjectFile(found);
  if (refusal !== undefined) throw new RuntimeError("CONFIG_INVALID", refusal);
  return found;
}

/** Whether a folder has a config file, whoever wrote it. */
export function hasConfigFile(cwd: string): boolean {
  return configFilesOf(cwd).length > 0;
}

function configFilesOf(cwd: string): string[] {
  return configNames
    .map((name) => path.join(cwd, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true);
}

/** Whether any of these folders is there and is not the pack's. */
export function hasOwnFolders({ folders }: CommandSources): boolean {
  return folders.some((folder) => folder !== packFolder() && existsSync(folder));
}

/**
 * Every folder that commands are looked for in; one that is not there yet may come. Folders that were typed are all
 * there is, unless more is asked for.
 */
export function commandSources(cwd: string, config: ProjectConfig, flags: ProjectFlags): CommandSources {
  const { authors } = thisProgram;
  // Nothing that lies in a folder, and nothing that is typed, puts another command into somebody's program.
  if (authors !== undefined) return { folders: authors.folders, bundled: false };
  if (flags.wrap !== undefined) return { folders: [], bundled: false, wrap: flags.wrap };
  if (flags.scope === "bundled") return { folders: [packFolder()], bundled: true };
  const named = flags.commands ?? config.commands ?? ["commands"];
  const own = (flags.scope === "pack" ? named.filter((folder) => path.isAbsolute(folder)) : named).map((folder) =>
    path.resolve(cwd, folder),
  );
  for (const folder of flags.commands ?? []) {
    if (!existsSync(path.resolve(cwd, folder)))
      throw new UsageError(`--commands: there is no folder ${path.resolve(cwd, folder)}.`);
  }
  // In its own repository the pack's sources lie where a project's commands would: they are loaded once, built.
  const withoutPack = own.filter((folder) => toReal(folder) !== toReal(path.join(packageFolder(), "commands")));
  const bundled = flags.bundled ?? config.bundled;
  const hasPack = bundled ?? (flags.commands === undefined || withoutPack.length === 0);
  return { folders: hasPack === false ? withoutPack : [...withoutPack, packFolder()], bundled };
}

/**
 * The folders whose commands can be run in a terminal, where what is bundled is at hand beside a project's own unless
 * it was refused.
 */
export function terminalFolders({ folders, bundled }: CommandSources): readonly string[] {
  return bundled === false ? folders : [...folders.filter((folder) => folder !== packFolder()), packFolder()];
}

/** What is served of the commands that were found in a project's folders. */
export function selectServed<T extends Findable>(found: readonly T[], bundled: Bundled | undefined): readonly T[] {
  const isOfPack = ({ file }: T) => file.startsWith(`${packFolder()}${path.sep}`);
  if (bundled === undefined) return found.every(isOfPack) ? found : found.filter((one) => !isOfPack(one));
  if (typeof bundled === "boolean") return found;
  return found.filter((one) => !isOfPack(one) || bundled.includes(one.path[0] ?? ""));
}

interface Findable {
  readonly file: string;
  readonly path: readonly string[];
}

/** The first words of the bundled commands. */
export function bundledDomains(): string[] {
  const names = readdirSync(packFolder()).filter(
    (name) => !name.startsWith("_") && !name.startsWith(".") && (!name.includes(".") || name.endsWith(".js")),
  );
  return names.map((name) => path.parse(name).name).sort();
}

export function isPackFolder(folder: string): boolean {
  return folder === packFolder();
}

/**
 * True where there is nothing but the bundled commands, or those of an author's program: such servers are all one,
 * wherever they are started.
 */
export function isPackAlone({ folders }: CommandSources, configFile: string | undefined): boolean {
  if (thisProgram.authors !== undefined) return true;
  return (
    configFile === undefined &&
    folders.includes(packFolder()) &&
    folders.every((folder) => folder === packFolder() || !existsSync(folder))
  );
}

/**
 * What makes up a project, each by its real path: its folders, and its config file. The pack is the pack, and an
 * author's program is that program, wherever it is installed; what is wrapped is the same in every folder.
 */
export function projectParts(sources: CommandSources, configFile: string | undefined): string[] {
  if (thisProgram.authors !== undefined) return [`the program ${thisProgram.name}`];
  if (sources.wrap !== undefined) return wrapParts(sources.wrap);
  const isAlone = isPackAlone(sources, configFile);
  const own = isAlone ? [] : sources.folders.filter((folder) => folder !== packFolder());
  return [
    ...own.map(toReal),
    ...packParts(sources, isAlone),
    ...(configFile === undefined ? [] : [toReal(configFile)]),
  ];
}

/**
 * A project that says nothing of the pack has it among its parts whether or not it is served: its first command makes
 * no other project of it. One that serves both is another, because whoever serves its own commands alone could not run
 * its tasks.
 */
function packParts({ folders, bundled }: CommandSources, isAlone: boolean): string[] {
  if (bundled === false && !folders.includes(packFolder())) return [];
  if (typeof bundled === "object") return [`the bundled pack: ${[...bundled].sort().join(", ")}`];
  return [bundled === true && !isAlone ? "the bundled pack beside them" : "the bundled pack"];
}

export interface DaemonParts {
  readonly sources: CommandSources;
  readonly configFile: string | undefined;
  /** The user's own config file, which may be missing. */
  readonly userConfigFile: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Variables that make another daemon: the config's `env` list, and those that the project's code reads. */
  readonly names: readonly string[];
  /** See `projectVersion`: clients are told the present one. */
  readonly version: string | undefined;
  /** The home's own, see `fingerprint`. */
  readonly salt: string;
}

/** How a daemon is told the key it is looked for by: its command line could be read by everybody. */
export const keyVariable = () => thisProgram.variable("DAEMON_KEY");
/** Where the home is, is said by where the socket lies; who the host is, is said by each connection. */
const uncounted = (): readonly string[] => [
  thisProgram.variable("HOME"),
  thisProgram.variable("HOST"),
  keyVariable(),
  wrapVariable(),
  ...Object.keys(nobodys),
];

/** Variables that make another daemon, sorted, each once. What is between our own processes is none of them. */
export function countedNames(...lists: readonly (readonly string[])[]): string[] {
  const inner = [keyVariable(), wrapVariable(), ...Object.keys(nobodys)];
  return [...new Set(lists.flat())].filter((name) => !inner.includes(name)).sort();
}

/**
 * Names the daemon that serves a project. Beside the project it counts the package's version, what the config files
 * say, the project's version, the variables that the config names or the code reads, and our own, because a daemon keeps the environment it
 * was started with.
 */
export function daemonKey(daemon: DaemonParts): string {
  const { sources, configFile, userConfigFile, env, names, version, salt } = daemon;
  const others = uncounted();
  const ours = Object.keys(env).filter((name) => name.startsWith(thisProgram.variables) && !others.includes(name));
  const values = [...new Set([...ours, ...names])].sort().map((name) => [name, env[name] ?? null]);
  const texts = [configFile, userConfigFile].map((file) =>
    file !== undefined && existsSync(file) ? readConfigText(file) : null,
  );
  const { authors } = thisProgram;
  const own = authors === undefined ? [] : [authors.version, authors.executable, authors.folders];
  const wrapped = sources.wrap === undefined ? [] : [sources.wrap];
  const parts = projectParts(sources, configFile);
  const counted = [salt, packageVersion(), packageFolder(), parts, texts, values, ...own, ...wrapped];
  return fingerprint(version === undefined ? counted : [...counted, { version }]);
}

const multipliers = [0x01000193, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f];

/**
 * 128 bits that tell values apart, as a file name. Nothing is kept safe by it: whoever could make two alike runs code
 * as this user already. Loading node:crypto would take longer than everything else a front does. The system shows the
 * names of sockets to everybody, so what must not be guessed from one is said after a salt, which is as long as two of
 * these and known to nobody else.
 */
export function fingerprint(value: unknown): string {
  const bytes = Buffer.from(JSON.stringify(value));
  const lanes = multipliers.map((multiplier, at) => {
    let lane = 0x811c9dc5 + at;
    for (const byte of bytes) lane = Math.imul(lane ^ byte, multiplier) ^ (lane >>> 15);
    lane = Math.imul(lane ^ (lane >>> 16), 0x45d9f3b);
    return (lane ^ (lane >>> 16)) >>> 0;
  });
  return lanes.map((lane) => lane.toString(36).padStart(7, "0")).join("");
}
