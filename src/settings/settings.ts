import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import type { AccessSettings } from "../auth/access.ts";
import type { IssuerSettings, PackConfig, ServerHook, UpstreamConfig, UpstreamPrefix, UserConfig } from "../config.ts";
import { RuntimeError } from "../errors.ts";
import type { HostOverride } from "../host/profiles.ts";
import type { LogLevel } from "../log.ts";
import { ensureSalt, type Home, openHome, type ProcessEnvironment, readSalt, toWorkingFolder } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import {
  type Bundled,
  type CommandSources,
  commandSources,
  countedNames,
  daemonKey,
  findConfigFile,
  isPackAlone,
  type ProjectScope,
  programVersion,
  projectParts,
  projectVersion,
} from "../project/project.ts";
import { readStoredConfig, readStoredNames, storeNames, unloadedNotice } from "../project/stored-project.ts";
import { referencesIn } from "../project/variable-references.ts";
import type { Wrap } from "../project/wrap.ts";
import { isAcrossMachines, storeOf } from "../store/open.ts";
import { system } from "../system/system.ts";
import type { DeferralRules } from "../task/deferral.ts";
import { defaultLimits, defaultQuestionMs, type Limits } from "../task/limits.ts";
import type { EnvironmentMarks } from "../task/task.ts";
import { checkConfig, expandHome } from "./check-config.ts";
import { deferralFrom, levelFrom, portFrom, queueFrom, secondsFrom } from "./from-environment.ts";
import { checkStored, isData, loadConfig, readJsonConfig } from "./load-config.ts";
import { lookForNames, marksOfWrap, markValues } from "./names-read.ts";

/** Everything decided; nothing optional after this but what may truly be absent. */
export interface Settings {
  readonly name: string;
  /** The version of this program. */
  readonly version: string;
  /** The version that the server reports to clients: the config's, else the project's, else the program's. */
  readonly serverVersion: string;
  readonly instructions: string | undefined;
  readonly home: Home;
  /** Where the tasks are kept: what it means is for `store/open.ts` to say. */
  readonly store: string;
  /** Who hands out the tasks, as its setting says; undefined where nobody has said it. */
  readonly queue: string | undefined;
  /** Names this set of folders and its config file: a worker runs only tasks of its own project. */
  readonly project: string;
  /** False for a process that answers clients, and leaves all work to others. */
  readonly worksHere: boolean;
  /** How many tasks it runs at a time; undefined for as many as usual. */
  readonly concurrency: number | undefined;
  /** The process that serves this project to stdio clients. */
  readonly daemon: {
    readonly key: string;
    readonly isPackAlone: boolean;
    /**
     * Variables whose values make another daemon: those that the config names, and those that the project's code reads.
     */
    readonly env: readonly string[];
    /** Those that the config names, in its `env` or for an upstream. */
    readonly named: readonly string[];
    readonly idleMs: number;
  };
  /** Marks of what this process has of the variables that the project's code reads, as it was started. */
  readonly environment: EnvironmentMarks;
  readonly configFile: string | undefined;
  /**
   * The project's folder, in which upstreams are started for a session without a folder of its own, such as one over
   * HTTP. Undefined for the root of the file system, and for a daemon whose sessions are in any folder.
   */
  readonly workingFolder: string | undefined;
  readonly commandFolders: readonly string[];
  /** Undefined where nobody has said it: then they are served as long as there is no other command. */
  readonly bundled: Bundled | undefined;
  readonly toolPrefix: string;
  readonly http: {
    readonly port: number;
    readonly host: string;
    readonly allowAnonymous: boolean;
    /** Undefined: where it listens. */
    readonly publicUrl: string | undefined;
    /** Beside those of this machine. */
    readonly allowedOrigins: readonly string[];
    /** The absolute path of a socket file, or the name of a pipe on Windows, in place of host and port. */
    readonly socket?: string;
  };
  readonly auth: AccessSettings & { readonly issuers: readonly IssuerSettings[] };
  readonly logLevel: LogLevel;
  readonly logFiles: number;
  readonly isDebug: boolean;
  readonly deferral: DeferralRules;
  readonly hosts: Readonly<Record<string, HostOverride>>;
  /** Who the MCP host is, whatever it calls itself. */
  readonly hostName: string | undefined;
  readonly followUpTools: boolean;
  readonly errorsAsCompleted: boolean;
  readonly graceSeconds: number;
  readonly questionSeconds: number;
  readonly limits: Limits;
  readonly prompts: boolean;
  readonly diagnose: { readonly allowPrivate: boolean };
  readonly pack: Required<PackConfig>;
  readonly mcp: ServerHook | undefined;
  /** Servers that stand behind this one, by name. */
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>;
  readonly upstreamPrefix: UpstreamPrefix | undefined;
  /** Upstreams that are named and not served, each with the reason. */
  readonly leftOut: Readonly<Record<string, string>>;
  /** There is nothing but the upstreams: where it is one, it is shown as if it were connected directly. */
  readonly isWrap: boolean;
}

/** What a server is made of that has no home, daemon or config file: one inside somebody's program. */
export interface HomelessSettings
  extends Pick<
    Settings,
    | "name"
    | "version"
    | "instructions"
    | "store"
    | "queue"
    | "project"
    | "worksHere"
    | "concurrency"
    | "environment"
    | "toolPrefix"
    | "logLevel"
    | "isDebug"
    | "deferral"
    | "hosts"
    | "hostName"
    | "followUpTools"
    | "errorsAsCompleted"
    | "graceSeconds"
    | "questionSeconds"
    | "limits"
    | "prompts"
  > {
  readonly auth: AccessSettings;
  readonly home?: undefined;
  /** How long a result is kept whose client does not say, in milliseconds; undefined for 24 hours. */
  readonly taskTtlMs: number | undefined;
  /** What its commands are told as theirs, where they may keep things. */
  readonly folder: string;
  /** What its commands are told of these. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** What the command line said. */
export interface Flags {
  readonly commands?: readonly string[];
  readonly bundled?: boolean;
  readonly port?: number;
  readonly host?: string;
  readonly socket?: string;
  readonly allowAnonymous?: boolean;
  readonly publicUrl?: string;
  readonly worksHere?: boolean;
  readonly concurrency?: number;
  readonly scope?: ProjectScope;
  readonly wrap?: Wrap;
}

const defaultPack: Required<PackConfig> = {
  roots: [],
  memoryMb: 192,
  documentSeconds: 60,
  documentParts: 10_000,
  unpackedMb: 32,
  textMb: 32,
};

/** How long a daemon stays when nobody needs it. */
const defaultIdleMs = 15 * 60_000;
const defaultLogFiles = 3;
export const defaultGraceSeconds = 25;

interface Surroundings {
  readonly cwd: string;
  readonly env: ProcessEnvironment;
  readonly flags: Flags;
}

/** Settings that were put together without running a project's code. */
export interface KnownSettings {
  readonly settings: Settings;
  /**
   * Says so where the config is code that nobody has loaded as it is now: its settings are those it had, or the
   * defaults.
   */
  readonly notice: string | undefined;
}

/**
 * Flags over environment over the project's file over the user's file over defaults. Runs the project's config, where
 * it is code.
 */
export async function loadSettings(from: Surroundings): Promise<Settings> {
  const configFile = findConfigFile(from.cwd, from.flags);
  const home = openHome(from.env);
  const said = configFile === undefined ? saidElsewhere(from.flags) : await loadConfig(home, configFile);
  return toSettings(from, configFile, said, (sources) => {
    const { names } = lookForNames(sources.folders, configFile);
    storeNames(home, projectParts(sources, configFile), names);
    // Nothing is marked where nothing is read.
    if (names.length > 0 || sources.wrap !== undefined) ensureSalt(home);
    return names;
  });
}

/** The same for all who only look: a config that is code counts as it was when it was last loaded. */
export function readSettings(from: Surroundings): KnownSettings {
  const configFile = findConfigFile(from.cwd, from.flags);
  const home = openHome(from.env);
  const known = (sources: CommandSources) => readStoredNames(home, projectParts(sources, configFile));
  if (configFile === undefined)
    return { settings: toSettings(from, undefined, saidElsewhere(from.flags), known), notice: undefined };
  if (isData(configFile))
    return { settings: toSettings(from, configFile, readJsonConfig(configFile), known), notice: undefined };
  const stored = readStoredConfig(home, configFile);
  const said = checkStored(stored?.said);
  const isCurrent = stored?.isCurrent === true && said !== undefined;
  return {
    settings: toSettings(from, configFile, said ?? {}, known),
    notice: isCurrent ? undefined : unloadedNotice(configFile, stored !== undefined),
  };
}

/** What is said in place of a config file: by an author's program, or on the command line. */
function saidElsewhere({ wrap }: Flags): UserConfig {
  if (wrap === undefined) return checkConfig(thisProgram.parts.settings, "createCli");
  const { upstreams, prefix } = wrap;
  return checkConfig({ upstreams, ...(prefix !== undefined && { upstreamPrefix: prefix }) }, "wrap");
}

function toSettings(
  { cwd, env, flags }: Surroundings,
  configFile: string | undefined,
  project: UserConfig,
  namesRead: (sources: CommandSources) => readonly string[],
): Settings {
  const home = openHome(env);
  const config = overUsers(readUsers(home), checkFolders(project, configFile, flags));
  const sources = commandSources(cwd, config, flags);
  const { wrap } = sources;
  const { upstreams, leftOut } = withoutDisabled(wrap ?? { upstreams: config.upstreams ?? {} });
  const named = countedNames(config.env ?? [], referencesIn(upstreams));
  const version = projectVersion(cwd, sources, configFile);
  const startedWith = keepVariables(env);
  /** Reads all files of the project, so it is called only when the names are needed. */
  const names = once(() => countedNames(named, namesRead(sources)));
  const parts = { sources, configFile, userConfigFile: home.configFile, env, version };
  const key = once(() => daemonKey({ ...parts, names: names(), salt: readSalt(home) }));
  const marks = once(() =>
    // Machines are expected to differ, and their homes mark the same value differently.
    isAcrossMachines(store) ? {} : { ...markValues(home, startedWith, names()), ...marksOfWrap(home, wrap) },
  );
  const store = storeOf(home, env, cwd);
  if (startedWith === env) marks();
  return {
    home,
    store,
    queue: queueFrom(env),
    project: config.project ?? projectId(projectParts(sources, configFile)),
    worksHere: flags.worksHere ?? true,
    concurrency: flags.concurrency,
    daemon: {
      get key() {
        return key();
      },
      isPackAlone: isPackAlone(sources, configFile),
      get env() {
        return names();
      },
      named,
      idleMs: secondsFrom(env, thisProgram.variable("IDLE_SECONDS")) ?? defaultIdleMs,
    },
    get environment() {
      return marks();
    },
    configFile,
    workingFolder: toWorkingFolder(cwd),
    commandFolders: sources.folders,
    bundled: sources.bundled,
    toolPrefix: wrap === undefined ? (config.toolPrefix ?? "") : "",
    http: toHttp(flags, env, config),
    ...configured(config, env),
    serverVersion: config.version ?? version ?? programVersion(),
    upstreams,
    leftOut,
    isWrap: wrap !== undefined,
  };
}

/**
 * Copies the variables, because the files of commands may change them, for example by dotenv. On Windows a copy would
 * find no name that is written in another case, so there the variables are returned, to be read at once.
 */
function keepVariables(env: Surroundings["env"]): Surroundings["env"] {
  return system.platform === "win32" ? env : { ...env };
}

/**
 * Returns the project's config. Throws when it names a folder of commands that does not exist: a misspelt one would be
 * served as an empty one. Without `commands` in the config, the default folder may be missing.
 */
function checkFolders(project: UserConfig, configFile: string | undefined, flags: Flags): UserConfig {
  if (configFile === undefined || flags.commands !== undefined) return project;
  const { commands = [] } = project;
  const toFolder = (name: string) => path.resolve(path.dirname(configFile), name);
  const missing = commands.find((name) => !existsSync(toFolder(name)));
  if (missing === undefined) return project;
  throw new RuntimeError(
    "CONFIG_INVALID",
    `${configFile}: \`commands\` names ${JSON.stringify(missing)}, and there is no folder ${toFolder(missing)}; create it, or correct the name.`,
  );
}

/** Splits the named upstreams into those that are served, and those that are not with the reason. */
function withoutDisabled({ upstreams, leftOut }: Wrap): Pick<Settings, "upstreams" | "leftOut"> {
  const all = Object.entries(upstreams);
  const disabled = all.filter(([, config]) => config.disabled === true).map(([name]) => name);
  return {
    upstreams: Object.fromEntries(all.filter(([name]) => !disabled.includes(name))),
    leftOut: { ...leftOut, ...Object.fromEntries(disabled.map((name) => [name, "it is disabled in the config"])) },
  };
}

/** What a config says alone, or with variables of the environment, filled in with the defaults. */
function configured(config: UserConfig, env: ProcessEnvironment) {
  const isDebug = env[thisProgram.variable("DEBUG")] === "1";
  return {
    name: config.name ?? thisProgram.name,
    version: programVersion(),
    instructions: config.instructions,
    logLevel: levelFrom(env[thisProgram.variable("LOG")]) ?? config.logLevel ?? (isDebug ? "debug" : "info"),
    logFiles: config.logFiles ?? defaultLogFiles,
    isDebug,
    deferral: deferralFrom(env, config.deferral ?? {}),
    hosts: config.hosts ?? {},
    hostName: env[thisProgram.variable("HOST")]?.trim() || undefined,
    followUpTools: config.followUpTools ?? true,
    errorsAsCompleted: config.errorsAsCompleted ?? false,
    graceSeconds: config.graceSeconds ?? defaultGraceSeconds,
    questionSeconds: config.questionSeconds ?? defaultQuestionMs / 1000,
    limits: { ...defaultLimits, ...config.limits },
    prompts: config.prompts ?? true,
    auth: authFrom(config),
    diagnose: { allowPrivate: config.diagnose?.allowPrivate ?? false },
    pack: { ...defaultPack, ...config.pack, roots: (config.pack?.roots ?? defaultPack.roots).map(expandHome) },
    mcp: config.mcp,
    upstreamPrefix: config.upstreamPrefix,
  };
}

/** Calls `make` at the first call and returns the same value from then on. */
function once<T extends object | string>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

function toHttp(flags: Flags, env: ProcessEnvironment, { http }: UserConfig): Settings["http"] {
  return {
    port: flags.port ?? portFrom(env[thisProgram.variable("PORT")]) ?? http?.port ?? 7337,
    host: flags.host ?? http?.host ?? "127.0.0.1",
    allowAnonymous: flags.allowAnonymous ?? http?.allowAnonymous ?? false,
    publicUrl: flags.publicUrl ?? http?.publicUrl,
    allowedOrigins: http?.allowedOrigins ?? [],
    ...(flags.socket !== undefined && { socket: flags.socket }),
  };
}

function authFrom({ auth = {} }: UserConfig): Settings["auth"] {
  const { issuers = [], access = [], listUngranted = true } = auth;
  return { issuers, access, listUngranted };
}

/** How the server of a project introduces itself to clients. */
export function identityOf({ name, serverVersion, instructions }: Settings) {
  return { name, version: serverVersion, instructions };
}

/** What a project is made of, as its settings have it. */
export function sourcesOf({ commandFolders, bundled, isWrap, upstreams }: Settings): CommandSources {
  return { folders: commandFolders, bundled, ...(isWrap && { wrap: { upstreams } }) };
}

/** The user's own config; empty where there is none. */
function readUsers({ configFile }: Home): UserConfig {
  return existsSync(configFile) ? readJsonConfig(configFile) : {};
}

function overUsers(user: UserConfig, project: UserConfig): UserConfig {
  return {
    ...user,
    ...project,
    http: { ...user.http, ...project.http },
    auth: { ...user.auth, ...project.auth },
    deferral: { ...user.deferral, ...project.deferral },
    hosts: { ...user.hosts, ...project.hosts },
    limits: { ...user.limits, ...project.limits },
    pack: { ...user.pack, ...project.pack },
    upstreams: { ...user.upstreams, ...project.upstreams },
  };
}

/** Names a project by what makes it up. */
export function projectId(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 16);
}
