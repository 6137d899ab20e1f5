import type { SpawnOptions } from "node:child_process";
import { EventEmitter } from "node:events";
import path from "node:path";
import { PassThrough, Writable } from "node:stream";
import { cleanUp } from "./home.ts";

/**
 * Programs that the code under test starts as child processes, run in the test's process. `spawn` and `fork` start them
 * by the path of their script; any other start throws (no-processes.ts). Each run has its own streams, arguments,
 * variables and process ID. The ID is no process: `process.kill` knows it, the system does not.
 */

export interface ProgramContext {
  readonly pid: number;
  /** What follows the script. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: PassThrough;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Emits `SIGTERM` and `SIGINT`. Without a listener they end the run. */
  readonly signals: EventEmitter;
  /** Aborted when the run has ended. The program then stops whatever it still does. */
  readonly ended: AbortSignal;
  readonly exit: (code: number) => void;
  /** To the parent, of a program that was forked. */
  readonly send: (message: unknown) => void;
  readonly onMessage: (listener: (message: unknown) => void) => void;
}

export type Program = (context: ProgramContext) => unknown;

const programs = new Map<string, Program>();
const running = new Map<number, ChildHere>();
/** What a pipe holds before a write waits. */
const pipeBytes = 64 * 1024;
/** Higher than any process ID of Linux, macOS or Windows that a test meets. */
const firstPid = 1_500_000_000;
let nextPid = firstPid;
let nextScript = 0;

/** Runs this program for every start of `node <script>` from now on. Returns the command line. */
export function programAt(script: string, program: Program): [node: string, script: string] {
  const file = path.resolve(script);
  programs.set(file, program);
  return [process.execPath, file];
}

/** A program of one test. After the test its runs are ended. */
export function ownProgram(program: Program): [node: string, script: string] {
  const [node, script] = programAt(`/no/such/folder/${nextScript++}.mjs`, program);
  cleanUp(() => {
    programs.delete(script);
    for (const run of running.values()) if (run.program === program) run.kill("SIGKILL");
  });
  return [node, script];
}

/** True for a run that has not ended. */
export const isRunningHere = (pid: number) => running.has(pid);

/** A run, as its parent sees it. */
class ChildHere extends EventEmitter {
  readonly program: Program;
  readonly pid = nextPid++;
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly signals = new EventEmitter();
  readonly #ended = new AbortController();
  readonly #messages = new EventEmitter();
  readonly #outputs: Writable[] = [];
  exitCode: number | null = null;
  signalCode: string | null = null;
  connected = true;

  constructor(program: Program, argv: readonly string[], { env = process.env, cwd = process.cwd() }: SpawnOptions) {
    super();
    this.program = program;
    running.set(this.pid, this);
    this.stdin.on("error", () => undefined);
    const context: ProgramContext = {
      ...{
        pid: this.pid,
        argv,
        env,
        cwd: String(cwd),
        stdin: this.stdin,
        signals: this.signals,
        ended: this.#ended.signal,
      },
      stdout: this.#output(this.stdout),
      stderr: this.#output(this.stderr),
      exit: (code) => this.end(code),
      send: (message) => void setImmediate(() => this.emit("message", structuredClone(message))),
      onMessage: (listener) => void this.#messages.on("message", listener),
    };
    setImmediate(() => {
      this.emit("spawn");
      if (!this.#ended.signal.aborted) void this.#run(program, context);
    });
  }

  send(message: unknown, onSent?: (error: Error | null) => void): boolean {
    setImmediate(() => {
      onSent?.(null);
      this.#messages.emit("message", structuredClone(message));
    });
    return true;
  }

  kill(signal: NodeJS.Signals | 0 = "SIGTERM"): boolean {
    if (this.#ended.signal.aborted) return false;
    if (signal === 0) return true;
    if (signal === "SIGKILL" || !this.signals.emit(signal)) this.end(null, signal);
    return true;
  }

  end(code: number | null, signal: string | null = null): void {
    if (this.#ended.signal.aborted) return;
    running.delete(this.pid);
    this.exitCode = code;
    this.signalCode = signal;
    this.connected = false;
    this.#ended.abort();
    for (const output of this.#outputs) output.destroy();
    this.stdin.destroy();
    this.stdout.end();
    this.stderr.end();
    setImmediate(() => {
      this.emit("exit", code, signal);
      setImmediate(() => this.emit("close", code, signal));
    });
  }

  async #run(program: Program, context: ProgramContext): Promise<void> {
    try {
      await program(context);
    } catch (error) {
      this.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      this.end(1);
    }
  }

  /** What the program writes. It is dropped after its end. */
  #output(stream: PassThrough): Writable {
    const output = new Writable({
      decodeStrings: false,
      write: (chunk, _encoding, done) => {
        if (stream.destroyed) return done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
        // A program that writes without end leaves its parent turns of the event loop, as a pipe does.
        const isTaken = stream.write(chunk);
        if (!isTaken) stream.once("drain", () => setImmediate(done));
        else if (chunk.length < pipeBytes) done();
        else setImmediate(done);
      },
    });
    // A program that does not expect it ends.
    output.on("error", () => output.listenerCount("error") === 1 && this.end(1));
    this.#outputs.push(output);
    return output;
  }

  ref(): void {}
  unref(): void {}
  disconnect(): void {}
}

/** Of `node [--flags] <script> …`, the script and what follows. */
function scriptOf([command, args]: readonly unknown[]): readonly string[] {
  if (command !== process.execPath || !Array.isArray(args)) return [];
  return args.slice(args.findIndex((word: string) => !word.startsWith("-")));
}

function wordsOf(name: string, words: readonly unknown[]): readonly string[] {
  if (name === "spawn") return scriptOf(words);
  return name === "fork" ? [String(words[0]), ...(words[1] as readonly string[])] : [];
}

/** Asked by no-processes.ts, which is evaluated again for each test file, when this file is not. */
export type StartProgram = (name: string, words: readonly unknown[]) => unknown;

const startProgram: StartProgram = (name, words) => {
  const [script = "", ...argv] = wordsOf(name, words);
  const program = programs.get(path.resolve(script));
  const options = (words[2] ?? {}) as SpawnOptions;
  return program === undefined ? undefined : new ChildHere(program, argv, options);
};
Object.assign(globalThis, { startProgram });

const kill = process.kill.bind(process);
process.kill = (pid: number, signal?: NodeJS.Signals | 0): true => {
  if (Math.abs(pid) < firstPid) return kill(pid, signal);
  if (running.get(Math.abs(pid))?.kill(signal) !== true)
    throw Object.assign(new Error("kill ESRCH"), { code: "ESRCH", errno: -3, syscall: "kill" });
  return true;
};
