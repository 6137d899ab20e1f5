import { hasDescriptorsLeft, isTaken, posix } from "./posix.ts";
import { type Programs, rememberStarts, systemPrograms } from "./programs.ts";
import type { RunningProcess, System } from "./system.ts";

// By their paths: a host with a window starts its servers with a PATH of its own.
const ps = "/bin/ps";
const sysctl = "/usr/sbin/sysctl";

/** macOS, by `ps` and `sysctl`. */
export function createDarwin(programs: Programs = systemPrograms): System {
  const startOf = (pid: number) => programs.ask(ps, ["-o", "lstart=", "-p", String(pid)]).trim() || undefined;
  // These do not change while we run.
  let ownStart: string | undefined;
  let boot: string | undefined;
  let most: number | undefined;
  return {
    ...posix,
    platform: "darwin",
    isAlive: (pid) => isTaken(pid) && !programs.ask(ps, ["-o", "stat=", "-p", String(pid)]).startsWith("Z"),
    ownStart: () => (ownStart ??= startOf(process.pid)),
    beganAt: rememberStarts((pid, start) => {
      const began = startOf(pid);
      return began === undefined ? undefined : began === start;
    }),
    bootId: () => (boot ??= programs.ask(sysctl, ["-n", "kern.bootsessionuuid"]).trim() || "-"),
    pidNamespace: () => "-",
    processes: () => programs.ask(ps, ["-axo", "pid=,ppid=,pgid=,stat=,lstart="]).split("\n").flatMap(readProcess),
    markedOf(pids, mark) {
      if (pids.length === 0) return [];
      // Behind its words stands its environment, where the system shows that: it hides that of its own programs.
      const lines = programs.ask(ps, ["-Eww", "-o", "pid=,command=", "-p", pids.join(",")]).split("\n");
      return lines.filter((line) => `${line} `.includes(` ${mark} `)).map((line) => Number.parseInt(line, 10));
    },
    async memoryOf(pid) {
      const kilobytes = Number.parseInt(await programs.askLater(ps, ["-o", "rss=", "-p", String(pid)]), 10);
      return Number.isNaN(kilobytes) ? undefined : kilobytes * 1024;
    },
    memoryCheckMs: 500,
    hasDescriptorsLeft: () => {
      // What a shell is allowed is what we are.
      most ??= readLimit(programs.ask("/bin/sh", ["-c", `ulimit -n; ${sysctl} -n kern.maxfilesperproc`]));
      return hasDescriptorsLeft("/dev/fd", () => most ?? Number.POSITIVE_INFINITY);
    },
  };
}

function readProcess(line: string): RunningProcess[] {
  const [, pid, parent, group, state = "", start = ""] = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.+)$/.exec(line) ?? [];
  if (pid === undefined || state.startsWith("Z")) return [];
  return [{ pid: Number(pid), parent: Number(parent), group: Number(group), startedAt: Date.parse(`${start} UTC`) }];
}

/** The least of those that are numbers: `ulimit` may say unlimited. */
function readLimit(text: string): number | undefined {
  const numbers = text.split("\n").map((line) => Number.parseInt(line, 10));
  const limits = numbers.filter((number) => !Number.isNaN(number));
  return limits.length === 0 ? undefined : Math.min(...limits);
}
