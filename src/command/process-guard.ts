import childProcess, { ChildProcess, type StdioOptions } from "node:child_process";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import type { Writable } from "node:stream";
import type { Harm } from "./guard-builtins.ts";
import { PrintLimit, type PrintOptions } from "./print-limit.ts";
import type { Run } from "./running.ts";

/**
 * Commands run in our own process, and it must outlive them. Two things are kept from their reach:
 * stdout, which belongs to the protocol or to data, and the end of the process. And what they print has a limit.
 */

type Write = (chunk: string | Uint8Array, callback?: (error?: Error | null) => void) => boolean;

/** The parts of `process` that the guards change. A test gives each run of the CLI its own. */
export interface GuardedProcess {
  readonly stdout: Writable;
  readonly stderr: Writable;
  exit: NodeJS.Process["exit"];
  exitCode?: NodeJS.Process["exitCode"];
  on(event: string, listener: (value: unknown) => void): unknown;
}

/**
 * Takes stdout for ourselves: the returned function writes to it, and everything else that would (console.log,
 * process.stdout.write, writes to file descriptor 1, children that inherit it) goes to stderr instead. File descriptors
 * and children belong to the whole process, so they are redirected only when `guarded` is the process itself.
 */
export function takeStdout(guarded: GuardedProcess): { stream: Writable; write: Write } {
  const { stdout, stderr } = guarded;
  const write: Write = stdout.write.bind(stdout) as Write;
  stdout.write = stderr.write.bind(stderr);
  if (guarded === process) {
    redirectFileWrites();
    redirectChildren(stdout);
    syncBuiltinESMExports();
  }
  return { stream: stdout, write };
}

/**
 * Holds what commands print on stdout and stderr, which are one and the same in a server, to their limit. Gives back
 * what writes without it.
 */
export function limitPrints(
  guarded: GuardedProcess,
  options: Omit<PrintOptions, "onLeftOut"> & { readonly onLeftOut?: (sentence: string) => void },
): (text: string) => void {
  const { stdout, stderr } = guarded;
  const unlimited = stderr.write.bind(stderr);
  const limit = new PrintLimit({
    ...options,
    onLeftOut: options.onLeftOut ?? ((sentence) => unlimited(`${sentence}\n`)),
  });
  const write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    if (limit.admit(chunk)) return (unlimited as (...all: unknown[]) => boolean)(chunk, ...rest);
    const done = rest.find((part) => typeof part === "function") as (() => void) | undefined;
    if (done !== undefined) process.nextTick(done);
    return true;
  };
  stderr.write = write as typeof stderr.write;
  stdout.write = write as typeof stdout.write;
  return (text) => void unlimited(text);
}

function redirectFileWrites(): void {
  for (const name of [
    "write",
    "writeSync",
    "writev",
    "writevSync",
    "writeFile",
    "writeFileSync",
    "appendFile",
    "appendFileSync",
  ] as const) {
    const original = fs[name] as (fd: number, ...rest: unknown[]) => unknown;
    Object.assign(fs, { [name]: (fd: number, ...rest: unknown[]) => original.call(fs, fd === 1 ? 2 : fd, ...rest) });
  }
}

function redirectChildren(stdout: Writable): void {
  const away = (stdio: StdioOptions | undefined): StdioOptions | undefined => {
    if (stdio === "inherit") return ["inherit", 2, "inherit"];
    if (!Array.isArray(stdio)) return stdio;
    return stdio.map((target, fd) =>
      (target === "inherit" && fd === 1) || target === 1 || target === stdout ? 2 : target,
    ) as StdioOptions;
  };
  const prototype = ChildProcess.prototype as unknown as { spawn: (options: { stdio?: StdioOptions }) => unknown };
  const spawn = prototype.spawn;
  prototype.spawn = function (options) {
    return spawn.call(this, { ...options, stdio: away(options.stdio) } as { stdio?: StdioOptions });
  };
  for (const name of ["spawnSync", "execFileSync", "execSync"] as const) {
    const original = childProcess[name] as (...parts: unknown[]) => unknown;
    const guarded = (...parts: unknown[]) => {
      const last = parts.at(-1);
      const isOptions = typeof last === "object" && last !== null && !Array.isArray(last);
      if (!isOptions) return original.apply(childProcess, parts);
      return original.apply(childProcess, [
        ...parts.slice(0, -1),
        { ...last, stdio: away((last as { stdio?: StdioOptions }).stdio) },
      ]);
    };
    Object.assign(childProcess, { [name]: guarded });
  }
}

/**
 * Keeps a command from ending the process: what escapes from it fails its own run only, and process.exit() is refused.
 * What escapes from our own code is handed to `onBug`.
 */
export function surviveCommands(
  guarded: GuardedProcess,
  options: { currentRun: () => Run | undefined; onBug: (error: unknown) => void },
): void {
  const onEscape = (error: unknown) => {
    const run = options.currentRun();
    if (run === undefined) options.onBug(error);
    else run.fail(error);
  };
  guarded.on("unhandledRejection", onEscape);
  guarded.on("uncaughtException", onEscape);
  const exit = guarded.exit.bind(guarded);
  guarded.exit = ((...code: [number?]) => {
    const run = options.currentRun();
    if (run === undefined) return exit(...code);
    const refusal = new Error(
      `${run.name} called process.exit(${code.join()}), which would end the whole server; throw an error instead.`,
    );
    run.fail(refusal);
    throw refusal;
  }) as typeof guarded.exit;
}

/** What the log says of a command that has changed built-ins, and of what comes of it. */
export function describeHarm(
  { names, changes }: Harm,
  then: string,
  fileOf: (name: string) => string | undefined,
): string {
  const who =
    names.map((name) => `${name} (${fileOf(name) ?? "its file is gone"})`).join(" or ") ||
    "something that no command waits for";
  const cure = 'isolation: "process" keeps such a command apart';
  return `${who} changed what every command shares: ${changes.join(", ")}; that was undone, and ${then}; ${cure}`;
}
