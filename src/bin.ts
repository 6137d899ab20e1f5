import { main, type TerminalProject } from "./cli/main.ts";
import { openTerminal } from "./cli/terminal.ts";
import { Exit } from "./errors.ts";
import { armFailpoint } from "./failpoint.ts";
import { homeAt, isBundledFile, refusalOfHome } from "./paths.ts";
import type { ProjectFlags } from "./project/project.ts";
import { packageVersion } from "./project/project.ts";
import { findBundled, findForTerminal, findServed } from "./project/project-commands.ts";
import { StoredCatalog } from "./project/stored-catalog.ts";
import { publicSettings } from "./settings/public-settings.ts";
import { loadSettings, readSettings, type Settings } from "./settings/settings.ts";
import type { AuthorsEstimate } from "./task/authors-estimate.ts";

armFailpoint(process.env.MEANWHILE_FAILPOINT, () => process.kill(process.pid, "SIGKILL"));

const words = process.argv.slice(2);
type Write = (text: string, done?: () => void) => unknown;
let write: Write = (text, done) => process.stdout.write(text, done);
const terminal = openTerminal((text) => write(text), { noColor: words.includes("--no-color") });
let isDone = false;

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
  if (isDone) return;
  terminal.say("✗ It ended without a result: it waits for something that will never come.\n");
  process.exit(Exit.CommandFailed);
});

// Before a single file of a home is read: somebody else may have put there what we would run or trust.
const refusal = refusalOfHome(homeAt(process.env));
if (refusal !== undefined) {
  terminal.say(`${terminal.colors.red("✗")} ${refusal}\n`);
  process.exit(Exit.Internal);
}

const code = await main({
  words,
  terminal,
  version: packageVersion(),
  readProject(flags) {
    const { settings, notice } = readSettings({ cwd: process.cwd(), env: process.env, flags });
    const stored = new StoredCatalog(settings.home, settings.commandFolders);
    const served = new Set(findServed(settings).map(({ file }) => file));
    return {
      ...toProject(settings, flags),
      notice,
      describe: (found) => stored.describe(found),
      isBundled: ({ file }) => isBundledFile(file),
      isServed: ({ file }) => served.has(file),
    };
  },
  async loadProject(flags) {
    const settings = await loadSettings({ cwd: process.cwd(), env: process.env, flags });
    return {
      ...toProject(settings, flags),
      keep: (loaded) => new StoredCatalog(settings.home, settings.commandFolders).keep([loaded]),
    };
  },
  async protectStdout() {
    const { surviveCommands, takeStdout } = await import("./command/process-guard.ts");
    const { currentRun } = await import("./command/running.ts");
    const stdout = takeStdout(process);
    write = (text, done) => stdout.write(text, done);
    surviveCommands(process, { currentRun, onBug: fail });
  },
});

isDone = true;
// What a command left running must not keep the terminal: leave once everything written is out.
await Promise.all([
  new Promise<void>((resolve) => write("", resolve)),
  new Promise<void>((resolve) => process.stderr.write("", () => resolve())),
]);
process.exit(code);

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
  toolName: string,
  ms: number,
  said: AuthorsEstimate | undefined,
): Promise<void> {
  try {
    const { openTasks } = await import("./runtime/open-tasks.ts");
    const name = settings.toolPrefix === "" ? toolName : `${settings.toolPrefix}_${toolName}`;
    const tasks = await openTasks(settings);
    tasks.history.add(name, ms, said);
    await tasks.close();
  } catch {
    // Durations are a courtesy.
  }
}

function fail(error: unknown): void {
  terminal.say(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(Exit.Internal);
}
