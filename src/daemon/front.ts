import { execFile } from "node:child_process";
import { existsSync, watch } from "node:fs";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { RuntimeError, UsageError } from "../errors.ts";
import { ensureSalt, type Home, openHome, type ProcessEnvironment, readConfigText, readSalt } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import {
  commandSources,
  countedNames,
  daemonKey,
  executable,
  findConfigFile,
  fingerprint,
  flagWords,
  hasConfigFile,
  hasOwnFolders,
  keyVariable,
  type ProjectConfig,
  type ProjectFlags,
  type ProjectScope,
  programVersion,
  projectParts,
  projectVersion,
} from "../project/project.ts";
import { forgetConfig, isMade, readStoredConfig, readStoredNames, unloadedNotice } from "../project/stored-project.ts";
import { referencesIn, unsetVariable } from "../project/variable-references.ts";
import { sessionEnvironment, wrapVariable } from "../project/wrap.ts";
import { readWrapVariables } from "../project/wrap-variables.ts";
import { readWrapWords } from "../project/wrap-words.ts";
import { clean, cleanLines } from "../screen/clean.ts";
import { nobodys } from "../system/child-environment.ts";
import { readAnswers } from "./carry/kept-answers.ts";
import { Pump } from "./carry/pump.ts";
import { reachDaemon } from "./reach/connect.ts";
import type { DaemonAddress, Launched } from "./reach/start.ts";
import { DaemonUnreachable, KeyOutdated, refuseGone } from "./reach/unreachable.ts";
import { printWaitingNote } from "./waiting-note.ts";

/**
 * The stdio proxy (`meanwhile serve` over stdio): finds or starts the daemon of this project and forwards MCP messages
 * between the host and the daemon. Hosts start one per session and may kill it at any time, so it imports little.
 */

/** Where a daemon is looked for, and how it is started. */
export interface DaemonPlace {
  readonly cwd: string;
  readonly env: ProcessEnvironment;
  /** Starts a daemon with these flags. Default: in a process of its own. */
  readonly launch?: ((flags: ProjectFlags, address: DaemonAddress) => Launched) | undefined;
}

/** What a stdio proxy has of its process. */
export interface ProxyContext extends DaemonPlace {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable;
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown };
  /** The folder in which the host has started the process; `cwd` may be another one, see `-C`. Default: `cwd`. */
  readonly startedIn?: string | undefined;
}

/** This process, read when it is asked: tests and `-C` change its folder. */
const ownPlace = (): DaemonPlace => ({ cwd: process.cwd(), env: process.env });

/** The project's config cannot be read; the sentence says why. */
class ConfigUnreadable extends DaemonUnreachable {
  override readonly name = "ConfigUnreadable";
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Code that takes longer to say what it says is not waited for. */
const readLimitMs = 15_000;

/**
 * Parses the arguments of `serve` and `wrap` over stdio. Returns undefined for all other arguments; the full CLI parses
 * those.
 */
export function readFrontWords(
  words: readonly string[],
  { cwd, env }: DaemonPlace = ownPlace(),
): ProjectFlags | undefined {
  const wrap = thisProgram.authors === undefined ? readWrapWords(words, cwd, readWrapVariables(env)) : undefined;
  if (wrap !== undefined) return { wrap };
  const commands: string[] = [];
  let isServe = false;
  let bundled: boolean | undefined;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === "--commands") {
      const folder = words[++at];
      if (folder === undefined) return undefined;
      commands.push(folder);
    } else if (word.startsWith("--commands=")) commands.push(word.slice("--commands=".length));
    else if (word === "--bundled") bundled = true;
    else if (word === "--no-bundled") bundled = false;
    else if (word === "serve" && !isServe) isServe = true;
    else if (word !== "--no-color") return undefined;
  }
  if (!isServe) return undefined;
  return { ...(commands.length > 0 && { commands }), ...(bundled !== undefined && { bundled }) };
}

/** Serves MCP on this process's stdin and stdout until the client disconnects. Returns the exit code. */
export async function runFront(flags: ProjectFlags, startedIn?: string): Promise<number> {
  // All runs are in the daemon, so this process can exit on any signal.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(0));
  setImmediate(stayLean);
  const { stdin, stdout, stderr } = process;
  return await proxyStdio(flags, { ...ownPlace(), stdin, stdout, stderr, startedIn });
}

/** The stdio proxy on given streams: returns the exit code when the client has disconnected. */
export async function proxyStdio(flags: ProjectFlags, context: ProxyContext): Promise<number> {
  const { stdin, stdout, stderr, env, cwd, startedIn } = context;
  let stopWatching = () => {};
  try {
    const home = openHome(env);
    refuseUnset(flags, env);
    // Fixed at the start of the session: commands that appear in the folder later may come from another user and are
    // not loaded. `meanwhile new` is the exception, see watchForProject.
    let scope = scopeOf(flags, context);
    // `wrap` uses the folder given by `-C`; a project uses the folder in which the host started this process.
    const folder = sessionFolder({ cwd, home, startedIn: flags.wrap === undefined ? startedIn : cwd });
    let isHomeKnown = false;
    let lastError = "";
    const reach = async () => {
      const socket = await atAddress(
        { ...flags, ...(scope !== undefined && { scope }) },
        (address) => reachDaemon(address, folder, () => standIn(address)),
        { isHomeKnown, place: context },
      );
      isHomeKnown = true;
      lastError = "";
      return socket;
    };
    // A repeated error is printed once.
    const onUnreachable = ({ message }: Error) => {
      if (message !== lastError) stderr.write(`✗ ${cleanLines(message)}\n`);
      lastError = message;
    };
    let hasLooked = false;
    const standIn = async ({ home, key }: DaemonAddress) => {
      const find = hasLooked ? undefined : readAnswers(home, { key, version: programVersion() });
      hasLooked = true;
      if (find !== undefined) await pump.standIn(find);
    };
    const onNotice = (text: string) => stderr.write(`! ${clean(text)}\n`);
    const pump = new Pump({ input: stdin, output: stdout, reach, onUnreachable, onNotice });
    printWaitingNote(context, flags.wrap !== undefined);
    if (scope === "pack")
      stopWatching = watchForProject(context, () => {
        scope = "folders";
        pump.moveOn();
      });
    await pump.run();
    return 0;
  } catch (error) {
    const isKnown = error instanceof DaemonUnreachable || error instanceof UsageError || error instanceof RuntimeError;
    stderr.write(`✗ ${cleanLines((isKnown ? (error as Error).message : (error as Error).stack) ?? "")}\n`);
    if (error instanceof ConfigUnreadable) return error.exitCode;
    return error instanceof UsageError ? 2 : 70;
  } finally {
    stopWatching();
  }
}

/**
 * Throws if the server of `wrap` needs an environment variable that is not set. Not checked for the upstreams of a
 * project, which can be served without one of them.
 */
function refuseUnset({ wrap }: ProjectFlags, env: ProcessEnvironment): void {
  const unset = wrap === undefined ? undefined : unsetVariable(wrap.upstreams, env);
  if (unset !== undefined) throw new UsageError(unset);
}

/**
 * Returns the session's working folder: the folder in which the host started this process. Desktop apps start servers
 * in the file system's root; then it is the folder given by `-C`. Undefined if it is the home folder of Meanwhile.
 */
function sessionFolder({
  cwd,
  home,
  startedIn = cwd,
}: {
  readonly cwd: string;
  readonly home: Home;
  readonly startedIn: string | undefined;
}): string | undefined {
  const isFileSystemRoot = startedIn === path.parse(startedIn).root;
  const folder = isFileSystemRoot ? cwd : startedIn;
  return folder === home.folder ? undefined : folder;
}

/**
 * Returns which part of the working folder may be served: undefined for all of it, `folders` for its commands without a
 * config file, `pack` for nothing.
 */
function scopeOf(flags: ProjectFlags, { cwd, env }: DaemonPlace): ProjectScope | undefined {
  if (flags.wrap !== undefined || thisProgram.authors !== undefined) return undefined;
  if (findConfigFile(cwd) !== undefined) return undefined;
  return hasOwnFolders(commandSources(cwd, readUserConfig(openHome(env)), flags)) ? "folders" : "pack";
}

/**
 * Calls `onProject` when `meanwhile new` creates a project in a folder that had none. If something else creates one,
 * prints a hint to restart the server. The function that is returned stops the watching.
 */
function watchForProject({ cwd, env, stderr }: ProxyContext, onProject: () => void): () => void {
  const home = openHome(env);
  const folder = path.join(cwd, "commands");
  let hasPrintedHint = false;
  try {
    const watcher = watch(cwd, { persistent: false }, () => {
      if (isMade(home, folder)) {
        watcher.close();
        onProject();
      } else if (!hasPrintedHint && (existsSync(folder) || hasConfigFile(cwd))) {
        hasPrintedHint = true;
        stderr.write(
          `! ${cwd} has become a project after this server started, so nothing in it is loaded; start the server again to serve it.\n`,
        );
      }
    });
    watcher.on("error", () => watcher.close());
    return () => watcher.close();
  } catch {
    // The folder cannot be watched: the project is served from the next session on.
    return () => {};
  }
}

/**
 * A front carries bytes for as long as its host lives, and there are many: compilers that make hot code hotter would
 * take ten megabytes in each, Maglev alone five.
 */
function stayLean(): void {
  const { setFlagsFromString } = process.getBuiltinModule("node:v8");
  for (const flag of ["--no-opt", "--no-maglev"]) setFlagsFromString(flag);
}

/**
 * Calls `act` with the daemon's address. Calls it once more with a new address if the daemon answers that the config or
 * the variables that the code reads have changed.
 */
export async function atAddress<T>(
  flags: ProjectFlags,
  act: (address: DaemonAddress) => Promise<T>,
  { isHomeKnown = false, place = ownPlace() }: Pick<Knowledge, "isHomeKnown" | "place"> = {},
): Promise<T> {
  const address = await addressOf(flags, { isHomeKnown, place });
  try {
    return await act(address);
  } catch (error) {
    if (!(error instanceof KeyOutdated)) throw error;
    const configFile = findConfigFile(place.cwd, flags);
    // A config that is code may also depend on imported files and variables, so its stored values are deleted.
    if (configFile !== undefined) forgetConfig(address.home, configFile);
    return await act(await addressOf(flags, { names: error.names, isHomeKnown, place }));
  }
}

interface Knowledge {
  /** Default true. False: do not run a config that is code, and do not write files. */
  readonly mayLoad?: boolean;
  /**
   * Names of the variables that are part of the daemon key, as reported by a daemon. Default: the names in the config,
   * and the names stored when the project was last loaded.
   */
  readonly names?: readonly string[] | undefined;
  /** True if the home folder existed earlier in this session: then a missing one is an error and is not created. */
  readonly isHomeKnown?: boolean;
  /** Default: this process. */
  readonly place?: DaemonPlace;
}

/** Returns how to connect to this project's daemon, and how to start it. */
export async function addressOf(
  flags: ProjectFlags,
  { mayLoad = true, names: told, isHomeKnown = false, place = ownPlace() }: Knowledge = {},
): Promise<DaemonAddress> {
  const { cwd, env, launch } = place;
  const home = openHome(env);
  refuseGone(home, isHomeKnown);
  const configFile = findConfigFile(cwd, flags);
  const words = flagWords(flags);
  const own = thisProgram.authors?.env;
  const users = readUserConfig(home);
  const said =
    configFile === undefined
      ? pickUpstreams(thisProgram.parts.settings)
      : await readProjectConfig(home, configFile, mayLoad ? { words, cwd, env } : undefined);
  const config = { ...users, ...(own !== undefined && { env: own }), ...said };
  const upstreams = flags.wrap?.upstreams ?? { ...users.upstreams, ...said.upstreams };
  const sources = commandSources(cwd, config, flags);
  const parts = projectParts(sources, configFile);
  const names = told ?? countedNames(config.env ?? [], referencesIn(upstreams), readStoredNames(home, parts));
  if (mayLoad) ensureSalt(home);
  const key = daemonKey({
    ...{ sources, configFile, userConfigFile: home.configFile, env, names, salt: readSalt(home) },
    version: projectVersion(cwd, sources, configFile),
  });
  return {
    home,
    key,
    names,
    project: fingerprint(parts),
    env: {
      ...env,
      [keyVariable()]: key,
      [wrapVariable()]: flags.wrap === undefined ? undefined : JSON.stringify(flags.wrap),
      ...nobodys,
    },
    session: Object.keys(upstreams).length === 0 ? undefined : sessionEnvironment(env),
    host: env[thisProgram.variable("HOST")]?.trim() || undefined,
    // A larger young generation: 20 % less garbage collection while the daemon starts.
    command: [process.execPath, "--min-semi-space-size=16", executable(), ...words, "_daemon", "--report"],
    cwd,
    launch: launch === undefined ? undefined : (address) => launch(flags, address),
    isHomeKnown,
  };
}

/** The few settings that name a project. Whatever else is wrong with the file, the daemon says. */
function readUserConfig(home: Home): ProjectConfig {
  return existsSync(home.configFile) ? pick(readJson(home.configFile)) : {};
}

/** How a config that is code is run. */
interface ConfigRun extends Pick<DaemonPlace, "cwd" | "env"> {
  readonly words: readonly string[];
}

/**
 * Reads the project's config. A JSON file is read in this process. A config that is code is run in a child process, and
 * the result is stored until the text of the file changes. Without `run`, code is not run: throws if the stored result
 * is missing or outdated.
 */
async function readProjectConfig(home: Home, file: string, run: ConfigRun | undefined): Promise<ProjectConfig> {
  if (file.endsWith(".json")) return pick(readJson(file));
  const stored = readStoredConfig(home, file);
  if (stored?.isCurrent === true) return pick(stored.said);
  if (run === undefined) throw new DaemonUnreachable(unloadedNotice(file, stored !== undefined));
  return pick(JSON.parse(await askProject(file, run)));
}

/** Loads the config in a child process and returns its settings as JSON. Kills the child when this process exits. */
function askProject(file: string, { words, cwd, env }: ConfigRun): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [executable(), ...words, "_project"],
      { timeout: readLimitMs, killSignal: "SIGKILL", cwd, env },
      (error, stdout, stderr) => {
        process.off("exit", end);
        if (error === null) return resolve(stdout);
        const code = typeof error.code === "number" ? error.code : 70;
        const why = error.killed
          ? `${file} has not finished loading within ${readLimitMs / 1000} s; look for what it waits for.`
          : toSentence(stderr);
        reject(new ConfigUnreadable(why || `${file} could not be loaded: ${error.message}`, code));
      },
    );
    const end = () => child.kill("SIGKILL");
    process.on("exit", end);
    child.stdin?.end();
  });
}

function toSentence(stderr: string): string {
  return stderr.trim().replace(/^✗ /, "");
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readConfigText(file));
  } catch (error) {
    if (error instanceof RuntimeError) throw error;
    return undefined;
  }
}

function pick(value: unknown): ProjectConfig {
  const { commands, bundled, env } = (typeof value === "object" && value !== null ? value : {}) as Record<
    string,
    unknown
  >;
  return {
    ...(isList(commands) && { commands }),
    ...((typeof bundled === "boolean" || isList(bundled)) && { bundled }),
    ...(isList(env) && { env }),
    ...pickUpstreams(value),
  };
}

function pickUpstreams(value: unknown): Pick<ProjectConfig, "upstreams"> {
  const { upstreams } = (typeof value === "object" && value !== null ? value : {}) as { upstreams?: unknown };
  return typeof upstreams === "object" && upstreams !== null ? { upstreams: upstreams as Record<string, unknown> } : {};
}

function isList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
