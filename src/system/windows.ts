import { lstatSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { thisProgram } from "../program/program.ts";
import { accessScript, readRefusal, rulesToAsk } from "./access-list.ts";
import { isTaken } from "./posix.ts";
import { type Programs, rememberStarts, systemPrograms } from "./programs.ts";
import type { OwnSocket, System } from "./system.ts";

/** Windows, by what Node tells, by `taskkill`, and by PowerShell, which takes half a second: so it is asked seldom. */
export function createWindows(programs: Programs = systemPrograms): System {
  const folder = `${process.env.SystemRoot ?? "C:\\Windows"}\\System32`;
  const shell = `${folder}\\WindowsPowerShell\\v1.0\\powershell.exe`;
  const askShell = (script: string) => programs.ask(shell, shellWords(script)).trim();
  const refusals = new Map<string, string | undefined>();
  const killTree = (pid: number) => {
    programs.ask(`${folder}\\taskkill.exe`, ["/pid", String(pid), "/t", "/f"]);
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It is gone, or not ours.
    }
  };
  return {
    platform: "win32",
    isAlive: isTaken,
    ownStart: () => new Date(performance.timeOrigin).toISOString(),
    beganAt: rememberStarts((pid, start) => {
      const began = Date.parse(askShell(`(Get-Process -Id ${pid}).StartTime.ToUniversalTime().ToString("o")`));
      return Number.isNaN(began) ? undefined : Math.abs(began - Date.parse(start)) < startToleranceMs;
    }),
    bootId: () => "-",
    pidNamespace: () => "-",
    // There are no groups, and to list all would keep everybody waiting.
    processes: () => [],
    markedOf: () => [],
    async memoryOf(pid) {
      const said = await programs.askLater(shell, shellWords(`(Get-Process -Id ${pid}).WorkingSet64`));
      const bytes = Number.parseInt(said, 10);
      return Number.isNaN(bytes) ? undefined : bytes;
    },
    memoryCheckMs: 2_000,
    ownGroup: { detached: false, windowsHide: true },
    askToEnd: killTree,
    askGroupToEnd: killTree,
    killGroup: killTree,
    hasDescriptorsLeft: () => true,
    refusalOf(rules) {
      const checked = rulesToAsk(rules, homedir());
      if (checked.length === 0) return undefined;
      const key = JSON.stringify(checked);
      if (!refusals.has(key)) refusals.set(key, readRefusal(checked, askShell(accessScript(checked))));
      return refusals.get(key);
    },
    // To ask for each of many files would take longer than anybody waits.
    refusalOfProjectFile: () => undefined,
    isPrivate: () => true,
    ensurePrivateFolder(folder) {
      mkdirSync(folder, { recursive: true });
      if (!lstatSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
    },
    fitsSocket: () => false,
    placeSocket: () => `\\\\.\\pipe\\${thisProgram.name}-${randomName()}`,
    ownSocket: (name) => new NamedPipe(name),
    refusalOfSocket: (name) =>
      name.startsWith(`\\\\.\\pipe\\${thisProgram.name}-`) ? undefined : `${name} is no pipe of ours`,
    areSocketsSeen: true,
  };
}

/** As they come: quotes mean one thing to Windows and another to its shell. */
function shellWords(script: string): string[] {
  return ["-NoProfile", "-NonInteractive", "-EncodedCommand", Buffer.from(script, "utf16le").toString("base64")];
}

/** Node knows when it began, the system when it made the process. */
const startToleranceMs = 5_000;

/**
 * The system makes a pipe that this user, administrators and itself may write, and that everybody may open to read: to
 * them nothing is said, because they cannot greet. It ends with who listens.
 */
class NamedPipe implements OwnSocket {
  readonly #name: string;
  #isOpen = false;

  constructor(name: string) {
    this.#name = name;
  }

  async open(listen: (name: string) => Promise<void>): Promise<void> {
    await listen(this.#name);
    this.#isOpen = true;
  }

  isThere(): boolean {
    return this.#isOpen;
  }

  remove(): void {
    this.#isOpen = false;
  }
}

/** Nobody can have taken a name that nobody can guess. */
function randomName(): string {
  return process.getBuiltinModule("node:crypto").randomBytes(16).toString("hex");
}
