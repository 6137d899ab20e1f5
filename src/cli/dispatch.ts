import type { CatalogEntry, LoadProblem } from "../command/catalog.ts";
import type { DescribedCommand } from "../command/command.ts";
import type { FoundCommand } from "../command/discover.ts";
import { loadEntry } from "../command/load-entry.ts";
import type { CommandSource } from "../command/source.ts";
import { CommandError, Exit, type ExitCode, exitCodeOf, messageOf, UsageError } from "../errors.ts";
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
import { printHelp } from "./screens/layout.ts";
import { columnsOf, hookHeading } from "./screens/tools-view.ts";
import { cleanLines, type Terminal } from "./terminal.ts";
import { runVerb } from "./verb.ts";
import { listedVerbs, verbNamed } from "./verb-list.ts";

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
export interface KnownProject extends TerminalProject {
  /** What is not known of it for that reason. */
  readonly notice: string | undefined;
  /** A command as it was last loaded; undefined when its file has not been loaded as it is. */
  describe(found: FoundCommand): Promise<DescribedCommand | undefined>;
  /** Whether it comes with Meanwhile. */
  isBundled(found: FoundCommand): boolean;
  /** Whether MCP clients get it. */
  isServed(found: FoundCommand): boolean;
  /** The names of its upstreams. */
  readonly upstreams: readonly string[];
  /** True where words that nothing is known of may be asked of the `mcp` hook: it is this program's own. */
  readonly mayAskHook: boolean;
}

/** A project whose config was run, as its commands may be. */
export interface LoadedProject extends TerminalProject {
  /** Keeps what help and completion need of a command that was loaded. */
  keep(loaded: CatalogEntry | LoadProblem): void;
  /** What is registered in the `mcp` hook, which is run for that; undefined where there is none. */
  openHook(): Promise<CommandSource | undefined>;
  /** One of its upstreams, which is started when it is asked or called. */
  openUpstream(name: string): Promise<TerminalUpstream>;
}

export interface Cli {
  readonly words: readonly string[];
  readonly terminal: Terminal;
  readonly context: ProcessContext;
  readonly version: string;
  readProject(flags: ProjectFlags): KnownProject;
  loadProject(flags: ProjectFlags): Promise<LoadedProject>;
  /** Makes stdout ours before an author's code is loaded; may be asked for more than once. */
  protectStdout(): Promise<void>;
}

/** Runs one command line; every ending becomes an exit code and at most one clear sentence. */
export async function dispatch(cli: Cli): Promise<ExitCode> {
  try {
    return await runWords(cli);
  } catch (error) {
    const { colors } = cli.terminal;
    cli.terminal.say(`${colors.red("✗")} ${cleanLines(messageOf(error))}\n`);
    const code = exitCodeOf(error);
    const isBug = code === Exit.Internal && (error as Error | undefined)?.name !== "RuntimeError";
    if (isBug && error instanceof Error) cli.terminal.say(`${error.stack}\n`);
    return code;
  }
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
 * What was typed, among the files and what the `mcp` hook registered when it was last asked. A hook that may be
 * anybody's is not asked for words that nobody knows: it would be run by every slip of the fingers.
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

/** What is registered in the `mcp` hook, run in this process. */
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
 * Whoever types a bundled command's words in a folder that somebody else has filled means the bundled command, until
 * they have looked.
 */
function refuseDisguise(project: TerminalProject, match: FoundCommand, words: readonly string[]): void {
  const bundled = longestMatch(project.findBundled(), words);
  if (bundled === undefined || bundled.file === match.file || project.wasLoaded(match)) return;
  const name = bundled.path.join(" ");
  throw new UsageError(
    `\`${name}\` is a bundled command, and ${match.file} would take its place; run \`${thisProgram.name} tools\` to load this project's commands first, or rename it.`,
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

/** `--help` behind a command: what is known of it without running its file. */
async function explain(cli: Cli, project: KnownProject, found: FoundCommand): Promise<ExitCode> {
  const command = await project.describe(found);
  return say(cli, command === undefined ? unknownHelp(found) : commandHelp({ path: found.path, command }));
}

function sayNotice(cli: Cli, { notice }: Pick<KnownProject, "notice">): void {
  if (notice !== undefined) cli.terminal.say(`${cli.terminal.colors.yellow("!")} ${notice}\n`);
}

function say(cli: Cli, text: string): ExitCode {
  // What commands say of themselves may be anybody's words.
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

/** In an author's program nothing that is typed says which commands there are. */
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

/**
 * A project's own commands, and the bundled ones: those that MCP clients get, and those that are here in the terminal
 * alone.
 */
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
