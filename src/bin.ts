import { main } from "./cli/main.ts";
import { openTerminal } from "./cli/terminal.ts";
import { loadSettings, publicSettings } from "./config.ts";
import { armFailpoint } from "./failpoint.ts";

armFailpoint(process.env.MEANWHILE_FAILPOINT, () => process.kill(process.pid, "SIGKILL"));

const words = process.argv.slice(2);
let write: (text: string) => unknown = (text) => process.stdout.write(text);
const terminal = openTerminal((text) => write(text), { noColor: words.includes("--no-color") });

// A reader that closes the pipe (`| head`) is not an error worth a stack trace.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
});

const code = await main({
  words,
  terminal,
  async openProject(flags) {
    const settings = await loadSettings({ cwd: process.cwd(), env: process.env, flags });
    return {
      version: settings.version,
      commandFolders: settings.commandFolders,
      home: settings.home.folder,
      config: publicSettings(settings),
      isDebug: settings.isDebug,
    };
  },
  async protectStdout() {
    const { surviveCommands, takeStdout } = await import("./process-guard.ts");
    const { currentRun } = await import("./command/run.ts");
    const stdout = takeStdout(process);
    write = (text) => stdout.write(text);
    surviveCommands(process, { currentRun, onBug: fail });
  },
});

// What a command left running must not keep the terminal: leave once everything written is out.
await Promise.all(
  [process.stdout, process.stderr].map((stream) => new Promise<void>((resolve) => (stream.writableLength === 0 ? resolve() : stream.once("drain", resolve)))),
);
process.exit(code);

function fail(error: unknown): void {
  terminal.say(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(70);
}
