// Waits until its standard input ends, that is until the test run that started it has ended, even by `kill -9`. Then it
// ends the processes that still name the run's folder in their environment or command line, prints one line for each,
// and removes the folder.
//   node clean-up-run.mjs FOLDER
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";

const [folder] = process.argv.slice(2);
/** How long processes may take to end by themselves, such as PostgreSQL, which removes its files. */
const graceMs = 30_000;
const pollMs = 50;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => undefined);
process.stdin.resume();
await new Promise((resolve) => process.stdin.on("close", resolve));

const endsAt = performance.now() + graceMs;
while (processesOfRun().length > 0 && performance.now() < endsAt) await wait(pollMs);
for (const { pid, command } of processesOfRun()) {
  process.stdout.write(`${pid} ${command}\n`);
  kill(pid);
}
// PostgreSQL runs as another user, and its files go when it has ended.
rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });

/** Linux only: elsewhere there is no `/proc`, and nothing is found. */
function processesOfRun() {
  return pids().flatMap((pid) => {
    const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
    const isOfRun = command.includes(folder) || read(`/proc/${pid}/environ`).includes(folder);
    // A process that has ended and waits for its parent has no command line.
    return isOfRun && command !== "" && pid !== process.pid ? [{ pid, command }] : [];
  });
}

function pids() {
  try {
    return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
