import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import { isRunning, killDaemons, recordsOf } from "./daemon.ts";
import { cleanUp, temporaryFolder } from "./home.ts";
import { runMeanwhile, startMeanwhile, waitFor } from "./meanwhile.ts";
import { overPipes, WireClient, type WireOptions } from "./wire.ts";

export const fixture = path.resolve(import.meta.dirname, "../fixtures/gateway/stdio.mjs");

/** Files by which a server of test/fixtures/gateway in the mode `gated` says what it does, and is told what to do. */
export class Gate {
  readonly #folder = temporaryFolder();
  readonly env = {
    COUNT_FILE: this.#file("count"),
    GO_FILE: this.#file("go"),
    DIE_FILE: this.#file("die"),
    HOLD_FILE: this.#file("hold"),
    PID_FILE: this.#file("pids"),
  };

  #file(name: string): string {
    return path.join(this.#folder, name);
  }

  /** How often each tool has begun to work. */
  runs(): Record<string, number> {
    const names = readOr(this.env.COUNT_FILE);
    return Object.fromEntries([...new Set(names)].map((name) => [name, names.filter((one) => one === name).length]));
  }

  /** Resolves when so many runs have begun. */
  async began(count: number): Promise<void> {
    await waitFor(
      () => readOr(this.env.COUNT_FILE).length >= count,
      () => `${count} runs were expected, and there were ${JSON.stringify(this.runs())}`,
    );
  }

  /** Whoever works may end; or this tool alone. */
  open(tool?: string): void {
    writeFileSync(tool === undefined ? this.env.GO_FILE : `${this.env.GO_FILE}-${tool}`, "");
  }

  /** The next that begins to work ends its server. */
  arm(): void {
    writeFileSync(this.env.DIE_FILE, "");
  }

  /** Servers that start hear nothing. */
  hold(): void {
    writeFileSync(this.env.HOLD_FILE, "");
  }

  letGo(): void {
    if (existsSync(this.env.HOLD_FILE)) rmSync(this.env.HOLD_FILE);
  }

  /** The processes that were started. */
  pids(): number[] {
    return readOr(this.env.PID_FILE).map(Number);
  }
}

function readOr(file: string): string[] {
  return existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];
}

/** A home in which `wrap` is run; its daemons are ended after the test. */
export class WrapHome {
  readonly home = temporaryFolder();
  readonly cwd = temporaryFolder();
  readonly #env: Readonly<Record<string, string>>;

  constructor(env: Readonly<Record<string, string>> = {}) {
    this.#env = { MEANWHILE_HOME: this.home, ...env };
    cleanUp(() => killDaemons(this.home));
  }

  get env(): Record<string, string> {
    return { ...this.#env };
  }

  start(words: readonly string[], { cwd = this.cwd, env = {} as Record<string, string> } = {}) {
    return startMeanwhile(["wrap", ...words], { cwd, env: { ...this.#env, ...env } });
  }

  /** A client on a front of its own. */
  async connect(words: readonly string[], options: Partial<WireOptions> & { env?: Record<string, string> } = {}) {
    const { env = {}, revision = "2025-11-25", ...wire } = options;
    const front = this.start(words, { env });
    const client = Object.assign(new WireClient(overPipes(front.child), { revision, ...wire }), { front });
    onTestFinished(() => client.close());
    return await client.begin();
  }

  terminal(...words: string[]) {
    return runMeanwhile(words, { cwd: this.cwd, env: this.env });
  }

  /** Whether what a call leaves behind for the next attempt is on record. */
  hasLeft(what: string): boolean {
    const tasks = new Database(path.join(this.home, "tasks.db"), { readonly: true });
    try {
      const left = tasks.prepare("select value from steps").pluck().all() as string[];
      return left.some((text) => text.includes(what));
    } finally {
      tasks.close();
    }
  }

  /** The only daemon there is. */
  get daemon(): number {
    const [daemon, ...others] = recordsOf(this.home);
    if (daemon === undefined || others.length > 0) throw new Error(`not one daemon, but ${others.length + 1}`);
    return daemon.pid;
  }

  /** Ends it, by default as a crash does, and then there is another; one that leaves in good order is missed by nobody. */
  async endDaemon(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const { daemon } = this;
    process.kill(daemon, signal);
    await waitFor(
      () => !isRunning(daemon) && (signal === "SIGTERM" || recordsOf(this.home).some(({ pid }) => pid !== daemon)),
      () => `no daemon came after ${daemon}`,
    );
  }
}
