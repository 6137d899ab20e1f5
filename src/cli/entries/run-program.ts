import { systemClock } from "../../clock.ts";
import type { CatalogEntry } from "../../command/catalog.ts";
import { servedName } from "../../command/names.ts";
import type { CommandSource } from "../../command/source.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { armFailpoint } from "../../failpoint.ts";
import { silentLog } from "../../log.ts";
import { homeAt, isBundledFile, refusalOfHome } from "../../paths.ts";
import { beTyped, thisProgram } from "../../program/program.ts";
import type { ProjectFlags } from "../../project/project.ts";
import { programVersion } from "../../project/project.ts";
import { findBundled, findForTerminal, findServed } from "../../project/project-commands.ts";
import { StoredCatalog } from "../../project/stored-catalog.ts";
import { publicSettings } from "../../settings/public-settings.ts";
import { loadSettings, readSettings, type Settings } from "../../settings/settings.ts";
import type { AuthorsEstimate } from "../../task/authors-estimate.ts";
import { type KnownProject, type LoadedProject, main, type TerminalProject } from "../main.ts";
import { openTerminal, type Terminal } from "../terminal.ts";

type Write = (text: string, done?: () => void) => unknown;

/** What this process prints to: stdout's own writer is kept apart from what commands may do to stdout. */
interface Output {
  write: Write;
  /** Nothing more is to come. */
  isDone: boolean;
}

/** Runs what was typed, as Meanwhile or as an author's program, and ends the process with its exit code. */
export async function runProgram(words: readonly string[]): Promise<never> {
  beTyped();
  armFailpoint(process.env[thisProgram.variable("FAILPOINT")], () => process.kill(process.pid, "SIGKILL"));
  const output: Output = { write: (text, done) => process.stdout.write(text, done), isDone: false };
  const terminal = openTerminal((text) => output.write(text), { noColor: words.includes("--no-color") });
  watchOutput(output, terminal);
  refuseForeignHome(terminal);
  let protecting: Promise<void> | undefined;
  const code: ExitCode = await main({
    words,
    terminal,
    version: programVersion(),
    readProject,
    loadProject,
    protectStdout: () => (protecting ??= protectStdout(output, terminal)),
  });
  output.isDone = true;
  // What a command left running must not keep the terminal: leave once everything written is out.
  await Promise.all([
    new Promise<void>((resolve) => output.write("", resolve)),
    new Promise<void>((resolve) => process.stderr.write("", () => resolve())),
  ]);
  process.exit(code);
}

function watchOutput(output: Output, terminal: Terminal): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A reader that closes the pipe (`| head`) is not an error worth a word; a full disk is.
    if (error.code === "EPIPE") process.exit(0);
    terminal.say(`✗ The result could not be written: ${error.message}\n`);
    process.exit(Exit.Internal);
  });

  // Whoever read the log may be gone. Saying so would be one more line that cannot be written, and so on without end.
  process.stderr.on("error", () => {});

  // Nothing is left that could make it go on: a promise that never settles must not look like success.
  process.on("beforeExit", () => {
    if (output.isDone) return;
    terminal.say("✗ It ended without a result: it waits for something that will never come.\n");
    process.exit(Exit.CommandFailed);
  });
}

/** Before a single file of a home is read: somebody else may have put there what we would run or trust. */
function refuseForeignHome({ say, colors }: Terminal): void {
  const refusal = refusalOfHome(homeAt(process.env));
  if (refusal === undefined) return;
  say(`${colors.red("✗")} ${refusal}\n`);
  process.exit(Exit.Internal);
}

async function protectStdout(output: Output, terminal: Terminal): Promise<void> {
  const { surviveCommands, takeStdout } = await import("../../command/process-guard.ts");
  const { currentRun } = await import("../../command/running.ts");
  const stdout = takeStdout(process);
  output.write = (text, done) => stdout.write(text, done);
  const fail = (error: unknown) => {
    terminal.say(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(Exit.Internal);
  };
  surviveCommands(process, { currentRun, onBug: fail });
}

function readProject(flags: ProjectFlags): KnownProject {
  const { settings, notice } = readSettings({ cwd: process.cwd(), env: process.env, flags });
  const stored = new StoredCatalog(settings.home, settings.commandFolders);
  const served = new Set(findServed(settings).map(({ file }) => file));
  return {
    ...toProject(settings, flags),
    notice,
    upstreams: Object.keys(settings.upstreams),
    mayAskHook: thisProgram.authors !== undefined && settings.mcp !== undefined,
    describe: (found) => stored.describe(found),
    isBundled: ({ file }) => isBundledFile(file),
    isServed: ({ file }) => served.has(file),
  };
}

async function loadProject(flags: ProjectFlags): Promise<LoadedProject> {
  const settings = await loadSettings({ cwd: process.cwd(), env: process.env, flags });
  return {
    ...toProject(settings, flags),
    keep: (loaded) => new StoredCatalog(settings.home, settings.commandFolders).keep([loaded]),
    openHook: () => openHookFor(settings),
    async openUpstream(name) {
      const { openUpstream } = await import("../../runtime/open-gateway.ts");
      return openUpstream(settings, name, { clock: systemClock, log: silentLog });
    },
  };
}

/** Tools are called as before 2026-07-28: whatever they ask, they may ask here while they work. */
async function openHookFor(settings: Settings): Promise<CommandSource | undefined> {
  const { createHook, openHook } = await import("../../runtime/open-hook.ts");
  const hook = createHook(settings, silentLog);
  if (hook !== undefined) await openHook(hook, systemClock, "legacy");
  return hook?.tools;
}

function toProject(settings: Settings, flags: ProjectFlags): TerminalProject {
  // Whoever types where the commands are, or that there be no bundled ones, has said whose words they are.
  const isSaid = flags.commands !== undefined || flags.bundled === false;
  return {
    commands: findForTerminal(settings),
    findBundled: () => (isSaid ? [] : findBundled()),
    wasLoaded: (found) => new StoredCatalog(settings.home, settings.commandFolders).knows(found),
    home: settings.home.folder,
    config: publicSettings(settings),
    isDebug: settings.isDebug,
    remember: (...run) => rememberRun(settings, ...run),
  };
}

/** Counts a run that stays in this process; a store that cannot be used fails nothing that is done. */
async function rememberRun(
  settings: Settings,
  entry: CatalogEntry,
  ms: number,
  said: AuthorsEstimate | undefined,
): Promise<void> {
  try {
    const { openTasks } = await import("../../runtime/open-tasks.ts");
    const tasks = await openTasks(settings);
    tasks.history.add(servedName(entry, settings.toolPrefix), ms, said);
    await tasks.close();
  } catch {
    // Durations are a courtesy.
  }
}
