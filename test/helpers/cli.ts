import { AsyncLocalStorage } from "node:async_hooks";
import { EventEmitter } from "node:events";
import { appendFileSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough, type Readable, Writable } from "node:stream";
import { format } from "node:util";
import { main } from "../../src/cli/entries/main.ts";
import type { ProcessContext } from "../../src/cli/process-context.ts";
import { forgetModules } from "../../src/command/load.ts";
import type { GuardedProcess } from "../../src/command/process-guard.ts";
import { nobodys } from "../../src/system/child-environment.ts";
import type { StopSignal } from "../../src/system/on-stop.ts";
import { system } from "../../src/system/system.ts";
import { cleanUp, temporaryFolder } from "./home.ts";
import { withEnvironment } from "./own-environment.ts";
import { waitFor } from "./wait-for.ts";
import { overStreams, WireClient, type WireOptions } from "./wire.ts";

/**
 * Runs the CLI in the test's own process. Each run has its own streams, variables, working folder and signals. What
 * commands see as `process.env`, `process.cwd()`, `process.stdout`, `process.stderr`, `process.exit` and `console` is
 * that of their run; outside a run it is the test's.
 */

export interface CliOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The streams are a terminal of this size: stdin and stderr, and stdout where `isDataShown`. */
  readonly screen?: Screen;
  /** Starts a daemon. Default: in a process of its own. */
  readonly launch?: ProcessContext["launch"];
}

interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly isDataShown?: boolean;
}

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly home: string;
}

/** A run of the CLI that a test writes to and sends signals to. */
export interface StartedCli {
  readonly home: string;
  readonly stdin: PassThrough & { isRaw: boolean };
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** A client of `serve --in-process`, before its handshake. */
  client(options: WireOptions): WireClient;
  /** What the terminal shows: stderr, and stdout where `isDataShown`, in the order of writing. */
  readonly drawn: () => string;
  /** From now on nothing can be written to stdout, for this reason. */
  breakStdout(code: "ENOSPC" | "EPIPE"): void;
  /** Resolves with the exit code. Rejects with an error that `main` did not catch. */
  readonly exited: Promise<number>;
  /** Resolves when every run that this one has started in the background has ended. */
  background(): Promise<void>;
  signal(name: StopSignal): void;
  /** Resolves with the first match in stderr. */
  says(pattern: RegExp): Promise<string>;
}

/** Runs the CLI to its end. */
export async function runCli(
  words: readonly string[],
  { input = "", ...options }: CliOptions & { readonly input?: string } = {},
): Promise<CliResult> {
  const started = startCli(words, options);
  started.stdin.end(input);
  const code = await started.exited;
  return { code, stdout: started.stdout(), stderr: started.stderr(), home: started.home };
}

/** Starts a run. When it still runs after the test, it gets a SIGTERM. */
export function startCli(words: readonly string[], options: CliOptions = {}): StartedCli {
  const home = options.env?.MEANWHILE_HOME ?? temporaryFolder();
  const run = new CliRun(words, {
    cwd: options.cwd ?? temporaryFolder(),
    env: { ...process.env, MEANWHILE_HOME: home, ...options.env },
    screen: options.screen,
    launch: options.launch,
  });
  cleanUp(() => run.end());
  const { stdout, stderr, stdin } = run;
  return {
    home,
    stdin,
    stdout: () => stdout.text,
    stderr: () => stderr.text,
    drawn: () => run.drawn,
    breakStdout: (code) => {
      stdout.failure = Object.assign(new Error(`${code}: write`), { code });
    },
    exited: run.exited,
    client: (options) => {
      const close = async () => {
        stdin.end();
        await run.exited;
      };
      return new WireClient(overStreams(stdin, stdout.read(), close), options);
    },
    background: () => run.background(),
    signal: (name) => void run.signals.emit(name),
    says: (pattern) =>
      waitFor(
        () => pattern.exec(stderr.text)?.[0],
        () => `never saw ${pattern} in: ${stderr.text}`,
      ),
  };
}

/** A terminal of the test, with a run in it. */
export interface ScreenHere extends Pick<StartedCli, "home" | "exited"> {
  /** Everything that was drawn so far. */
  readonly drawn: () => string;
  /** Resolves with the first match in what was drawn. */
  readonly sees: (pattern: RegExp) => Promise<string>;
  /** Ctrl-C is a SIGINT where the run does not read single keys, as in a real terminal. */
  readonly press: (keys: string) => void;
  /** What was printed to stdout. */
  readonly data: () => string;
}

export const keys = { ctrlC: "\x03", down: "\x1b[B", enter: "\r", esc: "\x1b" } as const;

/**
 * Types a line into a terminal of 24 rows without colours. Unless `isDataShown`, stdout is no terminal and is not drawn.
 */
export function startScreen(
  words: readonly string[],
  { columns = 80, rows = 24, isDataShown = false, env, ...options }: Omit<CliOptions, "screen"> & Partial<Screen> = {},
): ScreenHere {
  const screen = { columns, rows, isDataShown };
  const run = startCli(words, { ...options, env: { TERM: "xterm-256color", NO_COLOR: "1", ...env }, screen });
  const { home, exited, stdin, stdout: data, drawn } = run;
  return {
    ...{ home, exited, drawn, data },
    sees: (pattern) =>
      waitFor(
        () => pattern.exec(drawn())?.[0],
        () => `never saw ${pattern} in: ${JSON.stringify(drawn())}`,
      ),
    press(typed) {
      if (typed === keys.ctrlC && !stdin.isRaw) run.signal("SIGINT");
      else stdin.write(typed);
    },
  };
}

/** `serve --http` on a free port, which listens when this resolves. */
export async function startHttpHere(
  words: readonly string[] = [],
  options: CliOptions = {},
): Promise<StartedCli & { readonly url: string; readonly token: () => string }> {
  const started = startCli(["serve", "--http", "--port", "0", ...words], options);
  const url = await started.says(/http:\/\/127\.0\.0\.1:\d+\/mcp/);
  return { ...started, url, token: () => readFileSync(path.join(started.home, "token"), "utf8").trim() };
}

interface RunOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly screen?: Screen | undefined;
  readonly logFile?: string | undefined;
  readonly launch?: ProcessContext["launch"] | undefined;
}

/** One run with the process that it sees. */
class CliRun {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly stdin: PassThrough & { isRaw: boolean; isTTY?: boolean };
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  drawn = "";
  readonly signals = new EventEmitter();
  readonly guarded: GuardedProcess;
  readonly exited: Promise<number>;
  readonly #children: CliRun[] = [];

  constructor(argv: readonly string[], { cwd, env, screen, logFile, launch }: RunOptions) {
    this.cwd = cwd;
    this.env = Object.fromEntries(
      Object.entries(env).filter((pair): pair is [string, string] => pair[1] !== undefined),
    );
    this.stdin = createStdin(screen !== undefined);
    const draw = (text: string) => (this.drawn += text);
    const isDataShown = screen?.isDataShown === true;
    this.stdout = new TextStream({ ...(isDataShown && { screen, onText: draw }), logFile });
    this.stderr = new TextStream({ screen, onText: draw, logFile });
    const exit = Promise.withResolvers<number>();
    const end = (code: number) => {
      for (const stream of [this.stdout, this.stderr]) stream.isOver = true;
      exit.resolve(code);
    };
    this.guarded = Object.assign(new EventEmitter(), {
      stdout: this.stdout,
      stderr: this.stderr,
      exit: (code?: number) => {
        end(code ?? 0);
        // Like the real one, it does not return.
        throw new Error(`process.exit(${code}) was called`);
      },
    }) as GuardedProcess;
    const context = { ...this.#context(argv, end), ...(launch !== undefined && { launch }) };
    // What is read and every signal belong to the run, whoever writes or sends it.
    for (const emitter of [this.stdin, this.signals] as const) bindEmitter(emitter, this);
    // Files in temporary folders may have changed since the last run, as a process of its own would see.
    forgetModules([tmpdir()]);
    this.exited = exit.promise;
    runAs(this, () => main(context)).then(end, exit.reject);
  }

  #context(argv: readonly string[], end: (code: number) => void): ProcessContext {
    const { stdin, stdout, stderr, env, cwd, signals, guarded } = this;
    return {
      ...{ argv, stdin, stdout, stderr, env, cwd, signals, guarded },
      platform: system.platform,
      exit: end,
      kill: (pid) => void process.kill(pid, "SIGKILL"),
      nodeFile: process.execPath,
      nodeVersion: process.versions.node,
      startInBackground: (words, logFile) => {
        this.#children.push(new CliRun(words, { cwd, env: { ...env, ...nobodys }, logFile }));
      },
    };
  }

  async background(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.exited));
  }

  /** Ends the run and those that it has started. */
  async end(): Promise<void> {
    this.stdin.end();
    this.signals.emit("SIGTERM");
    await this.exited.catch(() => undefined);
    await Promise.all(this.#children.map((child) => child.end()));
  }
}

/** A stream that keeps what is written, or appends it to a log file. */
class TextStream extends Writable {
  text = "";
  /** The process has ended: nothing more is kept. */
  isOver = false;
  /** Every write fails with this. */
  failure: Error | undefined;
  readonly isTTY: boolean;
  readonly columns?: number;
  readonly rows?: number;
  readonly #file: string | undefined;
  #reader: PassThrough | undefined;
  readonly #onText: ((text: string) => void) | undefined;

  constructor({
    screen,
    onText,
    logFile,
  }: Pick<RunOptions, "screen" | "logFile"> & { onText?: (text: string) => void }) {
    super({ decodeStrings: false });
    this.isTTY = screen !== undefined;
    this.#file = logFile;
    this.#onText = onText;
    if (screen !== undefined) Object.assign(this, { columns: screen.columns, rows: screen.rows });
  }

  override _write(chunk: string | Uint8Array, _encoding: string, done: (error?: Error) => void): void {
    if (this.failure !== undefined) {
      done(this.failure);
      return;
    }
    const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
    if (!this.isOver) {
      if (this.#file !== undefined) appendFileSync(this.#file, text, { mode: 0o600 });
      else this.text += text;
      this.#onText?.(text);
    }
    this.#reader?.write(text);
    done();
  }

  /** What is written from now on. */
  read(): Readable {
    this.#reader ??= new PassThrough();
    return this.#reader;
  }
}

function bindEmitter(emitter: EventEmitter, run: CliRun): void {
  const emit = emitter.emit.bind(emitter);
  emitter.emit = (...parts: Parameters<typeof emit>) => runAs(run, () => emit(...parts));
}

function createStdin(isTTY: boolean): PassThrough & { isRaw: boolean; isTTY?: boolean } {
  const stdin = Object.assign(new PassThrough(), { isRaw: false, isTTY });
  return Object.assign(stdin, {
    setRawMode(isRaw: boolean) {
      stdin.isRaw = isRaw;
      return stdin;
    },
  });
}

/** The run that the current code belongs to. */
const currentCli = new AsyncLocalStorage<CliRun>();
const runAs = <T>(run: CliRun, work: () => T): T => currentCli.run(run, () => withEnvironment(run.env, work));

const real = {
  cwd: process.cwd.bind(process),
  exit: process.exit.bind(process),
  stdout: process.stdout.write.bind(process.stdout),
  stderr: process.stderr.write.bind(process.stderr),
};
process.cwd = () => currentCli.getStore()?.cwd ?? real.cwd();
process.exit = ((code?: number) => (currentCli.getStore()?.guarded.exit ?? real.exit)(code)) as typeof process.exit;
// What escapes from a run goes to the guards of that run: Vitest would count it as an error of its own.
const emit = process.emit.bind(process) as (event: string, ...parts: unknown[]) => boolean;
process.emit = ((event: string, ...parts: unknown[]) => {
  const isEscape = event === "uncaughtException" || event === "unhandledRejection";
  const guarded = isEscape ? (currentCli.getStore()?.guarded as EventEmitter | undefined) : undefined;
  return (guarded?.listenerCount(event) ?? 0) > 0 ? guarded?.emit(event, ...parts) : emit(event, ...parts);
}) as typeof process.emit;
for (const name of ["stdout", "stderr"] as const)
  process[name].write = ((...parts: Parameters<Writable["write"]>): boolean => {
    const run = currentCli.getStore();
    return (run === undefined ? real[name] : run[name].write.bind(run[name]))(...(parts as unknown as [string]));
  }) as typeof process.stdout.write;
for (const method of ["log", "info", "debug", "dir", "error", "warn", "trace"] as const) {
  const original = console[method].bind(console);
  const stream = method === "error" || method === "warn" || method === "trace" ? "stderr" : "stdout";
  console[method] = (...parts: [unknown]) => {
    const run = currentCli.getStore();
    if (run === undefined) original(...parts);
    else run[stream].write(`${format(...parts)}\n`);
  };
}
