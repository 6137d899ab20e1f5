import { spawn } from "node:child_process";
import { closeSync, constants, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Readable } from "node:stream";
import { sleep, systemClock, within } from "../../clock.ts";
import { outOfDescriptors, RuntimeError } from "../../errors.ts";
import { ensureHome, type Home } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { system } from "../../system/system.ts";
import { type DaemonRecord, readRecord } from "../record.ts";
import { DaemonUnreachable, KeyOutdated, refuseGone } from "./unreachable.ts";

/** A daemon that is starting. */
export interface Launched {
  /**
   * What the daemon reports: `ready`, `taken`, `another` with the names of the variables in its key, or `failed` with a
   * sentence. Empty when it ended without a word.
   */
  readonly said: Promise<string>;
  /** No more is read of what it reports. */
  close(): void;
  /** Kills a daemon that takes too long to start. */
  kill(): void;
}

export interface DaemonAddress {
  readonly home: Home;
  readonly key: string;
  /** The variables that this key counts. */
  readonly names: readonly string[];
  /** Names the project alone, whatever else is part of the key. */
  readonly project: string;
  /** Counts in place of what the MCP client calls itself. */
  readonly host: string | undefined;
  /** The variables of the session, where servers are started for it. */
  readonly session?: Readonly<Record<string, string>> | undefined;
  /** Node, and the words that start the daemon. */
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Starts the daemon. Default: in a process of its own. */
  readonly launch?: ((address: DaemonAddress) => Launched) | undefined;
  /** The home has been there: where it is not, it was taken away, and is not made. */
  readonly isHomeKnown?: boolean;
}

export const startLimitMs = 30_000;
export const lookAgainMs = 20;
/**
 * Whoever starts a daemon is stuck when it takes longer than this, and another may try; one that is dead is not waited
 * for.
 */
const staleStartMs = 10_000;

/**
 * Of many who find no daemon, one starts it and the others look again; a lock in the daemon itself makes sure that only
 * one stays.
 */
export async function startOrWait(address: DaemonAddress, known: DaemonRecord | undefined): Promise<void> {
  const { home, key } = address;
  refuseGone(home, address.isHomeKnown);
  prepareHome(home);
  const turn = path.join(home.runFolder, `${key}.starting`);
  if (!takeTurn(turn)) return await sleep(systemClock, lookAgainMs);
  try {
    // Whoever had the turn before us may have started one since we looked.
    if (readRecord(home, key)?.pid === known?.pid) await startDaemon(address);
  } finally {
    rmSync(turn, { force: true });
  }
}

/** The home and what is in it are this user's alone, also where the folder was made by somebody less careful. */
function prepareHome(home: Home): void {
  try {
    ensureHome(home);
    system.ensurePrivateFolder(home.runFolder);
  } catch (error) {
    if (error instanceof RuntimeError) throw error;
    throw new DaemonUnreachable(
      `Cannot use the home folder ${home.folder}: ${(error as Error).message}; set ${thisProgram.variable("HOME")} to a folder of your own.`,
      {
        forClients: "The home folder cannot be used; whoever runs this server finds the reason on its stderr.",
      },
    );
  }
}

function takeTurn(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch {
    const since = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
    const pid = readPid(file);
    const isStale =
      (since !== undefined && systemClock.now() - since > staleStartMs) || (pid !== undefined && !system.isAlive(pid));
    if (isStale) rmSync(file, { force: true });
    return false;
  }
}

/** Undefined while it is being written. */
function readPid(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8")) || undefined;
  } catch {
    return undefined;
  }
}

/** Starts the daemon and resolves when it listens, or another does. */
async function startDaemon(address: DaemonAddress): Promise<void> {
  const { home, launch = spawnDaemon } = address;
  refuseGone(home, address.isHomeKnown);
  prepareHome(home);
  const launched = launch(address);
  const said = await within(systemClock, startLimitMs, launched.said, () => "late");
  launched.close();
  if (said.startsWith("failed ")) throw new DaemonUnreachable(said.slice("failed ".length).trim());
  if (said.startsWith("another ")) throw new KeyOutdated(JSON.parse(said.slice("another ".length)) as string[]);
  if (said === "late") {
    launched.kill();
    const what = `The daemon has not started within ${startLimitMs / 1000} s`;
    throw new DaemonUnreachable(`${what}; see ${home.daemonLog}, or serve with --in-process.`, {
      forClients: `${what}; its log says why.`,
    });
  }
  if (said === "") {
    const what = "The daemon ended while it started";
    throw new DaemonUnreachable(`${what}; see ${home.daemonLog}.`, { forClients: `${what}; its log says why.` });
  }
}

/** Starts the daemon as a process in a session of its own, which outlives this process. */
function spawnDaemon({ home, command: [program, ...words], env, cwd }: DaemonAddress): Launched {
  const log = openLogFile(home.daemonLog);
  const child = spawn(program, words, {
    detached: true,
    windowsHide: true,
    cwd,
    env,
    stdio: ["ignore", log, log, "pipe"],
  });
  closeSync(log);
  child.unref();
  const report = child.stdio[3] as Readable;
  const said = new Promise<string>((resolve) => {
    let text = "";
    report.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
    report.on("error", () => resolve(text));
    report.on("close", () => resolve(text));
    child.on("error", (error) => resolve(`failed ${error.message}`));
  });
  return { said, close: () => void report.destroy(), kill: () => void child.kill("SIGKILL") };
}

/** The daemon itself puts aside what is too long. */
function openLogFile(file: string): number {
  // A link would have us write where somebody else wants it.
  try {
    return openSync(file, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (error) {
    throw new DaemonUnreachable(whyNoLog(file, error as NodeJS.ErrnoException), {
      forClients: "The daemon's log cannot be written; whoever runs this server finds the reason on its stderr.",
    });
  }
}

/** Throws when no daemon could be started in this home: before the one that runs is told to stop. */
export function refuseUnwritable(home: Home): void {
  prepareHome(home);
  closeSync(openLogFile(home.daemonLog));
}

/** Only what is in the way of the log has to be removed; everything else is true of the whole home. */
function whyNoLog(file: string, { code = "", message }: NodeJS.ErrnoException): string {
  const elsewhere = `or set ${thisProgram.variable("HOME")} to a folder that you may write`;
  if (code === "EROFS")
    return `The log ${file} may not be written, because its file system is mounted read-only; mount it writable, ${elsewhere}.`;
  if (code === "EACCES" || code === "EPERM")
    return `The log ${file} may not be written; change its mode and that of its folder (chmod u+w), ${elsewhere}.`;
  if (code === "ENOSPC" || code === "EDQUOT")
    return `The log ${file} cannot be written, because the disk is full; make room, ${elsewhere}.`;
  if (code === "EMFILE" || code === "ENFILE") return `The log ${file} cannot be opened: ${outOfDescriptors}.`;
  return `The log ${file} cannot be written: ${message}; remove what is there.`;
}
