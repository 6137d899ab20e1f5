// Processes that the bench starts, each ended by its id whatever happens.
import { fork, spawn } from "node:child_process";
import process from "node:process";
import { text } from "node:stream/consumers";

/** No child is given longer; one that hangs fails the run. */
const maxMs = 120_000;
const running = new Set();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/**
 * Kills `child` when the bench ends or `timeoutMs` are over; resolves with its exit code, or the signal that ended it.
 */
export function watchOver(child, timeoutMs = maxMs) {
  running.add(child);
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  const isOver = () => {
    clearTimeout(timer);
    running.delete(child);
  };
  return new Promise((resolve, reject) => {
    child.once("error", (error) => {
      isOver();
      reject(error);
    });
    child.once("exit", (code, signal) => {
      isOver();
      resolve(code ?? signal);
    });
  });
}

/** Runs a program of ours to its end; what it printed, read as JSON. */
export async function runProgram(words) {
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  const [code, printed] = await Promise.all([watchOver(child), text(child.stdout)]);
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}`);
  return JSON.parse(printed);
}

/**
 * Starts `processes` of a looping program, lets all begin at one moment and run for `forMs`, and waits for their ends.
 */
export async function runTogether(file, words, { processes, forMs }) {
  const children = Array.from({ length: processes }, () => {
    const child = fork(file, words, { stdio: ["ignore", 2, 2, "ipc"] });
    return { child, ended: watchOver(child), ready: new Promise((resolve) => child.once("message", resolve)) };
  });
  const early = children.map(({ ended }) =>
    ended.then((code) => Promise.reject(new Error(`${file} ended with ${code} before it began`))),
  );
  for (const { ready } of children) await Promise.race([ready, ...early]);
  for (const promise of early) promise.catch(() => {});
  const until = Date.now() + forMs;
  for (const { child } of children) child.send({ until });
  for (const { ended } of children) {
    const code = await ended;
    if (code !== 0) throw new Error(`${file} ended with ${code}`);
  }
}
