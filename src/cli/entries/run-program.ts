import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { Exit } from "../../errors.ts";
import { armFailpoint } from "../../failpoint.ts";
import { beTyped, thisProgram } from "../../program/program.ts";
import { executable } from "../../project/project.ts";
import { nobodys } from "../../system/child-environment.ts";
import { system } from "../../system/system.ts";
import type { ProcessContext } from "../process-context.ts";
import { main } from "./main.ts";

/** The only file of the CLI that uses the process: runs what was typed, and exits with its code. */
export async function runProgram(argv: readonly string[]): Promise<never> {
  beTyped();
  armFailpoint(process.env[thisProgram.variable("FAILPOINT")], () => process.kill(process.pid, "SIGKILL"));
  let isDone = false;
  // Node exits early when nothing is left to wait for. A promise that never settles must not look like success.
  process.on("beforeExit", () => {
    if (isDone) return;
    process.stderr.write("✗ It ended without a result: it waits for something that will never come.\n");
    process.exit(Exit.CommandFailed);
  });
  const code = await main(processContext(argv));
  isDone = true;
  // A command may have left timers or sockets open. They must not keep the terminal waiting.
  process.exit(code);
}

function processContext(argv: readonly string[]): ProcessContext {
  return {
    argv,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    get cwd() {
      return process.cwd();
    },
    platform: system.platform,
    exit: (code) => process.exit(code),
    kill: (pid) => void process.kill(pid, "SIGKILL"),
    signals: process,
    nodeFile: process.execPath,
    script: process.argv[1],
    nodeVersion: process.versions.node,
    guarded: process,
    startInBackground,
  };
}

function startInBackground(words: readonly string[], logFile: string): void {
  const log = openSync(logFile, "a", 0o600);
  const child = spawn(process.execPath, [executable(), ...words], {
    detached: true,
    windowsHide: true,
    stdio: ["ignore", log, log],
    cwd: process.cwd(),
    env: { ...process.env, ...nobodys },
  });
  child.unref();
  closeSync(log);
}
