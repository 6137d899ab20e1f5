import { existsSync } from "node:fs";
import { systemClock } from "../../clock.ts";
import type { CatalogEntry } from "../../command/catalog.ts";
import { servedName } from "../../command/names.ts";
import type { CommandSource } from "../../command/source.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { silentLog } from "../../log.ts";
import { homeAt, isBundledFile, refusalOfHome } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import type { ProjectFlags } from "../../project/project.ts";
import { programVersion } from "../../project/project.ts";
import { findBundled, findForTerminal, findServed } from "../../project/project-commands.ts";
import { StoredCatalog } from "../../project/stored-catalog.ts";
import { publicSettings } from "../../settings/public-settings.ts";
import { loadSettings, readSettings, type Settings } from "../../settings/settings.ts";
import type { AuthorsEstimate } from "../../task/authors-estimate.ts";
import { dispatch, formatOf, type KnownProject, type LoadedProject, type TerminalProject } from "../dispatch.ts";
import type { ProcessContext } from "../process-context.ts";
import { printError } from "../screens/json-error.ts";
import { openTerminal, type Terminal } from "../terminal.ts";

type Write = (text: string, done?: () => void) => unknown;

/** Where results are printed: stdout's own `write`, also after stdout was taken from the commands. */
interface Output {
  write: Write;
}

/**
 * Runs one command line, and returns its exit code once stdout and stderr are flushed. Everything it needs of the
 * process is in the context.
 */
export async function main(context: ProcessContext): Promise<ExitCode> {
  const { argv, stdout, stderr } = context;
  const output: Output = { write: (text, done) => stdout.write(text, done) };
  let hasPrinted = false;
  const print = (text: string) => {
    hasPrinted ||= text !== "";
    return output.write(text);
  };
  const terminal = openTerminal(context, print, { noColor: argv.includes("--no-color") });
  const stopWatching = watchOutput(context, terminal);
  if (await isHomeRefused(context, terminal)) return Exit.Internal;
  await replaceLauncher(context);
  let protecting: Promise<void> | undefined;
  const code: ExitCode = await dispatch({
    words: argv,
    terminal,
    context,
    version: programVersion(),
    readProject: (flags) => readProject(context, flags),
    loadProject: (flags) => loadProject(context, flags),
    protectStdout: () => (protecting ??= protectStdout(context, output, terminal)),
    hasPrinted: () => hasPrinted,
  });
  await Promise.all([
    new Promise<void>((resolve) => output.write("", resolve)),
    new Promise<void>((resolve) => stderr.write("", () => resolve())),
  ]);
  stopWatching();
  return code;
}

/** Ends the process when stdout fails. Returns a function that stops listening. */
function watchOutput({ stdout, stderr, exit }: ProcessContext, terminal: Terminal): () => void {
  const onStdoutError = (error: NodeJS.ErrnoException) => {
    // A reader that closes the pipe (`| head`) is no error worth a message; a full disk is.
    if (error.code === "EPIPE") return exit(Exit.Ok);
    terminal.say(`✗ The result could not be written: ${error.message}\n`);
    exit(Exit.Internal);
  };
  // When nobody reads stderr any more, a message about that could not be written either.
  const onStderrError = () => {};
  stdout.on("error", onStdoutError);
  stderr.on("error", onStderrError);
  return () => {
    stdout.off("error", onStdoutError);
    stderr.off("error", onStderrError);
  };
}

/** Checked before a single file of a home is read: another user may have put files there that we would run or trust. */
async function isHomeRefused({ env, argv }: ProcessContext, terminal: Terminal): Promise<boolean> {
  const message = refusalOfHome(homeAt(env));
  if (message === undefined) return false;
  terminal.say(`${terminal.colors.red("✗")} ${message}\n`);
  const error = { message, exitCode: Exit.Internal, code: "HOME_UNUSABLE" };
  await printError(error, { terminal, format: formatOf(argv) });
  return true;
}

/** A version that starts in a home takes over the launcher that its entries name, where that starts an older version. */
async function replaceLauncher({ env, nodeFile, nodeVersion, script, platform }: ProcessContext): Promise<void> {
  const home = homeAt(env);
  if (![home.launcher, `${home.launcher}.cmd`].some((file) => existsSync(file))) return;
  const { refreshLauncher } = await import("../../setup/launcher/launcher-file.ts");
  refreshLauncher(home, env, { file: nodeFile, version: nodeVersion, script, isWindows: platform === "win32" });
}

async function protectStdout({ guarded, exit }: ProcessContext, output: Output, terminal: Terminal): Promise<void> {
  const { surviveCommands, takeStdout } = await import("../../command/process-guard.ts");
  const { currentRun } = await import("../../command/running.ts");
  const stdout = takeStdout(guarded);
  output.write = (text, done) => stdout.write(text, done);
  const fail = (error: unknown) => {
    terminal.say(`${error instanceof Error ? error.stack : String(error)}\n`);
    exit(Exit.Internal);
  };
  surviveCommands(guarded, { currentRun, onBug: fail });
}

function readProject({ cwd, env }: ProcessContext, flags: ProjectFlags): KnownProject {
  const { settings, notice } = readSettings({ cwd, env, flags });
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

async function loadProject({ cwd, env }: ProcessContext, flags: ProjectFlags): Promise<LoadedProject> {
  const settings = await loadSettings({ cwd, env, flags });
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
