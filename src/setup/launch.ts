import path from "node:path";
import { UsageError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import { flagWords, type ProjectFlags } from "../project/project.ts";
import type { Launch } from "./host.ts";

/** What starts this program. */
export interface StartFacts {
  /** The Node that runs this. */
  readonly node: string;
  /** The executable of this package. */
  readonly executable: string;
  readonly version: string;
  readonly isWindows: boolean;
  /** Variables that decide where tasks are kept. */
  readonly env: Readonly<Record<string, string>>;
}

export interface LaunchFacts extends StartFacts {
  /**
   * The folder the server is to be started in, absolute: the project's, whose config file and commands it then finds,
   * or one that has neither.
   */
  readonly folder: string;
  /** Which commands were asked for; the folders are absolute. */
  readonly flags: ProjectFlags;
}

/**
 * For the user's own files: whole paths, since hosts start servers in any folder and with a bare PATH. The folder is
 * always said: else the server would take the one it is started in, say somebody's cloned repository, for its project,
 * and run the code that lies there. What npx has fetched may be cleared away any day, so there npx is asked again.
 */
export function toUserLaunch(facts: LaunchFacts): Launch {
  // An author's program has its own commands wherever it is started.
  const place = thisProgram.authors === undefined ? ["-C", facts.folder] : [];
  return start(facts, [...place, "serve", ...flagWords(facts.flags)]);
}

/**
 * The same for a server that is put behind this one. No folder is said: the server behind works in the one that the
 * host starts it in, and nothing else counts of what lies there.
 */
export function toUserWrap(facts: StartFacts, words: readonly string[]): Launch {
  return start(facts, ["wrap", ...words]);
}

function start(facts: StartFacts, words: readonly string[]): Launch {
  if (!isFetchedByNpx(facts.executable))
    return { command: facts.node, args: [facts.executable, ...words], env: facts.env };
  const npx = ["npx", "-y", `${thisProgram.packageName}@${facts.version}`, ...words];
  const [command = "", ...args] = facts.isWindows ? ["cmd", "/c", ...npx] : npx;
  return { command, args, env: facts.env };
}

/**
 * For a project's files, which are shared: nothing of this machine. The project's config and commands folder are found
 * by themselves. `--no`: where it is not installed, npx says so; it never fetches and runs whatever bears the name.
 */
export function toProjectLaunch(project: string, flags: ProjectFlags): Launch {
  const commands = flags.commands?.map((folder) => fromHere(project, folder));
  const words = flagWords({ ...flags, ...(commands !== undefined && { commands }) });
  return { command: "npx", args: ["--no", thisProgram.packageName, "serve", ...words], env: {} };
}

export function toProjectWrap(words: readonly string[]): Launch {
  return { command: "npx", args: ["--no", thisProgram.packageName, "wrap", ...words], env: {} };
}

/** With slashes on every system, and never like a flag. */
function fromHere(project: string, folder: string): string {
  const inside = path.relative(project, folder).replaceAll(path.sep, "/") || ".";
  return inside.startsWith("-") ? `./${inside}` : inside;
}

export function isFetchedByNpx(executable: string): boolean {
  return executable.split(/[\\/]/).includes("_npx");
}

const maxNameLength = 64;

/** Hosts put the name in front of tool names and in commands, and some take no other letters. */
export function checkName(name: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name) && name.length <= maxNameLength) return name;
  throw new UsageError(
    `--name ${JSON.stringify(name)} is not a name hosts take; use up to ${maxNameLength} letters, digits, - and _, beginning with a letter or digit.`,
  );
}

/** The server's own name, made to fit. */
export function toName(name: string): string {
  const fitting = name
    .replaceAll(/[^A-Za-z0-9_-]+/g, "-")
    .replaceAll(/^[-_]+|-+$/g, "")
    .slice(0, maxNameLength);
  return fitting === "" ? thisProgram.name : fitting;
}
