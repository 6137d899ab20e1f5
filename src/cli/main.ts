import { type CatalogEntry, type LoadProblem, loadEntry } from "../command/catalog.ts";
import { discover, type FoundCommand } from "../command/discover.ts";
import { closest } from "../command/suggest.ts";
import { CommandError, Exit, type ExitCode, exitCodeOf, messageOf, UsageError } from "../errors.ts";
import type { RunFacts } from "./run.ts";
import { cleanLines, type Terminal } from "./terminal.ts";
import { beforeDashes, domainHelp, parseTyped, rootHelp } from "./usage.ts";

/** What the command line needs to know of the project; settings themselves are not its business. */
export interface Project extends RunFacts {
  readonly version: string;
  readonly commandFolders: readonly string[];
}

/** Options that stand before the command. */
export interface GlobalFlags {
  readonly commands?: readonly string[];
  readonly bundled?: boolean;
}

export interface Cli {
  readonly words: readonly string[];
  readonly terminal: Terminal;
  openProject(flags: GlobalFlags): Promise<Project>;
  /** Makes stdout ours before an author's code is loaded. */
  protectStdout(): Promise<void>;
}

/** Verbs of our own, each in a file of its own that is loaded when it is used. */
const verbs = {
  serve: { summary: "serve the commands to MCP clients: stdio, or --http", load: () => import("./builtin/serve.ts") },
  call: { summary: "call a tool of any MCP server: call <url | command | socket> <tool> [key=value …]", load: () => import("./builtin/call.ts") },
  tools: { summary: "list the commands as MCP clients see them", load: () => import("./builtin/tools.ts") },
  new: { summary: "write a first version of a command: new <domain>/<name>", load: () => import("./builtin/new.ts") },
  tasks: { summary: "list, show, follow, answer and cancel tasks", load: () => import("./builtin/tasks.ts") },
  stats: { summary: "how long commands take", load: () => import("./builtin/stats.ts") },
  diagnose: { summary: "will this server survive in my host: diagnose <url | . | -- command …>", load: () => import("./builtin/diagnose.ts") },
  compare: { summary: "what changed between two reports: compare <before.json> <after.json>", load: () => import("./builtin/compare.ts") },
  setup: { summary: "add this server to the MCP hosts on this machine", load: () => import("./builtin/setup.ts") },
  daemon: { summary: "the process that keeps work alive: daemon status|stop|restart|logs", load: () => import("./builtin/daemon.ts") },
  token: { summary: "print the token that makes an HTTP caller the local user", load: () => import("./builtin/token.ts") },
  completion: { summary: "print what makes your shell complete all this: completion bash|zsh|fish", load: () => import("./builtin/completion.ts") },
} as const;

export type VerbName = keyof typeof verbs;

/** Our own verbs, with what each does. */
export const listedVerbs = Object.entries(verbs).map(([name, { summary }]) => ({ name: name as VerbName, summary }));

export interface VerbCall {
  readonly words: readonly string[];
  readonly flags: GlobalFlags;
  readonly terminal: Terminal;
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
  if (first === "_complete") return await (await import("./builtin/complete.ts")).run(words.slice(1), listedVerbs);
  if (first === "_work") return await (await import("./builtin/work.ts")).run({ flags, protectStdout: () => cli.protectStdout() });
  if (first === "_project")
    return await (await import("./builtin/project.ts")).run({ flags, terminal: cli.terminal, protectStdout: () => cli.protectStdout() });
  if (first === "_daemon") return await (await import("./builtin/run-daemon.ts")).run({ flags, words: words.slice(1) });
  if (first !== undefined && Object.hasOwn(verbs, first) && !wantsHelp) {
    const verb = await verbs[first as keyof typeof verbs].load();
    return await verb.run({ words: words.slice(1), flags, terminal: cli.terminal, protectStdout: () => cli.protectStdout() });
  }
  const project = await cli.openProject(flags);
  if (wantsVersion) return say(cli, `${project.version}\n`);
  const found = project.commandFolders.flatMap(discover);
  if (wantsHelp || first === undefined || (first === "help" && words.length === 1)) {
    return say(cli, rootHelp(project.version, listedVerbs, found));
  }
  if (first === "help") return await dispatch({ ...cli, words: [...words.slice(1), "--help"] });
  const match = longestMatch(found, words);
  if (match === undefined) return await explainMiss(cli, found, words);
  await cli.protectStdout();
  const entry = await loadEntry(match);
  if (isProblem(entry)) throw new CommandError(`${match.path.join(" ")} could not be loaded from ${entry.file}: ${entry.text}`);
  const parsed = parseTyped(entry, words.slice(match.path.length));
  if ("help" in parsed) return say(cli, parsed.help);
  if (parsed.asTask !== undefined) {
    const { runAsTask } = await import("./builtin/as-task.ts");
    return await runAsTask(entry, parsed, cli.terminal, flags);
  }
  const { runInTerminal } = await import("./run.ts");
  return await runInTerminal(entry, parsed, cli.terminal, project);
}

function say(cli: Cli, text: string): ExitCode {
  cli.terminal.print(text);
  return Exit.Ok;
}

function isProblem(item: CatalogEntry | LoadProblem): item is LoadProblem {
  return "text" in item;
}

interface Globals {
  readonly flags: GlobalFlags;
  readonly words: readonly string[];
  readonly wantsHelp: boolean;
  readonly wantsVersion: boolean;
}

function takeGlobals(all: readonly string[]): Globals {
  const words = [...all];
  const commands: string[] = [];
  let bundled: boolean | undefined;
  let wantsHelp = false;
  let wantsVersion = false;
  while (words[0]?.startsWith("-")) {
    const word = words.shift() as string;
    if (word === "--commands") {
      const folder = words.shift();
      if (folder === undefined) throw new UsageError("--commands needs a folder.");
      commands.push(folder);
    } else if (word.startsWith("--commands=")) commands.push(word.slice("--commands=".length));
    else if (word === "--no-bundled") bundled = false;
    else if (word === "--help" || word === "-h") wantsHelp = true;
    else if (word === "--version" || word === "-V") wantsVersion = true;
    else if (word !== "--no-color") throw new UsageError(`Unknown option ${word}; meanwhile --help lists them.`);
  }
  const flags: GlobalFlags = { ...(commands.length > 0 && { commands }), ...(bundled !== undefined && { bundled }) };
  const before = beforeDashes(words);
  const kept = [...before.filter((word) => word !== "--no-color"), ...words.slice(before.length)];
  return { flags, words: kept, wantsHelp, wantsVersion };
}

/** The command whose words are typed first; the longest wins, so a subcommand beats an argument. */
function longestMatch(found: readonly FoundCommand[], words: readonly string[]): FoundCommand | undefined {
  const fits = found.filter(({ path }) => path.every((part, at) => words[at] === part));
  return fits.sort((a, b) => b.path.length - a.path.length)[0];
}

async function explainMiss(cli: Cli, found: readonly FoundCommand[], words: readonly string[]): Promise<ExitCode> {
  const typed = words.filter((word) => !word.startsWith("-"));
  const inDomain = found.filter(({ path }) => typed.every((word, at) => path[at] === word));
  if (inDomain.length > 0) {
    await cli.protectStdout();
    const entries = (await Promise.all(inDomain.map(loadEntry))).filter((item): item is CatalogEntry => !isProblem(item));
    if (entries.length > 0) return say(cli, domainHelp(typed.join(" "), entries));
  }
  const known = [...found.map(({ path }) => path.join(" ")), ...Object.keys(verbs)];
  const guess = closest(typed.slice(0, 2).join(" "), known) ?? closest(typed[0] ?? "", known);
  const hint = guess === undefined ? "meanwhile --help lists what there is." : `did you mean \`meanwhile ${guess}\`?`;
  throw new UsageError(`Unknown command \`${typed.slice(0, 2).join(" ")}\`; ${hint}`);
}
