import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished } from "vitest";
import { system } from "../../src/system/system.ts";
import { cleanUp, temporaryFolder, writeFiles } from "./home.ts";
import { runMeanwhile, type Started, startMeanwhile, waitFor } from "./meanwhile.ts";
import { overPipes, type Result, WireClient, type WireOptions } from "./wire.ts";

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const folders = ["deferral", "questions", "daemon"].map((name) => path.join(fixtures, name, "commands"));
/** The words of a project that has these commands and no others. */
export const ownCommands = ["--no-bundled", ...folders.flatMap((folder) => ["--commands", folder])];

export interface Daemon {
  readonly key: string;
  readonly pid: number;
  readonly socket: string;
}

export interface FrontOptions extends Partial<WireOptions> {
  readonly words?: readonly string[];
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  /** Of another copy of the package. */
  readonly executable?: string;
}

/** A home with daemons in it. After the test every one of them is killed, and none is left. */
export class DaemonHome {
  readonly cwd: string;
  readonly home: string;
  readonly #env: Record<string, string>;

  constructor({ config, env = {} }: { config?: object; env?: Record<string, string> } = {}) {
    const folder = temporaryFolder();
    this.cwd = writeFiles(
      path.join(folder, "project"),
      config === undefined ? { "a file": "" } : { "meanwhile.config.json": JSON.stringify(config) },
    );
    this.home = path.join(folder, "home");
    this.#env = { MEANWHILE_HOME: this.home, ...env };
    cleanUp(() => killDaemons(this.home));
  }

  /** `meanwhile serve` as a host starts it. */
  start({ words = ownCommands, cwd = this.cwd, env = {}, executable }: FrontOptions = {}): Started {
    const place = { cwd, env: { ...this.#env, ...env } };
    return startMeanwhile(["serve", ...words], executable === undefined ? place : { ...place, executable });
  }

  /** A client on a front of its own, hands shaken. */
  async connect(options: FrontOptions = {}): Promise<WireClient & { readonly front: Started }> {
    const front = this.start(options);
    const { revision = "2025-11-25", name, capabilities } = options;
    const wire = { revision, ...(name !== undefined && { name }), ...(capabilities !== undefined && { capabilities }) };
    const client = Object.assign(new WireClient(overPipes(front.child), wire), { front });
    onTestFinished(() => client.close());
    await client.begin();
    return client;
  }

  /** `meanwhile …` in a process of its own. */
  terminal(...words: string[]) {
    return runMeanwhile([...ownCommands, ...words], { cwd: this.cwd, env: this.#env });
  }

  /** Those that have a record. */
  daemons(): Daemon[] {
    return recordsOf(this.home);
  }

  /** The only one there is. */
  daemon(): Daemon {
    const found = this.daemons();
    expect(found, "daemons in this home").toHaveLength(1);
    return found[0] as Daemon;
  }

  /**
   * Resolves when one process serves this home and no other is left; one that was started in vain may be on its way
   * out.
   */
  async hasOneDaemon(): Promise<void> {
    await waitFor(
      () => daemonProcesses(this.home).join() === `${this.daemons()[0]?.pid}`,
      () =>
        `not one daemon, but ${daemonProcesses(this.home).join(", ")}, and records of ${JSON.stringify(this.daemons())}`,
    );
  }

  /** Another one than `before`, as soon as there is one. */
  async nextDaemon(before: Daemon): Promise<Daemon> {
    return await waitFor(
      () => this.daemons().find(({ pid }) => pid !== before.pid),
      () => `no daemon came after ${before.pid}`,
    );
  }

  log(): string {
    return readFileSync(path.join(this.home, "daemon.log"), "utf8");
  }
}

export function recordsOf(home: string): Daemon[] {
  const folder = path.join(home, "run");
  return namesIn(folder).flatMap((name) => {
    // What upstreams were last known to have lies beside them.
    if (!name.endsWith(".json") || name.startsWith("upstream-")) return [];
    try {
      return [
        {
          key: name.slice(0, -5),
          ...(JSON.parse(readFileSync(path.join(folder, name), "utf8")) as Omit<Daemon, "key">),
        },
      ];
    } catch {
      // Removed since the folder was read.
      return [];
    }
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/**
 * Kills the daemons of a home, those without a record too, and waits until they are gone. An author's program has its
 * home in a variable of its own.
 */
export async function killDaemons(home: string, variable?: string): Promise<void> {
  const left = () => processesOf(home, "_daemon", variable);
  const pids = new Set([...recordsOf(home).map(({ pid }) => pid), ...left()]);
  for (const pid of pids) kill(pid);
  await waitFor(
    () => left().length === 0 && [...pids].every((pid) => !isRunning(pid)),
    () => `daemons were left: ${left().join(", ")}`,
  );
}

/** Ends a process as a crash does. */
export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}

/** Kills what works on in a home after its terminal has left; without its home it would never end. */
export async function killWorkers(home: string, variable?: string): Promise<void> {
  const left = () => processesOf(home, "_work", variable);
  for (const pid of left()) kill(pid);
  await waitFor(
    () => left().length === 0,
    () => `workers were left: ${left().join(", ")}`,
  );
}

/** The daemons that run on a home, whatever their records say. */
export const daemonProcesses = (home: string) => processesOf(home, "_daemon");

function processesOf(home: string, verb: string, variable = "MEANWHILE_HOME"): number[] {
  const found = commandLines().filter(([, words]) => ` ${words} `.includes(` ${verb} `));
  return [
    ...system.markedOf(
      found.map(([pid]) => pid),
      `${variable}=${home}`,
    ),
  ].filter(isRunning);
}

/** Every process with its words. */
function commandLines(): (readonly [number, string])[] {
  // Nothing else is read of them: tests ask for this more often than for anything.
  if (system.platform === "linux")
    return namesIn("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => [Number(pid), readOr(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim()]);
  const lines = spawnSync("ps", ["-axww", "-o", "pid=,command="], { encoding: "utf8" }).stdout.split("\n");
  return lines.map((line) => [Number.parseInt(line, 10), line]);
}

function readOr(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** A process that has ended and waits for its parent does not run. */
export const isRunning = system.isAlive;

export function residentMiB(pid: number): number {
  return Number(spawnSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" }).stdout) / 1024;
}

/** The processes that a process has started. */
export function childrenOf(pid: number): number[] {
  return system.processes().flatMap((each) => (each.parent === pid ? [each.pid] : []));
}

/** What a command returned. */
export function dataOf<T>(result: Result): T {
  if (result.structuredContent?.success !== true)
    throw new Error(`The call was answered with ${JSON.stringify(result).slice(0, 500)}`);
  return result.structuredContent.data as T;
}
