// What can be known of macOS on Linux: the tests of systems, daemons and tasks, where there is no /proc, every process of ours takes this for
// macOS, and `ps` and `sysctl` print as they do there. Needs root, for a mount namespace of its own; on macOS itself the same tests run as they are.
//   npm run check:macos                       all of it, about six minutes
//   node scripts/check-macos.mjs test/platform  these alone
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const repository = path.resolve(import.meta.dirname, "..");
const fixtures = path.join(repository, "scripts/macos");
const wanted = process.argv.slice(2);
const scenarios = [
  "daemon",
  "daemon-odd",
  "daemon-log",
  "cold-front",
  "orderly-stop",
  "foreign-home",
  "isolated",
  "strangers",
  "leftovers",
];
const files =
  wanted.length > 0
    ? wanted
    : [
        "test/platform",
        "test/system/platform",
        "test/daemon",
        "test/task",
        "test/paths.test.ts",
        ...scenarios.map((name) => `test/scenarios/${name}.test.ts`),
      ];
const vitest = [process.execPath, path.join(repository, "test/node_modules/vitest/vitest.mjs"), "run", ...files];

process.exitCode = process.platform === "darwin" ? run(vitest) : inNamespace();

function inNamespace() {
  const proc = mkdtempSync(path.join(tmpdir(), "meanwhile-proc-"));
  try {
    // The real programs are asked outside, where there is a /proc; everybody in here finds an empty one.
    const script = `
      set -e
      mount --make-rprivate /
      mount --rbind /proc "$PROC_OUTSIDE"
      mount --bind ${fixtures}/ps "$(realpath /bin/ps)"
      mount --bind ${fixtures}/sysctl "$(realpath /usr/sbin/sysctl)"
      mount -t tmpfs none /proc
      exec "$@"`;
    return run(["unshare", "--mount", "sh", "-c", script, "sh", ...vitest], {
      PROC_OUTSIDE: proc,
      PID_OUTSIDE: String(process.pid),
      NODE_OPTIONS: `--import=${path.join(fixtures, "as-darwin.mjs")}`,
    });
  } finally {
    rmSync(proc, { recursive: true, force: true });
  }
}

function run([program, ...words], env = {}) {
  const { status, error } = spawnSync(program, words, {
    cwd: repository,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  if (error) throw error;
  return status ?? 1;
}
