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
  /** The launcher in the home, without the ending that it has on Windows; undefined where there can be none. */
  readonly launcher: string | undefined;
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
 * and run the code that lies there.
 */
export function toUserLaunch(facts: LaunchFacts): Launch {
  // An author's program has its own commands wherever it is started.
  const place = thisProgram.authors === undefined ? ["-C", facts.folder] : [];
  return { ...toStart(facts, [...place, "serve", ...flagWords(facts.flags)]), env: facts.env };
}

/**
 * The same for a server that is put behind this one. No folder is said: the server behind works in the one that the
 * host starts it in, and nothing else counts of what lies there. The launcher knows its home, and the store has a
 * variable of its own, so that no variable of the entry is replaced.
 */
export function toUserWrap(facts: StartFacts, words: readonly string[]): Launch {
  const store = facts.env[thisProgram.variable("STORE")];
  const ownEnv: Record<string, string> = store === undefined ? {} : { [entryStoreVariable()]: store };
  const env = facts.launcher === undefined ? facts.env : ownEnv;
  return { ...toStart(facts, ["wrap", ...words]), env };
}

/** The variable of a wrapped entry that the launcher passes on as the store. */
export const entryStoreVariable = () => thisProgram.variable("ENTRY_STORE");

/** The program and its arguments. A .cmd cannot take every argument, and then Node starts the launcher's other part. */
export function toStart(
  { node, executable, launcher, isWindows }: Omit<StartFacts, "env">,
  words: readonly string[],
): Pick<Launch, "command" | "args"> {
  if (launcher === undefined) return { command: node, args: [executable, ...words] };
  if (!isWindows) return { command: launcher, args: words };
  return [launcher, ...words].every(canPassCmd)
    ? { command: `${launcher}.cmd`, args: words }
    : { command: node, args: [`${launcher}${scriptEnding}`, ...words] };
}

/** What the name of the launcher's part in JavaScript ends with. */
export const scriptEnding = "-launcher.cjs";

/** False for an argument that cmd.exe would change, and for an empty one, which it may lose. */
function canPassCmd(word: string): boolean {
  return word !== "" && !/[%&^!"<>|\r\n]/.test(word);
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
