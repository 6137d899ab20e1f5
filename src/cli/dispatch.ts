import type { CatalogEntry, LoadProblem } from "../command/catalog.ts";
import type { DescribedCommand } from "../command/command.ts";
import type { FoundCommand } from "../command/discover.ts";
import { loadEntry } from "../command/load-entry.ts";
import type { CommandSource } from "../command/source.ts";
import { CommandError, Exit, type ExitCode, exitCodeOf, messageOf, RuntimeError, UsageError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
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
import { longestMatch, unknownCommand } from "./match-words.ts";
import type { ProcessContext } from "./process-context.ts";
import type { RunSurroundings } from "./run-in-terminal.ts";
import { askUpstream, isForUpstream, runUpstreamTool, type TerminalUpstream } from "./run-upstream.ts";
import { type ErrorFacts, printError } from "./screens/json-error.ts";
import { printHelp } from "./screens/layout.ts";
import type { OutputFormat } from "./screens/output.ts";
import { columnsOf, hookHeading } from "./screens/tools-view.ts";
import { cleanLines, type Terminal } from "./terminal.ts";
import { runVerb } from "./verb.ts";
import { listedVerbs, verbNamed } from "./verb-list.ts";

/** The part of a project that the command line needs. */
export interface TerminalProject extends RunSurroundings {
  /** The commands that can be run in this folder. */
  readonly commands: readonly FoundCommand[];
  /** The bundled commands; none where the flags exclude them. */
  findBundled(): readonly FoundCommand[];
  /** True if this user has loaded this file with its present content. */
  wasLoaded(found: FoundCommand): boolean;
}

/** A project whose code was not run. */
export interface KnownProject extends TerminalProject {
  /** Says that the config has not been loaded, or has changed since. Undefined where all is known. */
  readonly notice: string | undefined;
  /** A command as it was last loaded; undefined when its file has never been loaded, or has changed since. */
  describe(found: FoundCommand): Promise<DescribedCommand | undefined>;
  /** True for a bundled command. */
  isBundled(found: FoundCommand): boolean;
  /** True for a command that MCP clients can call. */
  isServed(found: FoundCommand): boolean;
  /** The names of the project's upstreams. */
  readonly upstreams: readonly string[];
  /** True in an author's program with an `mcp` hook: unknown words may run the hook. */
  readonly mayAskHook: boolean;
}

/** A project whose config was run. */
export interface LoadedProject extends TerminalProject {
  /** Stores what help and completion need of a loaded command. */
  keep(loaded: CatalogEntry | LoadProblem): void;
  /** Runs the `mcp` hook and returns its tools; undefined where there is none. */
  openHook(): Promise<CommandSource | undefined>;
  /** An upstream, which is started when it is listed or called. */
  openUpstream(name: string): Promise<TerminalUpstream>;
}

export interface Cli {
  readonly words: readonly string[];
  readonly terminal: Terminal;
  readonly context: ProcessContext;
  readonly version: string;
  readProject(flags: ProjectFlags): KnownProject;
  loadProject(flags: ProjectFlags): Promise<LoadedProject>;
  /** Keeps stdout from an author's code. Called before such code is loaded; further calls do nothing. */
  protectStdout(): Promise<void>;
  /** True when something was printed to stdout: a JSON error after it could not be parsed. */
  hasPrinted(): boolean;
}

/**
 * Runs one command line; every ending becomes an exit code and at most one clear sentence. Where JSON or YAML was asked
 * for, the error is printed to stdout as well.
 */
export async function dispatch(cli: Cli): Promise<ExitCode> {
  try {
    return await runWords(cli);
  } catch (error) {
    const { terminal } = cli;
    terminal.say(`${terminal.colors.red("✗")} ${cleanLines(messageOf(error))}\n`);
    const code = exitCodeOf(error);
    const format = formatOf(cli.words);
    if (format !== "plain" && !cli.hasPrinted()) await printError(factsOf(error), { terminal, format });
    const isBug = code === Exit.Internal && (error as Error | undefined)?.name !== "RuntimeError";
    if (isBug && error instanceof Error) cli.terminal.say(`${error.stack}\n`);
    return code;
  }
}

/**
 * The format in which the result was asked for, also where the other words are wrong. `plain` for the verbs whose stdout
 * belongs to an MCP client.
 */
export function formatOf(words: readonly string[]): OutputFormat {
  const typed = beforeDashes(words);
  const verb = typed.find((word, at) => !word.startsWith("-") && !flagsWithValue.includes(typed[at - 1] ?? ""));
  if (verb === "serve" || verb === "wrap") return "plain";
  return typed.includes("--json") ? "json" : typed.includes("--yaml") ? "yaml" : "plain";
}

/** Of those that may stand before the verb. */
const flagsWithValue = ["--commands", "--scope"];

function factsOf(error: unknown): ErrorFacts {
  const { details } = error instanceof CommandError ? error : {};
  return {
    message: messageOf(error),
    exitCode: exitCodeOf(error),
    code: error instanceof RuntimeError ? error.code : undefined,
    details,
  };
}

async function runWords(cli: Cli): Promise<ExitCode> {
  const { flags, words, wantsVersion, wantsHelp } = takeGlobals(cli.words);
  const [first] = words;
  if (first === "_complete")
    return await (await import("./entries/answer-shell.ts")).run(words.slice(1), {
      verbs: listedVerbs(),
      context: cli.context,
    });
  const call = { flags, terminal: cli.terminal, context: cli.context, protectStdout: () => cli.protectStdout() };
  if (first === "_work") return await (await import("./entries/work.ts")).run(call);
  if (first === "_project") return await (await import("./entries/print-project.ts")).run(call);
  if (first === "_daemon") return await (await import("../daemon/main.ts")).run({ flags, words: words.slice(1) });
  const named = first === undefined || wantsHelp ? undefined : verbNamed(first);
  if (first !== undefined && named !== undefined) {
    const { verb } = await named.load();
    return await runVerb(first, verb, { ...call, words: words.slice(1) });
  }
  if (wantsVersion) return say(cli, `${cli.version}\n`);
  const read = cli.readProject(flags);
  if (wantsHelp || first === undefined || (first === "help" && words.length === 1)) {
    sayNotice(cli, read);
    const groups = toGroups(read);
    return say(cli, rootHelp({ version: cli.version, verbs: listedVerbs(), groups, columns: columnsOf(cli.terminal) }));
  }
  if (first === "help") return await runWords({ ...cli, words: [...words.slice(1), "--help"] });
  const { project, match } = await findMatch(cli, read, flags, words);
  if (match === undefined) return await explainMiss(cli, project, words);
  if (wantsHelpOf(words.slice(match.path.length))) return await explain(cli, project, match);
  await cli.protectStdout();
  if (project.isBundled(match)) return await runBundled(cli, project, match, words);
  refuseDisguise(project, match, words);
  const loaded = await cli.loadProject(flags);
  const own = longestMatch(loaded.commands, words);
  if (own === undefined) throw unknownCommand(project.commands, words);
  refuseDisguise(loaded, own, words);
  if (own.upstream !== undefined) {
    const run = (entry: CatalogEntry) => runEntry(cli, entry, words, { project: loaded, flags });
    return await runUpstreamTool(await loaded.openUpstream(own.upstream), own, { run, terminal: cli.terminal });
  }
  if (own.isHooked === true) return await runHooked(cli, loaded, own, { words, flags });
  return await runFound(cli, own, words, { project: loaded, flags, onLoad: (entry) => loaded.keep(entry) });
}

interface Match {
  readonly project: KnownProject;
  readonly match: FoundCommand | undefined;
}

/**
 * Finds the command that was typed, among the command files and the tools that the `mcp` hook registered last. Unknown
 * words run the hook only in an author's own program: a hook in a project may be anybody's code, and every typing
 * mistake would run it.
 */
async function findMatch(
  cli: Cli,
  project: KnownProject,
  flags: ProjectFlags,
  words: readonly string[],
): Promise<Match> {
  const match = longestMatch(project.commands, words);
  if (match !== undefined) return { project, match };
  if (isForUpstream(project.upstreams, words) && !wantsHelpOf(words)) {
    await cli.protectStdout();
    const { openUpstream } = await cli.loadProject(flags);
    const [name = ""] = words;
    await askUpstream(await openUpstream(name), { name, terminal: cli.terminal });
    const asked = cli.readProject(flags);
    return { project: asked, match: longestMatch(asked.commands, words) };
  }
  if (!project.mayAskHook) return { project, match };
  await cli.protectStdout();
  const hook = await (await cli.loadProject(flags)).openHook();
  if (hook?.trouble !== undefined) sayNotice(cli, { notice: cleanLines(`${hook.name}: ${hook.trouble}`) });
  const asked = cli.readProject(flags);
  return { project: asked, match: longestMatch(asked.commands, words) };
}

/** Runs a tool of the `mcp` hook in this process. */
async function runHooked(
  cli: Cli,
  project: LoadedProject,
  { toolName }: FoundCommand,
  { words, flags }: { readonly words: readonly string[]; readonly flags: ProjectFlags },
): Promise<ExitCode> {
  const hook = await project.openHook();
  const entry = hook?.get(toolName);
  if (entry !== undefined) return await runEntry(cli, entry, words, { project, flags });
  if (hook?.trouble !== undefined)
    throw new CommandError(`${toolName} could not be loaded from ${hook.name}: ${hook.trouble}`);
  throw new UsageError(
    `\`${toolName}\` is no longer registered in the \`mcp\` hook; \`${thisProgram.name} tools\` lists what there is.`,
  );
}

/**
 * Throws when a command file has the words of a bundled command and this user has never loaded the file as it is: the folder may
 * be somebody else's, and the user means the bundled command.
 */
function refuseDisguise(project: TerminalProject, match: FoundCommand, words: readonly string[]): void {
  const bundled = longestMatch(project.findBundled(), words);
  if (bundled === undefined || bundled.file === match.file || project.wasLoaded(match)) return;
  const name = bundled.path.join(" ");
  throw new UsageError(
    `\`${name}\` is a bundled command, and ${match.file} would take its place; run \`${thisProgram.name} tools\` to load this project's commands first, or rename it.`,
  );
}

/** Runs a bundled command without loading the project's code. As a task it belongs to the bundled commands' project. */
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
  /** The flags that name the project to a worker. */
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
  return await runEntry(cli, entry, words, { project, flags });
}

async function runEntry(
  cli: Cli,
  entry: CatalogEntry,
  words: readonly string[],
  { project, flags }: Running,
): Promise<ExitCode> {
  const parsed = parseTyped(entry, words.slice(entry.path.length));
  if (parsed.asTask !== undefined) {
    const { runAsTask } = await import("./own/as-task.ts");
    return await runAsTask(entry, parsed, { terminal: cli.terminal, context: cli.context, flags });
  }
  const { runInTerminal } = await import("./run-in-terminal.ts");
  return await runInTerminal(entry, parsed, cli.terminal, project);
}

/** Prints the help of a command, from what was stored when its file was last loaded. */
async function explain(cli: Cli, project: KnownProject, found: FoundCommand): Promise<ExitCode> {
  const command = await project.describe(found);
  return say(cli, command === undefined ? unknownHelp(found) : commandHelp({ path: found.path, command }));
}

function sayNotice(cli: Cli, { notice }: Pick<KnownProject, "notice">): void {
  if (notice !== undefined) cli.terminal.say(`${cli.terminal.colors.yellow("!")} ${notice}\n`);
}

function say(cli: Cli, text: string): ExitCode {
  // The texts of commands may be anybody's.
  printHelp(cleanLines(text), cli.terminal);
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
    if (isUnoffered(word)) throw unknownOption(word);
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
    else if (word !== "--no-color") throw unknownOption(word);
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

/** True for the flags that select commands, which an author's program does not have. */
function isUnoffered(word: string): boolean {
  return thisProgram.authors !== undefined && /^--(commands|bundled|no-bundled|scope)(=|$)/.test(word);
}

function unknownOption(word: string): UsageError {
  return new UsageError(`Unknown option ${word}; ${thisProgram.name} --help lists them.`);
}

function toScope(word: string | undefined): ProjectScope {
  const scope = scopes.find((one) => one === word);
  if (scope === undefined) throw new UsageError(`--scope must be one of ${scopes.join(", ")}.`);
  return scope;
}

const scopes: readonly ProjectScope[] = ["folders", "pack", "bundled"];

/** The commands as help groups them: the project's, the hook's, the upstreams', and the bundled ones. */
function toGroups({ commands, isBundled, isServed }: KnownProject): HelpGroup[] {
  const bundled = commands.filter(isBundled);
  const hooked = commands.filter(({ isHooked }) => isHooked === true);
  return [
    {
      heading: thisProgram.authors === undefined ? "Commands of this project" : "Commands",
      found: commands.filter((one) => !isBundled(one) && one.isHooked !== true && one.upstream === undefined),
    },
    { heading: hookHeading(), found: hooked.filter(({ toolName }) => verbNamed(toolName) === undefined) },
    ...[...Map.groupBy(commands, ({ upstream }) => upstream)].flatMap(([upstream, found]) =>
      upstream === undefined ? [] : [{ heading: `The upstream ${upstream}`, found }],
    ),
    { heading: "Bundled commands", found: bundled.filter(isServed) },
    {
      heading: "Bundled commands, in the terminal alone (--bundled serves them too)",
      found: bundled.filter((one) => !isServed(one)),
    },
  ];
}

async function explainMiss(cli: Cli, project: KnownProject, words: readonly string[]): Promise<ExitCode> {
  const found = project.commands;
  const typed = words.filter((word) => !word.startsWith("-"));
  const inDomain = found.filter(
    ({ path, problem }) => problem === undefined && typed.every((word, at) => path[at] === word),
  );
  sayNotice(cli, project);
  if (inDomain.length === 0) throw unknownCommand(found, words, project.upstreams);
  const entries = await Promise.all(
    inDomain.map(async (one) => ({ path: one.path, summary: (await project.describe(one))?.summary })),
  );
  return say(cli, domainHelp(typed.join(" "), entries, columnsOf(cli.terminal)));
}
