import { createHash, createHmac } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import type { McpServer } from "@modelcontextprotocol/server";
import type { ParseError } from "jsonc-parser";
import { environmentNames, type Found, isVariableName } from "./command/environment.ts";
import { loadModule } from "./command/load.ts";
import { describePlace, placeOf } from "./command/place.ts";
import { closest } from "./command/suggest.ts";
import { messageOf, RuntimeError, UsageError } from "./errors.ts";
import type { HostOverride } from "./host/profiles.ts";
import { type LogLevel, logLevels } from "./log.ts";
import {
  ensureSalt,
  type Home,
  openHome,
  type ProcessEnvironment,
  readConfigText,
  readSalt,
  refuseLongConfig,
} from "./paths.ts";
import {
  type Bundled,
  bundledDomains,
  type CommandSources,
  commandSources,
  countedNames,
  daemonKey,
  findConfigFile,
  isBundledFile,
  isPackAlone,
  isPackFolder,
  type ProjectConfig,
  packageFolder,
  packageVersion,
  projectParts,
  type Scope,
} from "./project/project.ts";
import {
  readStoredConfig,
  readStoredNames,
  readText,
  storeConfig,
  storeNames,
  unloadedNotice,
} from "./project/stored-project.ts";
import { storeOf } from "./store/open.ts";
import { type DeferralRules, defaultDeferral } from "./task/deferral.ts";
import { defaultQuestionMs } from "./task/limits.ts";
import type { EnvironmentMarks } from "./task/task.ts";

/** Called for every MCP server that is made, to add resources, prompts and tools of one's own. */
export type ServerHook = (server: McpServer, facts: { readonly era: "legacy" | "modern" }) => void | Promise<void>;

/** What a project's `meanwhile.config.ts` may say. */
export interface UserConfig {
  /** How the server introduces itself. Default: meanwhile. */
  readonly name?: string;
  /** Told to clients when they connect: what the tools are for, what to use first. */
  readonly instructions?: string;
  /** Command folders, relative to the config file. Default: commands. */
  readonly commands?: readonly string[];
  /**
   * Environment variables that commands depend on, beside those that their code is seen to read: other values, another
   * daemon.
   */
  readonly env?: readonly string[];
  /**
   * The commands that come with Meanwhile: `true` serves them beside the project's own, a list only these domains of
   * them, `false` none. Default: all, where the project has no command of its own.
   */
  readonly bundled?: Bundled;
  /** Put in front of every tool name: `wksm` makes wksm_report_build. */
  readonly toolPrefix?: string;
  readonly http?: HttpConfig;
  /** `false`: commands are tools only, and no prompts. */
  readonly prompts?: boolean;
  readonly logLevel?: LogLevel;
  /** How many earlier files of the home's logs are kept, 10 MiB each. Default: 3. */
  readonly logFiles?: number;
  /** When a call that takes long becomes a task. */
  readonly deferral?: DeferralConfig;
  /** How long MCP hosts wait, by the name they give as `clientInfo.name`. */
  readonly hosts?: Readonly<Record<string, HostOverride>>;
  /** List task_result, task_status and the like, for clients without tasks. Default: true. */
  readonly followUpTools?: boolean;
  /** Report tool errors of 2025-11-25 tasks as completed, for clients that never fetch a failed task's result. */
  readonly errorsAsCompleted?: boolean;
  /** How long a process that was told to stop lets work go on that must not be run twice. Default: 25. */
  readonly graceSeconds?: number;
  /** How long a question of a task waits for its answer; then the task ends. Default: 86400, a day. */
  readonly questionSeconds?: number;
  /**
   * `allowPrivate`: the tool diagnose_server may speak to this machine and to private networks. Default: false, because
   * a model says where to go.
   */
  readonly diagnose?: DiagnoseConfig;
  /** What the bundled commands may do for MCP clients, and what one document may take of those that read it. */
  readonly pack?: PackConfig;
  /** Hands over the SDK's McpServer. */
  readonly mcp?: ServerHook;
}

export interface HttpConfig {
  /** Default: 7337. */
  readonly port?: number;
  /** A loopback address. Default: 127.0.0.1. */
  readonly host?: string;
  /** Lets callers in without a token, as `anonymous`; they have nothing of the bundled commands. Default: false. */
  readonly allowAnonymous?: boolean;
}

export interface PackConfig {
  /**
   * Files and folders that they may read through MCP, beside the session's working folder: whole paths, or such that
   * begin with ~/.
   */
  readonly roots?: readonly string[];
  /** Megabytes of memory for reading a document. Default: 192. */
  readonly memoryMb?: number;
  /** Seconds for reading a document. Default: 60. */
  readonly documentSeconds?: number;
  /** Files inside a document, its pages, columns, links, headings or tags: so many of each. Default: 10,000. */
  readonly documentParts?: number;
  /** Megabytes that are unpacked from a document, all parts together. Default: 32. */
  readonly unpackedMb?: number;
  /** Megabytes of text that may come of a document. Default: 32. */
  readonly textMb?: number;
}

export interface DiagnoseConfig {
  readonly allowPrivate?: boolean;
}

export interface DeferralConfig {
  /** `false`: only tasks that the client asks for. */
  readonly auto?: boolean;
  /** The tools that count as long, in place of those declared so. */
  readonly tools?: readonly string[];
  /** Clients without tasks get no deferral at all. */
  readonly requireClientTasks?: boolean;
  /** Give a 2025-11-25 client a task it did not ask for; the specification forbids it. */
  readonly unsolicited?: boolean;
  /** How long a client that takes tasks waits for an answer. Default: 10. */
  readonly patienceSeconds?: number;
  /** A command whose runs' p95 is above this counts as long. Default: 10. */
  readonly longSeconds?: number;
  /** No call stays open longer, whatever its host would bear. Default: 600. */
  readonly keepInlineSeconds?: number;
}

/** Gives a config file its types. */
export function defineConfig(config: UserConfig): UserConfig {
  return config;
}

/** Everything decided; nothing optional after this but what may truly be absent. */
export interface Settings {
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
  readonly home: Home;
  /** Where the tasks are kept: what it means is for `store/open.ts` to say. */
  readonly store: string;
  /** Names this set of folders and its config file: a worker runs only tasks of its own project. */
  readonly project: string;
  /** The process that serves this project to stdio clients. */
  readonly daemon: {
    readonly key: string;
    readonly isPackAlone: boolean;
    /**
     * Variables whose values make another daemon: those that the config names, and those that the project's code reads.
     */
    readonly env: readonly string[];
    /** Those that the config names. */
    readonly named: readonly string[];
    readonly idleMs: number;
  };
  /** Marks of what this process has of the variables that the project's code reads, as it was started. */
  readonly environment: EnvironmentMarks;
  readonly configFile: string | undefined;
  readonly commandFolders: readonly string[];
  /** Undefined where nobody has said it: then they are served as long as there is no other command. */
  readonly bundled: Bundled | undefined;
  readonly toolPrefix: string;
  readonly http: { readonly port: number; readonly host: string; readonly allowAnonymous: boolean };
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
  readonly prompts: boolean;
  readonly diagnose: { readonly allowPrivate: boolean };
  readonly pack: Required<PackConfig>;
  readonly mcp: ServerHook | undefined;
}

/** What the command line said. */
export interface Flags {
  readonly commands?: readonly string[];
  readonly bundled?: boolean;
  readonly port?: number;
  readonly host?: string;
  readonly allowAnonymous?: boolean;
  readonly scope?: Scope;
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
const defaultGraceSeconds = 25;
/** Whoever starts and stops processes kills those that take much longer. */
const maxGraceSeconds = 600;

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
  return toSettings(from, configFile, configFile === undefined ? {} : await loadConfig(home, configFile), (sources) => {
    const { names } = lookForNames(sources.folders, configFile);
    storeNames(home, projectParts(sources, configFile), names);
    // Nothing is marked where nothing is read.
    if (names.length > 0) ensureSalt(home);
    return names;
  });
}

/**
 * The variables that a project's own files read, as they are now: those of its commands, and its config's where that is
 * code.
 */
export function lookForNames(folders: readonly string[], configFile: string | undefined): Found {
  const own = folders.filter((folder) => !isBundledFile(path.join(folder, "any")));
  const ours = ["src", "dist"].map((folder) => path.join(packageFolder, folder, path.sep));
  return environmentNames({
    folders: own,
    files: configFile === undefined || isData(configFile) ? [] : [configFile],
    skips: (file) => ours.some((folder) => file.startsWith(folder)),
  });
}

/** The same for all who only look: a config that is code counts as it was when it was last loaded. */
export function readSettings(from: Surroundings): KnownSettings {
  const configFile = findConfigFile(from.cwd, from.flags);
  const home = openHome(from.env);
  const known = (sources: CommandSources) => readStoredNames(home, projectParts(sources, configFile));
  if (configFile === undefined) return { settings: toSettings(from, undefined, {}, known), notice: undefined };
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

/** Data is read by everybody; code is run by those who are asked to. */
function isData(configFile: string): boolean {
  return configFile.endsWith(".json");
}

/** What was kept by another version may not be what this one takes. */
function checkStored(said: unknown): UserConfig | undefined {
  try {
    return said === undefined ? undefined : checkConfig(said, "what was kept");
  } catch {
    return undefined;
  }
}

function toSettings(
  { cwd, env, flags }: Surroundings,
  configFile: string | undefined,
  project: UserConfig,
  namesRead: (sources: CommandSources) => readonly string[],
): Settings {
  const home = openHome(env);
  const user = existsSync(home.configFile) ? readJsonConfig(home.configFile) : {};
  const config: UserConfig = {
    ...user,
    ...project,
    http: { ...user.http, ...project.http },
    deferral: { ...user.deferral, ...project.deferral },
    hosts: { ...user.hosts, ...project.hosts },
    pack: { ...user.pack, ...project.pack },
  };
  const isDebug = env.MEANWHILE_DEBUG === "1";
  const sources = commandSources(cwd, config, flags);
  const named = config.env ?? [];
  const names = countedNames(named, namesRead(sources));
  return {
    name: config.name ?? "meanwhile",
    version: packageVersion(),
    instructions: config.instructions,
    home,
    store: storeOf(home, env, cwd),
    project: projectId(projectParts(sources, configFile)),
    daemon: {
      key: daemonKey({ sources, configFile, userConfigFile: home.configFile, env, names, salt: readSalt(home) }),
      isPackAlone: isPackAlone(sources, configFile),
      env: names,
      named,
      idleMs: secondsFrom(env, "MEANWHILE_IDLE_SECONDS") ?? defaultIdleMs,
    },
    environment: markValues(home, env, names),
    configFile,
    commandFolders: sources.folders,
    bundled: sources.bundled,
    toolPrefix: config.toolPrefix ?? "",
    http: {
      port: flags.port ?? portFrom(env.MEANWHILE_PORT) ?? config.http?.port ?? 7337,
      host: flags.host ?? config.http?.host ?? "127.0.0.1",
      allowAnonymous: flags.allowAnonymous ?? config.http?.allowAnonymous ?? false,
    },
    logLevel: levelFrom(env.MEANWHILE_LOG) ?? config.logLevel ?? (isDebug ? "debug" : "info"),
    logFiles: config.logFiles ?? defaultLogFiles,
    isDebug,
    deferral: deferralFrom(env, config.deferral ?? {}),
    hosts: config.hosts ?? {},
    hostName: env.MEANWHILE_HOST?.trim() || undefined,
    followUpTools: config.followUpTools ?? true,
    errorsAsCompleted: config.errorsAsCompleted ?? false,
    graceSeconds: config.graceSeconds ?? defaultGraceSeconds,
    questionSeconds: config.questionSeconds ?? defaultQuestionMs / 1000,
    prompts: config.prompts ?? true,
    diagnose: { allowPrivate: config.diagnose?.allowPrivate ?? false },
    pack: { ...defaultPack, ...config.pack, roots: (config.pack?.roots ?? defaultPack.roots).map(expandHome) },
    mcp: config.mcp,
  };
}

/** The part of a project's file that says which project it is. */
export async function projectConfigOf(home: Home, file: string): Promise<ProjectConfig> {
  const { commands, bundled, env } = await loadConfig(home, file);
  return {
    ...(commands !== undefined && { commands }),
    ...(bundled !== undefined && { bundled }),
    ...(env !== undefined && { env }),
  };
}

/**
 * Tells values apart without saying anything about them; the same value has the same mark in all processes of a home.
 */
export function markValues(home: Home, env: ProcessEnvironment, names: readonly string[]): EnvironmentMarks {
  const salt = readSalt(home);
  const markOf = (name: string, value: string) =>
    createHmac("sha256", salt).update(`${name}\0${value}`).digest("base64url").slice(0, 22);
  return Object.fromEntries(names.map((name) => [name, env[name] === undefined ? "" : markOf(name, env[name])]));
}

/**
 * The part of the settings that a command may see: each under the name that a config file has for it, and under `facts`
 * what cannot be set there.
 */
export function publicSettings(settings: Settings): Readonly<Record<string, unknown>> {
  const {
    home,
    mcp: _hook,
    version,
    store,
    project,
    daemon,
    configFile,
    commandFolders,
    isDebug,
    hostName,
    deferral,
    environment: _marks,
    bundled,
    ...others
  } = settings;
  const { env: _names, named: env, ...process } = daemon;
  return {
    ...others,
    commands: commandFolders.filter((folder) => !isPackFolder(folder)),
    ...(bundled !== undefined && { bundled }),
    env,
    deferral: toConfig(deferral),
    facts: { version, home: home.folder, configFile, storeFile: store, project, daemon: process, hostName, isDebug },
  };
}

function toConfig(rules: DeferralRules): DeferralConfig {
  const { isAuto, tools, requiresClientTasks, isUnsolicited, patienceMs, longFromMs, keepInlineMs } = rules;
  return {
    auto: isAuto,
    ...(tools !== undefined && { tools: [...tools] }),
    requireClientTasks: requiresClientTasks,
    unsolicited: isUnsolicited,
    patienceSeconds: patienceMs / 1000,
    longSeconds: longFromMs / 1000,
    keepInlineSeconds: keepInlineMs / 1000,
  };
}

function expandHome(folder: string): string {
  return folder === "~" || folder.startsWith("~/") ? path.join(homedir(), folder.slice(1)) : folder;
}

function projectId(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, 16);
}

function deferralFrom(env: ProcessEnvironment, config: DeferralConfig): DeferralRules {
  const toMs = (seconds: number | undefined) => (seconds === undefined ? undefined : seconds * 1000);
  return {
    isAuto: switchFrom(env, "MEANWHILE_AUTO_TASK") ?? config.auto ?? defaultDeferral.isAuto,
    tools: toolsFrom(env.MEANWHILE_AUTO_TASK_TOOLS) ?? config.tools ?? defaultDeferral.tools,
    requiresClientTasks:
      switchFrom(env, "MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP") ??
      config.requireClientTasks ??
      defaultDeferral.requiresClientTasks,
    isUnsolicited:
      switchFrom(env, "MEANWHILE_AUTO_TASK_UNSOLICITED") ?? config.unsolicited ?? defaultDeferral.isUnsolicited,
    patienceMs: toMs(config.patienceSeconds) ?? defaultDeferral.patienceMs,
    longFromMs: toMs(config.longSeconds) ?? defaultDeferral.longFromMs,
    keepInlineMs: toMs(config.keepInlineSeconds) ?? defaultDeferral.keepInlineMs,
  };
}

function switchFrom(env: ProcessEnvironment, name: string): boolean | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (value !== "0" && value !== "1") throw new UsageError(`${name} must be 0 or 1, not "${value}".`);
  return value === "1";
}

function secondsFrom(env: ProcessEnvironment, name: string): number | undefined {
  const value = env[name];
  if (value === undefined || value === "") return undefined;
  if (!isSeconds(Number(value)))
    throw new UsageError(`${name} must be seconds from 0 to ${maxSeconds}, not "${value}".`);
  return Number(value) * 1000;
}

function toolsFrom(value: string | undefined): string[] | undefined {
  const names = (value ?? "").split(",").flatMap((name) => name.trim() || []);
  if (names.some((name) => /\s/.test(name)))
    throw new UsageError(`MEANWHILE_AUTO_TASK_TOOLS must be tool names with commas between them, not "${value}".`);
  return names.length === 0 ? undefined : names;
}

function portFrom(value: string | undefined): number | undefined {
  if (value === undefined || value === "") return undefined;
  if (!isPort(Number(value)))
    throw new UsageError(`MEANWHILE_PORT must be a whole number from 0 to 65535, not "${value}".`);
  return Number(value);
}

function levelFrom(value: string | undefined): LogLevel | undefined {
  if (value === undefined || value === "") return undefined;
  if (!logLevels.includes(value as LogLevel))
    throw new UsageError(`MEANWHILE_LOG must be one of ${logLevels.join(", ")}, not "${value}".`);
  return value as LogLevel;
}

async function loadConfig(home: Home, file: string): Promise<UserConfig> {
  if (isData(file)) return readJsonConfig(file);
  refuseLongConfig(file);
  const text = readText(file);
  let exported: unknown;
  try {
    exported = (await loadModule(file)).default;
  } catch (cause) {
    throw new RuntimeError(
      "CONFIG_INVALID",
      `Cannot load ${file}: ${messageOf(cause).split("\n")[0]}${lineIn(file, cause)}`,
      { cause },
    );
  }
  const said = checkConfig(exported, file);
  storeConfig(home, file, { text, said });
  return said;
}

/** The line that threw; where it is another file's, that one is named. */
function lineIn(file: string, cause: unknown): string {
  const place = placeOf(cause);
  if (place === undefined) return "";
  return place.file === realpathSync(file) ? ` (line ${place.line})` : ` (${describePlace(place)})`;
}

function readJsonConfig(file: string): UserConfig {
  let text = "";
  let parsed: unknown;
  try {
    text = readConfigText(file);
    parsed = JSON.parse(text);
  } catch (cause) {
    if (cause instanceof RuntimeError) throw cause;
    throw new RuntimeError(
      "CONFIG_INVALID",
      `Cannot read ${file}${cause instanceof SyntaxError ? describeJsonError(text, cause) : `: ${messageOf(cause)}`}`,
      {
        cause,
      },
    );
  }
  return checkConfig(parsed, file);
}

/** Node's own sentence names a place for some mistakes only, and quotes the file for others. */
function describeJsonError(text: string, { message }: SyntaxError): string {
  const why = message.replace(/(,? in JSON at position|, (\.\.\.)?").*$/s, "");
  const { parse } = createRequire(import.meta.url)("jsonc-parser") as typeof import("jsonc-parser");
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true, allowEmptyContent: false });
  const before = text.slice(0, errors[0]?.offset ?? text.length).split("\n");
  return ` at line ${before.length}, column ${(before.at(-1) ?? "").length + 1}: ${why}.`;
}

const isText = (value: unknown) => typeof value === "string" && value !== "";
const isBoolean = (value: unknown) => typeof value === "boolean";
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const isPort = (value: unknown) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65535;
/** A week: more than any wait, and less than a timer can hold. */
const maxSeconds = 604_800;
const isSeconds = (value: unknown) => typeof value === "number" && value >= 0 && value <= maxSeconds;

const isRoot = (value: unknown) =>
  isText(value) && path.isAbsolute(expandHome(value as string)) && !(value as string).includes("\0");

function isBundledChoice(value: unknown): boolean {
  return isBoolean(value) || (Array.isArray(value) && unknownDomain(value) === undefined);
}

function unknownDomain(value: readonly unknown[]): unknown {
  const known = bundledDomains();
  return value.find((domain) => !known.includes(domain as string));
}

function describeBundled(value: unknown): string {
  const wrong = Array.isArray(value) ? `, not ${JSON.stringify(unknownDomain(value))}` : "";
  return `true, false, or a list of domains of the bundled commands (${bundledDomains().join(", ")})${wrong}`;
}

interface Field {
  readonly check: (value: unknown) => boolean;
  readonly expected: string | ((value: unknown) => string);
  /**
   * A tool may change it, when the person agrees. Without this a person has to do it, in a terminal or in the file:
   * what is new is closed.
   */
  readonly isOpen?: true;
  /** The fields of an object. */
  readonly fields?: Readonly<Record<string, Field>>;
  /** What stands behind any name of an object. */
  readonly each?: Field;
}

const trueOrFalse: Field = { check: isBoolean, expected: "true or false" };
const seconds: Field = { check: isSeconds, expected: `seconds from 0 to ${maxSeconds}` };

const deferralFields: Record<keyof DeferralConfig, Field> = {
  auto: trueOrFalse,
  tools: { check: (value) => Array.isArray(value) && value.every(isText), expected: "a list of tool names" },
  requireClientTasks: trueOrFalse,
  unsolicited: trueOrFalse,
  patienceSeconds: seconds,
  longSeconds: seconds,
  keepInlineSeconds: seconds,
};

const httpFields: Record<keyof HttpConfig, Field> = {
  port: { check: isPort, expected: "a whole number from 0 to 65535" },
  host: { check: isText, expected: "text" },
  allowAnonymous: trueOrFalse,
};

const hostFields: Record<keyof HostOverride, Field> = {
  limitSeconds: { check: (value) => isSeconds(value) && value !== 0, expected: `seconds above 0, up to ${maxSeconds}` },
  isExtended: trueOrFalse,
};

const wholeFrom = (least: number, most: number): Field => ({
  check: (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most,
  expected: `a whole number from ${least} to ${most}`,
});

const packFields: Record<keyof PackConfig, Field> = {
  roots: {
    check: (value) => Array.isArray(value) && value.every(isRoot),
    expected: "a list of whole paths, or such that begin with ~/",
  },
  memoryMb: wholeFrom(128, 16_384),
  documentSeconds: {
    check: (value) => isSeconds(value) && value !== 0,
    expected: `seconds above 0, up to ${maxSeconds}`,
  },
  documentParts: wholeFrom(1, 1_000_000),
  unpackedMb: wholeFrom(1, 4_096),
  textMb: wholeFrom(1, 256),
};

const fields: Record<keyof UserConfig, Field> = {
  name: { check: isText, expected: "text", isOpen: true },
  instructions: { check: isText, expected: "text", isOpen: true },
  commands: { check: (value) => Array.isArray(value) && value.every(isText), expected: "a list of folders" },
  env: {
    check: (value) => Array.isArray(value) && value.every(isVariableName),
    expected:
      'a list of names of variables, each of letters, digits and _ and not beginning with a digit, such as "ACME_KEY"',
  },
  bundled: { check: isBundledChoice, expected: describeBundled },
  toolPrefix: {
    check: (value) => typeof value === "string" && /^([A-Za-z][A-Za-z0-9_]*)?$/.test(value),
    expected: "letters, digits and _, starting with a letter",
    isOpen: true,
  },
  http: { check: isObject, expected: `{ ${Object.keys(httpFields).join(", ")} }`, fields: httpFields },
  logLevel: {
    check: (value) => logLevels.includes(value as LogLevel),
    expected: `one of ${logLevels.join(", ")}`,
    isOpen: true,
  },
  logFiles: wholeFrom(1, 100),
  deferral: {
    check: isObject,
    expected: `{ ${Object.keys(deferralFields).join(", ")} }`,
    fields: deferralFields,
    isOpen: true,
  },
  hosts: {
    check: isObject,
    expected: "hosts by name",
    each: { check: isObject, expected: "{ limitSeconds, isExtended }", fields: hostFields },
    isOpen: true,
  },
  followUpTools: { ...trueOrFalse, isOpen: true },
  errorsAsCompleted: { ...trueOrFalse, isOpen: true },
  questionSeconds: {
    check: (value) => isSeconds(value) && value !== 0,
    expected: `seconds above 0, up to ${maxSeconds}`,
  },
  graceSeconds: {
    check: (value) => isSeconds(value) && (value as number) <= maxGraceSeconds,
    expected: `seconds from 0 to ${maxGraceSeconds}`,
  },
  prompts: { ...trueOrFalse, isOpen: true },
  diagnose: { check: isObject, expected: "{ allowPrivate }", fields: { allowPrivate: trueOrFalse } },
  pack: { check: isObject, expected: `{ ${Object.keys(packFields).join(", ")} }`, fields: packFields },
  mcp: { check: (value) => typeof value === "function", expected: "a function (server) => void" },
};

/** Settings that were, and what to do about one that is still there. */
const gone: Readonly<Record<string, string>> = {
  requireToken:
    "is no setting any more, because HTTP asks for the token by itself; take it out (`http.allowAnonymous` lets callers in without one)",
};

/**
 * Who may change a setting: a tool, when the person agrees; only a person, in a terminal or in the file, where it
 * decides which code runs, which files may be read, who may connect or whom we may reach; nobody, because it is none.
 */
export function changeableBy(key: string): "tool" | "person" | "nobody" {
  const [name = ""] = key.split(".");
  if (!Object.hasOwn(fields, name)) return "nobody";
  return fields[name as keyof UserConfig].isOpen === true ? "tool" : "person";
}

/** Holds a config to the rules, whole; throws one sentence that names the file, the setting and what it must be. */
export function checkConfig(value: unknown, file: string): UserConfig {
  const refuse = (text: string) => new RuntimeError("CONFIG_INVALID", `${file}: ${text}`);
  if (!isObject(value)) throw refuse("must hold one object; write: export default defineConfig({ … })");
  checkFields(value, fields, "");
  return value;

  function checkFields(object: object, known: Readonly<Record<string, Field>>, at: string): void {
    for (const [name, entry] of Object.entries(object)) {
      const field = Object.hasOwn(known, name) ? known[name] : undefined;
      if (field !== undefined) {
        checkField(entry, field, `${at}${name}`);
        continue;
      }
      const farewell = at === "" && Object.hasOwn(gone, name) ? gone[name] : undefined;
      if (farewell !== undefined) throw refuse(`\`${name}\` ${farewell}`);
      const guess = closest(name, Object.keys(known));
      throw refuse(
        `\`${at}${name}\` is not a setting; ${guess === undefined ? `there are ${Object.keys(known).join(", ")}` : `did you mean \`${at}${guess}\`?`}`,
      );
    }
  }

  function checkField(entry: unknown, field: Field, at: string): void {
    if (entry === undefined) return;
    if (!field.check(entry))
      throw refuse(`\`${at}\` must be ${typeof field.expected === "string" ? field.expected : field.expected(entry)}`);
    if (field.fields !== undefined) checkFields(entry as object, field.fields, `${at}.`);
    if (field.each !== undefined)
      for (const [name, value] of Object.entries(entry as object)) checkField(value, field.each, `${at}.${name}`);
  }
}
