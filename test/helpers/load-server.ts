import { spawn } from "node:child_process";
import path from "node:path";
import { killDaemons, recordsOf } from "./daemon.ts";
import { cleanUp, temporaryFolder } from "./home.ts";
import { LoadClient } from "./load.ts";
import { codeCache, executable, waitFor } from "./meanwhile.ts";

export const commands = ["--no-bundled", "--commands", path.resolve(import.meta.dirname, "../fixtures/load/commands")];

/**
 * A server on pipes as a host starts it, without the room that other tests give a start: memory is what is measured
 * here.
 */
function start(
  words: readonly string[],
  { home = temporaryFolder(), heapMb }: { home?: string; heapMb?: number } = {},
) {
  const heap = heapMb === undefined ? {} : { NODE_OPTIONS: `--max-old-space-size=${heapMb}` };
  // On a slow machine a result may wait longer for its turn than a host waits: it would be a handle then.
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: codeCache,
    MEANWHILE_HOME: home,
    MEANWHILE_AUTO_TASK: "0",
    ...heap,
  };
  const child = spawn(process.execPath, [executable, "serve", ...words, ...commands], { cwd: temporaryFolder(), env });
  child.stderr.resume();
  child.stdin.on("error", () => undefined);
  cleanUp(() => killDaemons(home));
  cleanUp(async () => {
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.stdout.resume();
    if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await ended;
  });
  return { child, home, client: new LoadClient(child.stdin, child.stdout) };
}

export async function startWithDaemon(options: { home?: string; heapMb?: number } = {}) {
  const started = start([], options);
  await started.client.begin();
  const { pid } = await waitFor(() => recordsOf(started.home)[0]);
  return { ...started, pids: [pid, started.child.pid ?? 0] };
}

export async function startInProcess() {
  const started = start(["--in-process"]);
  await started.client.begin();
  return { ...started, pids: [started.child.pid ?? 0] };
}
