import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { CliResult } from "./cli.ts";
import { cleanUp, temporaryFolder } from "./home.ts";
import { waitFor } from "./wait-for.ts";

export { waitFor } from "./wait-for.ts";

/** Compiled code, shared by all starts: an empty home would compile everything anew each time. */
export const codeCache = path.join(tmpdir(), "meanwhile-test-code");
export const executable = path.resolve(import.meta.dirname, "../../bin/meanwhile.cjs");

/** Room for what a start allocates: a fifth less work for each of the many processes that the tests start. */
export const quickStart = "--min-semi-space-size=32";

export interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly home: string;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
}

interface StartOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  /** Of another copy of the package. */
  readonly executable?: string;
}

/** Starts the real executable with an empty home; it is killed after the test if it still runs. */
export function startMeanwhile(words: readonly string[], options: StartOptions = {}): Started {
  const home = options.env?.MEANWHILE_HOME ?? temporaryFolder();
  const child = spawn(process.execPath, [quickStart, options.executable ?? executable, ...words], {
    cwd: options.cwd ?? temporaryFolder(),
    env: { ...process.env, NODE_COMPILE_CACHE: codeCache, MEANWHILE_HOME: home, ...options.env },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin.on("error", () => {});
  const exited = new Promise<number | string>((resolve) =>
    child.on("close", (code, signal) => resolve(code ?? signal ?? -1)),
  );
  cleanUp(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return { child, home, stdout: () => stdout, stderr: () => stderr, exited };
}

/** True in the in-process tier: see no-processes.ts. */
export const processesAreForbidden = () =>
  (globalThis as { processesAreForbidden?: boolean }).processesAreForbidden === true;

type RunOptions = StartOptions & { readonly input?: string };

/** Runs the real executable to its end, in a process of its own. */
export async function runProcess(
  words: readonly string[],
  options: RunOptions = {},
): Promise<Omit<CliResult, "code"> & { readonly code: number | string }> {
  const started = startMeanwhile(words, options);
  started.child.stdin.end(options.input ?? "");
  const code = await started.exited;
  return { code, stdout: started.stdout(), stderr: started.stderr(), home: started.home };
}

/** For helpers of both kinds of tests: `runCli` where no process may be started, else `runProcess`. */
export async function runMeanwhile(words: readonly string[], options: RunOptions = {}): ReturnType<typeof runProcess> {
  if (!processesAreForbidden()) return await runProcess(words, options);
  return await (await import("./cli.ts")).runCli(words, options);
}

/** The address in what `serve --http` prints. */
export const httpAddress = /http:\/\/127\.0\.0\.1:\d+\/mcp/;

/**
 * Starts an HTTP server on a free port that lets strangers in, for tests that serve commands of their own, and waits
 * until it listens.
 */
export async function startHttp(
  words: readonly string[] = [],
  options: StartOptions = {},
): Promise<Started & { url: string; token: () => string }> {
  return await startGuardedHttp(["--allow-anonymous", ...words], options);
}

/** The same as users start it: who comes without the home's token is refused. */
export async function startGuardedHttp(
  words: readonly string[] = [],
  options: StartOptions = {},
): Promise<Started & { url: string; token: () => string }> {
  const started = startMeanwhile(["serve", "--http", "--port", "0", ...words], options);
  const url = await waitFor(
    () => httpAddress.exec(started.stderr())?.[0],
    () => `no URL was printed: ${started.stderr()}`,
  );
  return { ...started, url, token: () => readFileSync(path.join(started.home, "token"), "utf8").trim() };
}

/** Ends a server as a power cut would. */
export async function killNine({ child, exited }: Started): Promise<void> {
  child.kill("SIGKILL");
  await exited;
}
