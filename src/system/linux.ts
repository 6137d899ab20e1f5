import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hasDescriptorsLeft, isTaken, posix } from "./posix.ts";
import type { RunningProcess, System } from "./system.ts";

/** Linux, by /proc. Where that is not mounted, and on its kin, it tells less and nothing fails. */
export function createLinux(): System {
  return {
    ...posix,
    platform: "linux",
    isAlive: (pid) => isTaken(pid) && !isZombie(pid),
    ownStart: () => startOf(process.pid),
    beganAt(pid, start) {
      const began = startOf(pid);
      return began === undefined ? undefined : began === start;
    },
    bootId: () => readOr("/proc/sys/kernel/random/boot_id", "-").trim(),
    pidNamespace() {
      try {
        return readlinkSync("/proc/self/ns/pid");
      } catch {
        return "-";
      }
    },
    processes: () => pids().flatMap(processOf),
    markedOf: (among, mark) => among.filter((pid) => `\0${readOr(`/proc/${pid}/environ`, "")}`.includes(`\0${mark}\0`)),
    async memoryOf(pid) {
      const kilobytes = /^VmRSS:\s*(\d+) kB/m.exec(readOr(`/proc/${pid}/status`, ""))?.[1];
      return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
    },
    memoryCheckMs: 100,
    hasDescriptorsLeft: () =>
      hasDescriptorsLeft("/proc/self/fd", () =>
        Number(
          /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1] ?? Number.POSITIVE_INFINITY,
        ),
      ),
  };
}

/** It has ended, and whoever started it has not asked about it: a front that is suspended never does. */
function isZombie(pid: number): boolean {
  try {
    // Its first thread is one as soon as it is told to end; what it has open is closed by the last.
    return fieldsOf(pid)[0] === "Z" && readdirSync(`/proc/${pid}/task`).length === 1;
  } catch {
    return false;
  }
}

/** When a process began, in the kernel's ticks since the machine's start. */
const startOf = (pid: number) => fieldsOf(pid)[19];

function pids(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function processOf(pid: number): RunningProcess[] {
  const fields = fieldsOf(pid);
  const [state = "Z", parent, group] = fields;
  return state === "Z" ? [] : [{ pid, parent: Number(parent), group: Number(group), startedAt: Number(fields[19]) }];
}

/** What the kernel says of a process, from its state on; nothing of one that is gone. */
function fieldsOf(pid: number): (string | undefined)[] {
  const stat = readOr(`/proc/${pid}/stat`, "");
  return stat === "" ? [] : stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return otherwise;
  }
}
