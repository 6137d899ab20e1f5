import { type CatalogEntry, type LoadProblem, loadEntry } from "../command/catalog.ts";
import type { DescribedCommand } from "../command/command.ts";
import type { FoundCommand } from "../command/discover.ts";
import { closest } from "../command/suggest.ts";
import { CommandError, Exit, type ExitCode, exitCodeOf, messageOf, UsageError } from "../errors.ts";
import type { ProjectFlags, ProjectScope } from "../project/project.ts";
import {
  beforeDashes,
  commandHelp,
  domainHelp,
  type HelpGroup,
  parseTyped,
  rootHelp,
  unknownHelp,
  wantsHelpOf,
} from "./command-usage.ts";
import type { RunSurroundings } from "./run-in-terminal.ts";
import { printHelp } from "./screens/layout.ts";
import { columnsOf } from "./screens/tools-view.ts";
import { clean, cleanLines, type Terminal } from "./terminal.ts";
import { runVerb } from "./verb.ts";
import { listedVerbs, type VerbName, verbs } from "./verb-list.ts";

/** What the command line needs to know of the project; settings themselves are not its business. */
export interface TerminalProject extends RunSurroundings {
  /** The files of the commands that can be run here. */
  readonly commands: readonly FoundCommand[];
  /** The bundled commands, whose words are known everywhere; none where the person has said that others are meant. */
  findBundled(): readonly FoundCommand[];
  /** Whether this user has loaded this very file before. */
  wasLoaded(found: FoundCommand): boolean;
}

/** A project of which nothing was run. */
interface KnownProject extends TerminalProject {
  /** What is not known of it for that reason. */
  readonly notice: string | undefined;
  /** A command as it was last loaded; undefined when its file has not been loaded as it is. */
  describe(found: FoundCommand): Promise<DescribedCommand | undefined>;
  /** Whether it comes with Meanwhile. */
  isBundled(found: FoundCommand): boolean;
  /** Whether MCP clients get it. */
  isServed(found: FoundCommand): boolean;
}

/** A project whose config was run, as its commands may be. */
interface LoadedProject extends TerminalProject {
  /** Keeps what help and completion need of a command that was loaded. */
  keep(loaded: CatalogEntry | LoadProblem): void;
}

export interface Cli {
  readonly words: readonly string[];
  readonly terminal: Terminal;
  readonly version: string;
  readProject(flags: ProjectFlags): KnownProject;
  loadProject(flags: ProjectFlags): Promise<LoadedProject>;
  /** Makes stdout ours before an author's code is loaded. */
  protectStdout(): Promise<void>;
}

/** Runs one command line; every ending becomes an exit code and at most one clear sentence. */
export async function main(cli: Cli): Promise<ExitCode> {
  try {
    return await dispatch(cli);
  } catch (error) {
    const { colors } = cli.terminal;
    cli.terminal.say(`${colors.red("✗")} ${cleanLines(messageOf(error))}\n`);
    const code = exitCodeOf(error);
    const isBug = code === Exit.Internal && (error as Error | undefined)?.name !== "RuntimeError";
    if (isBug && error instanceof Error) cli.terminal.say(`${error.stack}\n`);
    return code;
  }
}

async function dispatch(cli: Cli): Promise<ExitCode> {
  const { flags, words, wantsVersion, wantsHelp } = takeGlobals(cli.words);
  const [first] = words;
  if (first === "_complete") return await (await import("./entries/answer-shell.ts")).run(words.slice(1), listedVerbs);
  const call = { flags, terminal: cli.terminal, protectStdout: () => cli.protectStdout() };
  if (first === "_work") return await (await import("./entries/work.ts")).run(call);
  if (first === "_project") return await (await import("./entries/print-project.ts")).run(call);
  if (first === "_daemon") return await (await import("../daemon/main.ts")).run({ flags, words: words.slice(1) });
  if (first !== undefined && Object.hasOwn(verbs, first) && !wantsHelp) {
    const { verb } = await verbs[first as VerbName].load();
    return await runVerb(first, verb, { ...call, words: words.slice(1) });
  }
  if (wantsVersion) return say(cli, `${cli.version}\n`);
  const project = cli.readProject(flags);
  const found = project.commands;
  if (wantsHelp || first === undefined || (first === "help" && words.length === 1)) {
    sayNotice(cli, project);
    return say(
      cli,
      rootHelp({
        version: cli.version,
        verbs: listedVerbs,
        groups: toGroups(project),
        columns: columnsOf(cli.terminal),
      }),
    );
  }
  if (first === "help") return await dispatch({ ...cli, words: [...words.slice(1), "--help"] });
  const match = longestMatch(found, words);
  if (match === undefined) return await explainMiss(cli, project, found, words);
  if (wantsHelpOf(words.slice(match.path.length))) return await explain(cli, project, match);
  await cli.protectStdout();
  if (project.isBundled(match)) return await runBundled(cli, project, match, words);
  refuseDisguise(project, match, words);
  const loaded = await cli.loadProject(flags);
  const own = longestMatch(loaded.commands, words);
  if (own === undefined) throw unknownCommand(found, words);
  refuseDisguise(loaded, own, words);
  return await runFound(cli, own, words, { project: loaded, flags, onLoad: (entry) => loaded.keep(entry) });
}

/**
 * Whoever types a bundled command's words in a folder that somebody else has filled means the bundled command, until
 * they have looked.
 */
function refuseDisguise(project: TerminalProject, match: FoundCommand, words: readonly string[]): void {
  const bundled = longestMatch(project.findBundled(), words);
  if (bundled === undefined || bundled.file === match.file || project.wasLoaded(match)) return;
  const name = bundled.path.join(" ");
  throw new UsageError(
    `\`${name}\` is a bundled command, and ${match.file} would take its place; run \`meanwhile tools\` to load this project's commands first, or rename it.`,
  );
}

/**
 * What comes with Meanwhile is run without a look at the project's code, and as a task it is nobody's but the pack's.
 */
async function runBundled(
  cli: Cli,
  project: KnownProject,
  match: FoundCommand,
  words: readonly string[],
): Promise<ExitCode> {
  if (match.path[0] === "config") sayNotice(cli, project);
  return await runFound(cli, match, words, { project, flags: { scope: "bundled" } });
}

interface Running {
  readonly project: TerminalProject;
  /** Those that name the project to whoever runs it as a task. */
  readonly flags: ProjectFlags;
  readonly onLoad?: (entry: CatalogEntry | LoadProblem) => void;
}

async function runFound(
  cli: Cli,
  found: FoundCommand,
  words: readonly string[],
  { project, flags, onLoad }: Running,
): Promise<ExitCode> {
  const entry = await loadEntry(found);
  onLoad?.(entry);
  if (isProblem(entry))
    throw new CommandError(`${found.path.join(" ")} could not be loaded from ${entry.file}: ${entry.text}`);
  const parsed = parseTyped(entry, words.slice(entry.path.length));
  if (parsed.asTask !== undefined) {
    const { runAsTask } = await import("./own/as-task.ts");
    return await runAsTask(entry, parsed, cli.terminal, flags);
  }
  const { runInTerminal } = await import("./run-in-terminal.ts");
  return await runInTerminal(entry, parsed, cli.terminal, project);
}

/** `--help` behind a command: what is known of it without running its file. */
async function explain(cli: Cli, project: KnownProject, found: FoundCommand): Promise<ExitCode> {
  const command = await project.describe(found);
  return say(cli, command === undefined ? unknownHelp(found) : commandHelp({ path: found.path, command }));
}

function sayNotice(cli: Cli, { notice }: KnownProject): void {
  if (notice !== undefined) cli.terminal.say(`${cli.terminal.colors.yellow("!")} ${notice}\n`);
}

function say(cli: Cli, text: string): ExitCode {
  printHelp(text, cli.terminal);
  return Exit.Ok;
}

function isProblem(item: CatalogEntry | LoadProblem): item is LoadProblem {
  return "text" in item;
}

interface Globals {
  readonly flags: ProjectFlags;
  readonly words: readonly string[];
  readonly wantsHelp: boolean;
  readonly wantsVersion: boolean;
}

function takeGlobals(all: readonly string[]): Globals {
  const words = [...all];
  const commands: string[] = [];
  let bundled: boolean | undefined;
  let scope: ProjectFlags["scope"];
  let wantsHelp = false;
  let wantsVersion = false;
  while (words[0]?.startsWith("-")) {
    const word = words.shift() as string;
    if (word === "--commands") {
      const folder = words.shift();
      if (folder === undefined) throw new UsageError("--commands needs a folder.");
      commands.push(folder);
    } else if (word.startsWith("--commands=")) commands.push(word.slice("--commands=".length));
    else if (word === "--scope") scope = toScope(words.shift());
    else if (word === "--bundled") bundled = true;
    else if (word === "--no-bundled") bundled = false;
    else if (word === "--help" || word === "-h") wantsHelp = true;
    else if (word === "--version" || word === "-V") wantsVersion = true;
    else if (word !== "--no-color") throw new UsageError(`Unknown option ${word}; meanwhile --help lists them.`);
  }
  const flags: ProjectFlags = {
    ...(commands.length > 0 && { commands }),
    ...(bundled !== undefined && { bundled }),
    ...(scope !== undefined && { scope }),
  };
  const before = beforeDashes(words);
  const kept = [...before.filter((word) => word !== "--no-color"), ...words.slice(before.length)];
  return { flags, words: kept, wantsHelp, wantsVersion };
}

function toScope(word: string | undefined): ProjectScope {
  const scope = scopes.find((one) => one === word);
  if (scope === undefined) throw new UsageError(`--scope must be one of ${scopes.join(", ")}.`);
  return scope;
}

const scopes: readonly ProjectScope[] = ["folders", "pack", "bundled"];

/**
 * A project's own commands, and the bundled ones: those that MCP clients get, and those that are here in the terminal
 * alone.
 */
function toGroups({ commands, isBundled, isServed }: KnownProject): HelpGroup[] {
  const bundled = commands.filter(isBundled);
  return [
    { heading: "Commands of this project", found: commands.filter((one) => !isBundled(one)) },
    { heading: "Bundled commands", found: bundled.filter(isServed) },
    {
      heading: "Bundled commands, in the terminal alone (--bundled serves them too)",
      found: bundled.filter((one) => !isServed(one)),
    },
  ];
}

/** The command whose words are typed first; the longest wins, so a subcommand beats an argument. */
function longestMatch(found: readonly FoundCommand[], words: readonly string[]): FoundCommand | undefined {
  const fits = found.filter(({ path }) => path.every((part, at) => words[at] === part));
  return fits.sort((a, b) => b.path.length - a.path.length)[0];
}

async function explainMiss(
  cli: Cli,
  project: KnownProject,
  found: readonly FoundCommand[],
  words: readonly string[],
): Promise<ExitCode> {
  const typed = words.filter((word) => !word.startsWith("-"));
  const inDomain = found.filter(
    ({ path, problem }) => problem === undefined && typed.every((word, at) => path[at] === word),
  );
  sayNotice(cli, project);
  if (inDomain.length === 0) throw unknownCommand(found, words);
  const entries = await Promise.all(
    inDomain.map(async (one) => ({ path: one.path, summary: (await project.describe(one))?.summary })),
  );
  return say(cli, domainHelp(typed.join(" "), entries, columnsOf(cli.terminal)));
}

function unknownCommand(found: readonly FoundCommand[], words: readonly string[]): UsageError {
  const typed = words.filter((word) => !word.startsWith("-"));
  const known = [...found.map(({ path }) => path.join(" ")), ...Object.keys(verbs)];
  const guess = closest(typed.slice(0, 2).join(" "), known) ?? closest(typed[0] ?? "", known);
  const hint =
    guess === undefined ? "meanwhile --help lists what there is." : `did you mean \`meanwhile ${clean(guess)}\`?`;
  return new UsageError(`Unknown command \`${typed.slice(0, 2).join(" ")}\`; ${hint}`);
}
