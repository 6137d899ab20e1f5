import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type DaemonAddress, DaemonUnreachable, KeyOutdated, reachDaemon } from "./daemon/connect.ts";
import { Pump } from "./daemon/pump.ts";
import { UsageError } from "./errors.ts";
import { type Home, homeAt } from "./paths.ts";
import { commandFolders, daemonKey, executable, findConfigFile, fingerprint, type ProjectConfig, type ProjectFlags } from "./project.ts";

/**
 * `meanwhile serve` over stdio: finds out which daemon serves this project, connects to it or starts it, and carries
 * lines. Hosts start and kill one of these per session, sometimes two, so it loads next to nothing and keeps no work.
 */

/** Another process of ours has said on stderr what is wrong. */
class AlreadyExplained extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super();
    this.exitCode = exitCode;
  }
}

/** What was typed, when it asks for a front and nothing else; undefined leaves it to the command line proper. */
export function readFrontWords(words: readonly string[]): ProjectFlags | undefined {
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
    else if (word === "--no-bundled") bundled = false;
    else if (word === "serve" && !isServe) isServe = true;
    else if (word !== "--no-color") return undefined;
  }
  if (!isServe || process.platform === "win32") return undefined;
  return { ...(commands.length > 0 && { commands }), ...(bundled !== undefined && { bundled }) };
}

/** Serves this process's stdin and stdout until the client hangs up; the exit code. */
export async function runFront(flags: ProjectFlags): Promise<number> {
  // Work lives in the daemon, so whatever ends us ends nothing else.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => process.exit(0));
  setImmediate(stayLean);
  try {
    await new Pump({ input: process.stdin, output: process.stdout, reach: () => atAddress(flags, reachDaemon) }).run();
    return 0;
  } catch (error) {
    if (error instanceof AlreadyExplained) return error.exitCode;
    const isKnown = error instanceof DaemonUnreachable || error instanceof UsageError;
    process.stderr.write(`✗ ${isKnown ? (error as Error).message : (error as Error).stack}\n`);
    return error instanceof UsageError ? 2 : 70;
  }
}

/** A front carries bytes for as long as its host lives, and there are many: compilers that make hot code hotter would take ten megabytes in each. */
function stayLean(): void {
  const { setFlagsFromString } = process.getBuiltinModule("node:v8");
  for (const flag of ["--no-opt", "--no-maglev"]) setFlagsFromString(flag);
}

/** Does something with the daemon's address, and again when the daemon finds that the config says something else by now. */
export async function atAddress<T>(flags: ProjectFlags, act: (address: DaemonAddress) => Promise<T>): Promise<T> {
  const address = addressOf(flags);
  try {
    return await act(address);
  } catch (error) {
    if (!(error instanceof KeyOutdated)) throw error;
    forgetProjectConfigs(address.home);
    return await act(addressOf(flags));
  }
}

/** Where this project's daemon is, and how it is started. */
export function addressOf(flags: ProjectFlags): DaemonAddress {
  const cwd = process.cwd();
  const { env } = process;
  const home = homeAt(env);
  const configFile = findConfigFile(cwd);
  const words = [...(flags.commands ?? []).flatMap((folder) => ["--commands", folder]), ...(flags.bundled === false ? ["--no-bundled"] : [])];
  const config = { ...readUserConfig(home), ...(configFile === undefined ? {} : readProjectConfig(home, configFile, words)) };
  const folders = commandFolders(cwd, config, flags);
  const key = daemonKey({ folders, configFile, userConfigFile: home.configFile, env, names: config.env ?? [] });
  return {
    home,
    key,
    host: env.MEANWHILE_HOST?.trim() || undefined,
    command: [process.execPath, executable, ...words, "_daemon", "--report", `--key=${key}`],
    cwd,
  };
}

/** The few settings that name a project. Whatever else is wrong with the file, the daemon says. */
function readUserConfig(home: Home): ProjectConfig {
  return existsSync(home.configFile) ? pick(readJson(home.configFile)) : {};
}

/** JSON is read here. Code has to be run, which takes longer than everything else, so what it said is kept until its text changes. */
function readProjectConfig(home: Home, file: string, words: readonly string[]): ProjectConfig {
  if (file.endsWith(".json")) return pick(readJson(file));
  const kept = path.join(home.runFolder, `config-${fingerprint([file, readFileSync(file, "utf8")])}.said`);
  if (existsSync(kept)) return pick(readJson(kept));
  const { status, stdout } = spawnSync(process.execPath, [executable, ...words, "_project"], { stdio: ["ignore", "pipe", "inherit"] });
  if (status !== 0) throw new AlreadyExplained(status ?? 70);
  try {
    mkdirSync(home.runFolder, { recursive: true, mode: 0o700 });
    writeFileSync(kept, stdout, { mode: 0o600 });
  } catch {
    // Without it the next start takes a little longer; an unusable home is reported when the daemon is started.
  }
  return pick(JSON.parse(stdout.toString("utf8")));
}

/** What code said depends on more than its own text: files that it imports, and variables. */
function forgetProjectConfigs({ runFolder }: Home): void {
  for (const name of readdirSync(runFolder)) if (name.endsWith(".said")) rmSync(path.join(runFolder, name), { force: true });
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

function pick(value: unknown): ProjectConfig {
  const { commands, bundled, env } = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  return {
    ...(isList(commands) && { commands }),
    ...(typeof bundled === "boolean" && { bundled }),
    ...(isList(env) && { env }),
  };
}

function isList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
