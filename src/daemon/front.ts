import { execFile } from "node:child_process";
import { existsSync, watch } from "node:fs";
import path from "node:path";
import { RuntimeError, UsageError } from "../errors.ts";
import { ensureSalt, type Home, openHome, readConfigText, readSalt } from "../paths.ts";
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
} from "../project/project.ts";
import { forgetConfig, isMade, readStoredConfig, readStoredNames, unloadedNotice } from "../project/stored-project.ts";
import { referencesIn, unsetVariable } from "../project/variable-references.ts";
import { sessionEnvironment, wrapVariable } from "../project/wrap.ts";
import { readWrapVariables } from "../project/wrap-variables.ts";
import { readWrapWords } from "../project/wrap-words.ts";
import { cleanLines } from "../screen/clean.ts";
import { nobodys } from "../system/child-environment.ts";
import { readAnswers } from "./carry/kept-answers.ts";
import { Pump } from "./carry/pump.ts";
import { reachDaemon } from "./reach/connect.ts";
import type { DaemonAddress } from "./reach/start.ts";
import { DaemonUnreachable, KeyOutdated, refuseGone } from "./reach/unreachable.ts";

/**
 * `meanwhile serve` over stdio: finds out which daemon serves this project, connects to it or starts it, and carries
 * lines. Hosts start and kill one of these per session, sometimes two, so it loads next to nothing and keeps no work.
 */

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

/** What was typed, when it asks for a front and nothing else; undefined leaves it to the command line proper. */
export function readFrontWords(words: readonly string[]): ProjectFlags | undefined {
  const wrap =
    thisProgram.authors === undefined ? readWrapWords(words, process.cwd(), readWrapVariables(process.env)) : undefined;
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

/** Serves this process's stdin and stdout until the client hangs up; the exit code. */
export async function runFront(flags: ProjectFlags, startedIn?: string): Promise<number> {
  // Work lives in the daemon, so whatever ends us ends nothing else.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(0));
  setImmediate(stayLean);
  try {
    openHome(process.env);
    refuseUnset(flags);
    // A project that comes later is somebody else's, until a person serves it: the session stays with what was there.
    let scope = scopeOf(flags);
    // What is wrapped works where `-C` leads; a project is told where its session works.
    const folder = sessionFolder(flags.wrap === undefined ? startedIn : process.cwd());
    let isHomeKnown = false;
    let said = "";
    const reach = async () => {
      const socket = await atAddress(
        { ...flags, ...(scope !== undefined && { scope }) },
        (address) => reachDaemon(address, folder, () => standIn(address)),
        isHomeKnown,
      );
      isHomeKnown = true;
      said = "";
      return socket;
    };
    // What lasts is said once.
    const onUnreachable = ({ message }: Error) => {
      if (message !== said) process.stderr.write(`✗ ${cleanLines(message)}\n`);
      said = message;
    };
    let hasLooked = false;
    const standIn = async ({ home, key }: DaemonAddress) => {
      const find = hasLooked ? undefined : readAnswers(home, { key, version: programVersion() });
      hasLooked = true;
      if (find !== undefined) await pump.standIn(find);
    };
    const pump = new Pump({ input: process.stdin, output: process.stdout, reach, onUnreachable });
    if (scope === "pack")
      watchForProject(() => {
        scope = "folders";
        pump.moveOn();
      });
    await pump.run();
    return 0;
  } catch (error) {
    const isKnown = error instanceof DaemonUnreachable || error instanceof UsageError || error instanceof RuntimeError;
    process.stderr.write(`✗ ${cleanLines((isKnown ? (error as Error).message : (error as Error).stack) ?? "")}\n`);
    if (error instanceof ConfigUnreadable) return error.exitCode;
    return error instanceof UsageError ? 2 : 70;
  }
}

/** What is wrapped could never be reached without its variables; an upstream of a project is one among others. */
function refuseUnset({ wrap }: ProjectFlags): void {
  const unset = wrap === undefined ? undefined : unsetVariable(wrap.upstreams, process.env);
  if (unset !== undefined) throw new UsageError(unset);
}

/**
 * Where the session works: where its host has started us, or, for programs with a window, which start their servers in
 * `/`, where `-C` leads.
 */
function sessionFolder(startedIn = process.cwd()): string | undefined {
  const isNowhere = startedIn === path.parse(startedIn).root;
  const folder = isNowhere ? process.cwd() : startedIn;
  return folder === openHome(process.env).folder ? undefined : folder;
}

/** How much of the working folder is there to be served, now. */
function scopeOf(flags: ProjectFlags): ProjectScope | undefined {
  const cwd = process.cwd();
  if (flags.wrap !== undefined || thisProgram.authors !== undefined) return undefined;
  if (findConfigFile(cwd) !== undefined) return undefined;
  return hasOwnFolders(commandSources(cwd, readUserConfig(openHome(process.env)), flags)) ? "folders" : "pack";
}

/** Where there is no project yet, `meanwhile new` makes one, and the session goes on with that project's daemon. */
function watchForProject(onProject: () => void): void {
  const cwd = process.cwd();
  const home = openHome(process.env);
  const folder = path.join(cwd, "commands");
  let isTold = false;
  try {
    const watcher = watch(cwd, { persistent: false }, () => {
      if (isMade(home, folder)) {
        watcher.close();
        onProject();
      } else if (!isTold && (existsSync(folder) || hasConfigFile(cwd))) {
        isTold = true;
        process.stderr.write(
          `! ${cwd} has become a project after this server started, so nothing in it is loaded; start the server again to serve it.\n`,
        );
      }
    });
    watcher.on("error", () => watcher.close());
  } catch {
    // A folder that cannot be watched gets its project with the next session.
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
 * Does something with the daemon's address, and again when the daemon finds that the config says, or the code reads,
 * something else by now.
 */
export async function atAddress<T>(
  flags: ProjectFlags,
  act: (address: DaemonAddress) => Promise<T>,
  isHomeKnown = false,
): Promise<T> {
  const address = await addressOf(flags, { isHomeKnown });
  try {
    return await act(address);
  } catch (error) {
    if (!(error instanceof KeyOutdated)) throw error;
    const configFile = findConfigFile(process.cwd(), flags);
    // What code said depends on more than its own text: files that it imports, and variables.
    if (configFile !== undefined) forgetConfig(address.home, configFile);
    return await act(await addressOf(flags, { names: error.names, isHomeKnown }));
  }
}

interface Knowledge {
  /** False: no code is run, and nothing is written. */
  readonly mayLoad?: boolean;
  /**
   * The variables that make another daemon, as a daemon told them; without, as they were when the project was last
   * loaded.
   */
  readonly names?: readonly string[] | undefined;
  /** The home has been there before. */
  readonly isHomeKnown?: boolean;
}

/** Where this project's daemon is, and how it is started. */
export async function addressOf(
  flags: ProjectFlags,
  { mayLoad = true, names: told, isHomeKnown = false }: Knowledge = {},
): Promise<DaemonAddress> {
  const cwd = process.cwd();
  const { env } = process;
  const home = openHome(env);
  refuseGone(home, isHomeKnown);
  const configFile = findConfigFile(cwd, flags);
  const words = flagWords(flags);
  const own = thisProgram.authors?.env;
  const users = readUserConfig(home);
  const said =
    configFile === undefined
      ? pickUpstreams(thisProgram.parts.settings)
      : await readProjectConfig(home, configFile, mayLoad ? words : undefined);
  const config = { ...users, ...(own !== undefined && { env: own }), ...said };
  const upstreams = flags.wrap?.upstreams ?? { ...users.upstreams, ...said.upstreams };
  const sources = commandSources(cwd, config, flags);
  const parts = projectParts(sources, configFile);
  const names = told ?? countedNames(config.env ?? [], referencesIn(upstreams), readStoredNames(home, parts));
  if (mayLoad) ensureSalt(home);
  const key = daemonKey({ sources, configFile, userConfigFile: home.configFile, env, names, salt: readSalt(home) });
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
    // With room for what it allocates, a fifth less of its start goes into collecting garbage.
    command: [process.execPath, "--min-semi-space-size=16", executable(), ...words, "_daemon", "--report"],
    cwd,
    isHomeKnown,
  };
}

/** The few settings that name a project. Whatever else is wrong with the file, the daemon says. */
function readUserConfig(home: Home): ProjectConfig {
  return existsSync(home.configFile) ? pick(readJson(home.configFile)) : {};
}

/**
 * JSON is read here. Code has to be run, which takes longer than everything else, so what it said counts until its text
 * changes. Without the words that run it, it is not run.
 */
async function readProjectConfig(
  home: Home,
  file: string,
  words: readonly string[] | undefined,
): Promise<ProjectConfig> {
  if (file.endsWith(".json")) return pick(readJson(file));
  const stored = readStoredConfig(home, file);
  if (stored?.isCurrent === true) return pick(stored.said);
  if (words === undefined) throw new DaemonUnreachable(unloadedNotice(file, stored !== undefined));
  return pick(JSON.parse(await askProject(file, words)));
}

/** Has another process of ours load the config, and ends it with us. */
function askProject(file: string, words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [executable(), ...words, "_project"],
      { timeout: readLimitMs, killSignal: "SIGKILL" },
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
