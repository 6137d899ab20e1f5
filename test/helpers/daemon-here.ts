import { AsyncLocalStorage } from "node:async_hooks";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { expect } from "vitest";
import { forgetModules } from "../../src/command/load.ts";
import { Daemon, takeStart, toReport } from "../../src/daemon/daemon.ts";
import { addressOf, type ProxyContext, proxyStdio, readFrontWords } from "../../src/daemon/front.ts";
import type { DaemonAddress, Launched } from "../../src/daemon/reach/start.ts";
import { type DaemonRecord, readRecords } from "../../src/daemon/record.ts";
import { messageOf } from "../../src/errors.ts";
import { homeAt } from "../../src/paths.ts";
import type { ProjectFlags } from "../../src/project/project.ts";
import type { RuntimeParts } from "../../src/runtime/runtime.ts";
import { type CliResult, runCli, type StartedCli, startCli } from "./cli.ts";
import { ownCommands } from "./daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "./home.ts";
import { withEnvironment } from "./own-environment.ts";
import type { Pipes } from "./server.ts";
import { waitFor } from "./wait-for.ts";
import { overStreams, WireClient, type WireOptions } from "./wire.ts";

/** Higher than any process ID of Linux, macOS or Windows that a test meets: no process has it. */
let nextPid = 1_000_000_000;

export interface DaemonHomeOptions {
  /** The project's `meanwhile.config.json`. */
  readonly config?: object;
  readonly env?: Readonly<Record<string, string>>;
  /** For every daemon of this home. */
  readonly parts?: RuntimeParts;
  /** Default: a new folder, which is made with the first daemon. */
  readonly home?: string;
  /** Default: a new project. */
  readonly cwd?: string;
}

export interface ProxyOptions extends Partial<WireOptions> {
  /** Words after `serve`, or `wrap` and its words. Default: the commands in test/fixtures, without the bundled ones. */
  readonly words?: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The folder in which the host has started the proxy. Default: `cwd`, which `-C` may change. */
  readonly startedIn?: string;
}

/** A stdio proxy in the test's process. */
export interface ProxyHere extends Pipes {
  readonly stdin: PassThrough;
  readonly stdout: PassThrough;
  readonly stderr: () => string;
  /** Resolves with the exit code. */
  readonly exited: Promise<number>;
}

/**
 * A home whose daemons and stdio proxies run in the test's process. A proxy starts the daemon where none runs, as
 * `meanwhile serve` does. Each daemon has a `pid` of its own, which is no process. After the test all daemons are
 * killed.
 */
export class DaemonHomeHere {
  readonly cwd: string;
  readonly home: string;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #parts: RuntimeParts;
  readonly #running = new Set<Daemon>();
  readonly #starting = new Set<Promise<unknown>>();
  readonly #outside = AsyncLocalStorage.snapshot();

  constructor({ config, env = {}, parts = {}, home, cwd }: DaemonHomeOptions = {}) {
    const folder = temporaryFolder();
    const files = config === undefined ? { "a file": "" } : { "meanwhile.config.json": JSON.stringify(config) };
    this.cwd = cwd ?? writeFiles(path.join(folder, "project"), files);
    this.home = home ?? path.join(folder, "home");
    this.#env = { ...process.env, MEANWHILE_HOME: this.home, ...env };
    this.#parts = parts;
    cleanUp(() => this.killAll());
  }

  /** Every daemon that was started here and has not ended, oldest first. */
  get daemons(): readonly Daemon[] {
    return [...this.#running];
  }

  /** The only daemon. */
  get daemon(): Daemon {
    expect(this.daemons, "daemons of this home").toHaveLength(1);
    return this.daemons[0] as Daemon;
  }

  /** A connected stdio proxy, as a host starts it. */
  openProxy({ words = ownCommands, cwd, env, startedIn }: Omit<ProxyOptions, keyof WireOptions> = {}): ProxyHere {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    let stderr = "";
    const context: ProxyContext = {
      ...this.place({ ...(cwd !== undefined && { cwd }), ...(env !== undefined && { env }) }),
      stdin,
      stdout,
      stderr: { write: (text) => (stderr += text) },
      startedIn,
    };
    const exited = proxyStdio(this.#flags(words, context), context);
    const left = exited.then(() => void stdout.end());
    const close = async () => {
      stdin.end();
      await left;
    };
    cleanUp(close);
    return { stdin, stdout, close, stderr: () => stderr, exited };
  }

  /** A client on a stdio proxy of its own, after its handshake. */
  async connect(options: ProxyOptions = {}): Promise<WireClient & { readonly proxy: ProxyHere }> {
    const proxy = this.openProxy(options);
    const { revision = "2025-11-25", name, capabilities } = options;
    const wire = { revision, ...(name !== undefined && { name }), ...(capabilities !== undefined && { capabilities }) };
    const client = Object.assign(new WireClient(overStreams(proxy.stdin, proxy.stdout, proxy.close), wire), { proxy });
    cleanUp(() => client.close());
    return await client.begin();
  }

  /** Starts a daemon for these words without a proxy; undefined when one is there, or another one is wanted. */
  async start(words: readonly string[] = ownCommands, place: Pick<ProxyOptions, "cwd" | "env"> = {}) {
    const context = this.place(place);
    const flags = this.#flags(words, context);
    const before = new Set(this.daemons);
    const said = await this.#launch(flags, await addressOf(flags, { place: context })).said;
    return { said, daemon: this.daemons.find((daemon) => !before.has(daemon)) };
  }

  /** Where the daemons of this home are looked for, and started in the test's process. */
  place({ cwd = this.cwd, env = {} }: Pick<ProxyOptions, "cwd" | "env"> = {}) {
    return {
      cwd,
      env: { ...this.#env, ...env },
      // What starts a daemon is not what the daemon belongs to.
      launch: (flags: ProjectFlags, address: DaemonAddress) => this.#outside(() => this.#launch(flags, address)),
    };
  }

  /** Runs `meanwhile` here with these words to its end. The daemons that it starts run in the test's process. */
  async run(words: readonly string[], place: Pick<ProxyOptions, "cwd" | "env"> = {}): Promise<CliResult> {
    return await runCli(words, this.place(place));
  }

  /** Starts the same. */
  startCli(words: readonly string[], place: Pick<ProxyOptions, "cwd" | "env"> = {}): StartedCli {
    return startCli(words, this.place(place));
  }

  /** The same with the commands in test/fixtures. */
  async terminal(...words: string[]): Promise<CliResult> {
    return await this.run([...ownCommands, ...words]);
  }

  /** The records of the daemons that take work. */
  records(): readonly DaemonRecord[] {
    const records = [...readRecords(homeAt({ MEANWHILE_HOME: this.home })).values()];
    return records.filter(({ isDraining }) => isDraining !== true);
  }

  /** Resolves with another daemon than `before`, as soon as it can be reached. */
  async nextDaemon(before: Daemon): Promise<Daemon> {
    return await waitFor(
      () =>
        this.daemons.find(
          (daemon) => daemon.pid !== before.pid && this.records().some(({ pid }) => pid === daemon.pid),
        ),
      () => `no daemon came after ${before.pid}`,
    );
  }

  /** Ends every daemon as a crash does. */
  async killAll(): Promise<void> {
    while (this.#starting.size > 0) await Promise.all(this.#starting);
    await Promise.all(this.daemons.map((daemon) => daemon.kill()));
  }

  log(): string {
    return readFileSync(path.join(this.home, "daemon.log"), "utf8");
  }

  #flags(words: readonly string[], context: Pick<ProxyContext, "cwd" | "env">): ProjectFlags {
    const typed = words[0] === "wrap" ? words : ["serve", ...words];
    const flags = readFrontWords(typed, context);
    if (flags === undefined) throw new Error(`A stdio proxy is not started by: ${typed.join(" ")}`);
    return flags;
  }

  #launch(flags: ProjectFlags, { home, env: given, cwd }: DaemonAddress): Launched {
    const env = { ...given };
    const host = {
      pid: nextPid++,
      cwd,
      env,
      writeLog: (text: string) => {
        // The folder of a test that has ended is gone.
        if (existsSync(home.folder)) appendFileSync(home.daemonLog, text, { mode: 0o600 });
      },
    };
    // Files in temporary folders may have changed since the last daemon, as a process of its own would see.
    forgetModules([tmpdir()]);
    const parts = { isKillable: true, startsChildren: false, ...this.#parts };
    const said = withEnvironment(env, () => Daemon.start({ ...takeStart(flags, env), host, parts })).then(
      (started) => {
        if (started.kind === "ready") this.#keep(started.daemon);
        return toReport(started);
      },
      (error: unknown) => `failed ${messageOf(error)}`,
    );
    this.#starting.add(said);
    void said.then(() => this.#starting.delete(said));
    return { said, close: () => {}, kill: () => {} };
  }

  #keep(daemon: Daemon): void {
    this.#running.add(daemon);
    void daemon.ended.finally(() => this.#running.delete(daemon));
  }
}
