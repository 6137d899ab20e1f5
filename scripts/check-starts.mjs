// Counts the Node processes that a whole run of the tests starts: `npm run check:starts`. Needs strace.
//   npm run check:starts -- --tier system     the same for one tier, or for files
// The log of strace stays outside of the run's folder, because the run removes that.
import { spawnSync } from "node:child_process";
import { createReadStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

const root = path.resolve(import.meta.dirname, "..");
const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-starts-"));
const log = path.join(folder, "execve.log");
try {
  const tests = [process.execPath, path.join(root, "scripts/test.mjs"), ...process.argv.slice(2)];
  const { status, error } = spawnSync("strace", ["-f", "-qq", "-e", "trace=execve", "-o", log, ...tests], {
    stdio: "inherit",
    cwd: root,
    env: { ...process.env, CI: "true" },
  });
  if (error) throw new Error(`strace could not be started: ${error.message}`);
  const { node, all } = await count();
  process.stdout.write(`${node} Node processes were started, ${all} processes in all\n`);
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Only starts that succeeded: a program is looked for in each folder of PATH. A start during which another process made
 * one has two lines, "execve(… <unfinished ...>" and "<... execve resumed>) = 0", both with its process ID.
 */
async function count() {
  let node = 0;
  let all = 0;
  const unfinished = new Map();
  for await (const line of createInterface({ input: createReadStream(log) })) {
    const [, pid, named] = /^(\d+) +(?:execve\("([^"]+)"|<\.\.\. execve resumed>)/.exec(line) ?? [];
    const program = named ?? unfinished.get(pid);
    if (line.endsWith("<unfinished ...>")) unfinished.set(pid, program);
    if (program === undefined || !/ = 0$/.test(line)) continue;
    all += 1;
    if (path.basename(program) === "node") node += 1;
  }
  return { node, all };
}
