import { existsSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { createRequire, enableCompileCache } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { commandsOf } from "../command/code-source.ts";
import { type Command, isCommand } from "../command/command.ts";
import type { UserConfig } from "../config.ts";
import { homeAt, isOwnCache, refusalOfHome } from "../paths.ts";
import { becomeProgram, type ProgramFacts } from "../program/program.ts";
import { referencesIn } from "../project/variable-references.ts";
import { checkConfig } from "../settings/check-config.ts";
import { checkProgramName } from "./program-names.ts";

/**
 * What an author's own program is. Beside these it takes what a config file may say, but for what a fixed set of
 * commands has no use for.
 */
export interface CliOptions extends Omit<UserConfig, "name" | "commands" | "bundled" | "pack"> {
  /** What people type: `acme`. Its home is `~/.acme`, its variables are `ACME_…`, its server is called so. */
  readonly name: string;
  readonly version: string;
  /** What it is for, in a few words; help begins with it. */
  readonly summary?: string;
  /**
   * The folder of its commands, as a file URL or a whole path: `new URL("../commands/", import.meta.url)`. Or a list of
   * folders and of commands that have a `name`.
   */
  readonly commands: string | URL | readonly (string | URL | Command)[];
  /** The npm package it is published in. Default: the name in the `package.json` nearest to its executable. */
  readonly package?: string;
  /** The file that Node starts it by. Default: the one that Node has started. */
  readonly bin?: string | URL;
}

/** An author's program. */
export interface AuthorsCli {
  /** Does what was typed, and ends the process with its exit code. Default: the words behind the executable's name. */
  run(words?: readonly string[]): Promise<never>;
}

/**
 * A program of one's own with Meanwhile inside, under its own name everywhere. Its commands come from its package;
 * nothing that lies in the folder it is started in is ever loaded. Throws a TypeError where it could not work.
 */
export function createCli(options: CliOptions): AuthorsCli {
  const become = prepareProgram(options);
  return {
    async run(words = process.argv.slice(2)) {
      become();
      if (isFront(words)) {
        const { runFront } = await import("../daemon/front.ts");
        process.exit(await runFront({}));
      }
      keepCompiledCode();
      const { runProgram } = await import("../cli/entries/run-program.ts");
      return await runProgram(words);
    },
  };
}

/** Checks the options. The returned function makes this process that program. */
export function prepareProgram(options: CliOptions): () => void {
  const { name, version, summary, commands, package: packageName, bin, ...settings } = options;
  refuseUnknown(settings);
  checkProgramName(name);
  if (typeof version !== "string" || !/^[\w.+-]{1,64}$/.test(version))
    throw wrong(`version must be a version such as "1.2.0", not ${JSON.stringify(version)}`);
  if (summary !== undefined && typeof summary !== "string") throw wrong("summary must be text");
  const { env: named, upstreams = {} } = checkConfig(settings, "createCli");
  const referred = referencesIn(upstreams);
  const env = named === undefined && referred.length === 0 ? undefined : [...(named ?? []), ...referred];
  const { folders, inCode } = toSources(commands);
  return () => {
    const executable = toExecutable(bin);
    const own = { name, version, summary, executable, folders, env };
    const facts: ProgramFacts = { ...own, packageName: toPackageName(packageName, executable) };
    becomeProgram(facts, { settings, commands: inCode });
  };
}

function wrong(what: string): TypeError {
  return new TypeError(`createCli: ${what}.`);
}

/** Types say so already, to whoever has them. */
function refuseUnknown(settings: object): void {
  if ("bundled" in settings || "pack" in settings)
    throw wrong("bundled and pack are about commands that a program of your own does not have; leave them out");
}

/** Folders and commands apart, each held to its rules. */
function toSources(commands: CliOptions["commands"]): { folders: string[]; inCode: readonly Command[] } {
  const all: unknown = typeof commands === "string" || commands instanceof URL ? [commands] : commands;
  if (!Array.isArray(all) || all.length === 0)
    throw wrong("commands must be a folder, or a list of folders and commands");
  const inCode = all.filter(isCommand);
  commandsOf(inCode).close();
  return { folders: all.filter((one) => !isCommand(one)).map(toFolder), inCode };
}

/** Whole, because what is relative would be looked for in whatever folder the program is started in. */
function toFolder(folder: unknown): string {
  const whole = toWholePath(folder, "commands");
  if (!existsSync(whole)) throw wrong(`there is no folder of commands ${whole}`);
  return realpathSync(whole);
}

function toWholePath(place: unknown, field: string): string {
  const said = place instanceof URL ? place.href : place;
  if (typeof said === "string" && said.startsWith("file:")) return path.resolve(fileURLToPath(said));
  if (typeof said === "string" && path.isAbsolute(said)) return path.resolve(said);
  const found = typeof said === "string" ? JSON.stringify(said) : `of type ${typeof said}`;
  throw wrong(
    `${field} must be a whole path or a file URL, as in new URL("../commands/", import.meta.url), not ${found}`,
  );
}

/** Daemons, workers and hosts start it by this, from anywhere. */
function toExecutable(bin: CliOptions["bin"]): string {
  const file = bin === undefined ? process.argv[1] : toWholePath(bin, "bin");
  if (file === undefined) throw wrong("bin must say which file Node starts it by, because none was started");
  try {
    return realpathSync(existsSync(file) ? file : createRequire(path.resolve("any")).resolve(path.resolve(file)));
  } catch {
    throw wrong(`bin must be a file that Node can start, and there is no ${file}`);
  }
}

const namePattern = /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/;

/** The package that npx is asked for; undefined where the program is not published in one. */
function toPackageName(said: string | undefined, executable: string): string | undefined {
  if (said !== undefined && !namePattern.test(said))
    throw wrong(`package must be the name of an npm package, not ${JSON.stringify(said)}`);
  if (said !== undefined) return said;
  for (let folder = path.dirname(executable); ; folder = path.dirname(folder)) {
    const name = readName(path.join(folder, "package.json"));
    if (name !== undefined || folder === path.dirname(folder)) return name;
  }
}

function readName(manifest: string): string | undefined {
  try {
    const { name } = JSON.parse(readFileSync(manifest, "utf8")) as { name?: unknown };
    return typeof name === "string" && namePattern.test(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

/** A server on stdio is started with every session of a host, and only carries: next to nothing is loaded for it. */
function isFront(words: readonly string[]): boolean {
  return words.includes("serve") && words.every((word) => word === "serve" || word === "--no-color");
}

/** Compiled code is kept in the program's own home, unless somebody else may have had a hand in that. */
function keepCompiledCode(): void {
  try {
    const home = homeAt(process.env);
    if (refusalOfHome(home) !== undefined) return;
    const folder = path.join(home.folder, "cache", "code");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (isOwnCache(folder)) enableCompileCache(folder);
  } catch {
    // Without the cache everything works, only slower; an unusable home is reported by the command that needs it.
  }
}
