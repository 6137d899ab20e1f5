import { lstatSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { isTaken } from "./posix.ts";
import { type Programs, systemPrograms } from "./programs.ts";
import type { FileRule, OwnSocket, System } from "./system.ts";

/** Windows, by what Node tells, by `taskkill`, and by PowerShell, which takes half a second: so it is asked seldom. */
export function createWindows(programs: Programs = systemPrograms): System {
  const { SystemRoot: root = "C:\\Windows" } = process.env;
  const shell = [
    `${root}\\System32\\WindowsPowerShell\\v1.0\\powershell.exe`,
    (script: string) => [
      "-NoProfile",
      "-NonInteractive",
      "-EncodedCommand",
      Buffer.from(script, "utf16le").toString("base64"),
    ],
  ] as const;
  const askShell = (script: string) => programs.ask(shell[0], shell[1](script)).trim();
  const refusals = new Map<string, string | undefined>();
  return {
    platform: "win32",
    isAlive: isTaken,
    ownStart: () => new Date(performance.timeOrigin).toISOString(),
    beganAt(pid, start) {
      const began = Date.parse(askShell(`(Get-Process -Id ${pid}).StartTime.ToUniversalTime().ToString("o")`));
      return Number.isNaN(began) ? undefined : Math.abs(began - Date.parse(start)) < startToleranceMs;
    },
    bootId: () => "-",
    pidNamespace: () => "-",
    // There are no groups, and to list all would keep everybody waiting.
    processes: () => [],
    markedOf: () => [],
    async memoryOf(pid) {
      const bytes = Number.parseInt(
        await programs.askLater(shell[0], shell[1](`(Get-Process -Id ${pid}).WorkingSet64`)),
        10,
      );
      return Number.isNaN(bytes) ? undefined : bytes;
    },
    memoryCheckMs: 2_000,
    ownGroup: { detached: false, windowsHide: true },
    killGroup(pid) {
      programs.ask(`${root}\\System32\\taskkill.exe`, ["/pid", String(pid), "/t", "/f"]);
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It is gone, or not ours.
      }
    },
    hasDescriptorsLeft: () => true,
    refusalOf(rules) {
      // In the user's own profile only the user, administrators and the system may write, unless the user has said
      // otherwise.
      const outside = rules.filter(({ file }) => !isInside(homedir(), file) && isThere(file));
      if (outside.length === 0) return undefined;
      const key = JSON.stringify(outside);
      if (!refusals.has(key)) refusals.set(key, readRefusal(outside, askShell(accessScript(outside))));
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
    placeSocket: () => `\\\\.\\pipe\\meanwhile-${randomName()}`,
    ownSocket: (name) => new Pipe(name),
    refusalOfSocket: (name) => (name.startsWith("\\\\.\\pipe\\meanwhile-") ? undefined : `${name} is no pipe of ours`),
    areSocketsSeen: true,
  };
}

/** Node knows when it began, the system when it made the process. */
const startToleranceMs = 5_000;

/**
 * The system makes a pipe that this user, administrators and itself may write, and that everybody may open to read: to
 * them nothing is said, because they cannot greet. It ends with who listens.
 */
class Pipe implements OwnSocket {
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

function isThere(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

function isInside(folder: string, file: string): boolean {
  const way = path.win32.relative(folder, file);
  return way !== "" && !way.startsWith("..") && !path.win32.isAbsolute(way);
}

/** Prints who we are and then, for each file, its owner and who may do what, as the system writes these. */
function accessScript(rules: readonly FileRule[]): string {
  // PowerShell takes each of these for a quote, and two of them for one that is meant.
  const quoted = rules.map(({ file }) => `'${file.replace(/['\u2018-\u201b]/g, "$&$&")}'`);
  return [
    "[Security.Principal.WindowsIdentity]::GetCurrent().User.Value",
    `foreach ($file in ${quoted.join(",")}) { "=" + (Get-Acl -LiteralPath $file).Sddl }`,
  ].join("\n");
}

function readRefusal(rules: readonly FileRule[], printed: string): string | undefined {
  const [own = "", ...lines] = printed.split(/\r?\n/);
  const refusals = rules.map((rule, at) => refusalBy(lines[at]?.slice(1) ?? "", own, rule));
  return refusals.find((refusal) => refusal !== undefined);
}

/** The system, administrators, and whoever owns or has made it, in that place. */
const trusted: readonly string[] = ["SY", "BA", "S-1-5-18", "S-1-5-32-544", "CO", "OW", "S-1-3-0", "S-1-3-4"];

/** Describes a file by https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format. */
function refusalBy(access: string, own: string, { file, mayBeShared = false, cure }: FileRule): string | undefined {
  const owner = /^O:(S-[\d-]+|[A-Z]{2})/.exec(access)?.[1];
  if (owner === undefined) return undefined;
  if (owner !== own && !trusted.includes(owner))
    return `${file} belongs to another user (${owner}, you are ${own}), so nothing in it was read; ${cure}.`;
  const writer = mayBeShared ? undefined : writersOf(access).find((who) => who !== own && !trusted.includes(who));
  if (writer === undefined) return undefined;
  return `${file} may be written by others (${writer}), so nothing in it was read; if what is there is yours, take that right from them, or ${cure}.`;
}

const rights: Readonly<Record<string, number>> = {
  ...{ CC: 0x1, DC: 0x2, LC: 0x4, SW: 0x8, RP: 0x10, WP: 0x20, DT: 0x40, LO: 0x80, CR: 0x100 },
  ...{ SD: 0x10000, RC: 0x20000, WD: 0x40000, WO: 0x80000 },
  ...{ GA: 0x10000000, GX: 0x20000000, GW: 0x40000000, GR: 0x80000000 },
  ...{ FA: 0x1f01ff, FR: 0x120089, FW: 0x120116, FX: 0x1200a0 },
};
/** To write, append, or delete what is in it or itself; to change its owner or its rights; all. */
const writing = 0x2 | 0x4 | 0x40 | 0x10000 | 0x40000 | 0x80000 | 0x10000000 | 0x40000000;

/** Who may write. */
function writersOf(access: string): string[] {
  const list = /D:([A-Z_]*)((?:\([^()]*\))*)/.exec(access);
  if (list === null || list[1]?.includes("NO_ACCESS_CONTROL")) return ["everybody"];
  return [...(list[2] ?? "").matchAll(/\(([^()]*)\)/g)].flatMap(([, entry = ""]) => {
    const [type = "", flags = "", mask = "", , , who = ""] = entry.split(";");
    const isAllowing = ["A", "OA", "XA"].includes(type) && !pairsOf(flags).includes("IO");
    return isAllowing && (toMask(mask) & writing) !== 0 ? [who] : [];
  });
}

const pairsOf = (text: string): readonly string[] => text.match(/../g) ?? [];

function toMask(text: string): number {
  if (text.startsWith("0x")) return Number(text);
  return pairsOf(text).reduce((mask, name) => mask | (rights[name] ?? 0), 0);
}
