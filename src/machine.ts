import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { createId } from "./ids.ts";

/**
 * Names a worker process so that another process on the same machine can tell for certain whether it still lives:
 * machine, boot, process id, when that process began, because ids are given out again, and the namespace the id belongs to,
 * because containers share machine and boot but cannot see each other's processes.
 */
interface WorkerName {
  readonly host: string;
  readonly boot: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly namespace: string;
}

/** A fresh name for a worker in this process. */
export function createWorkerName(): string {
  return [hostname(), bootId(), process.pid, startOf(process.pid) ?? "-", pidNamespace(), createId().slice(0, 8)].join("|");
}

/** True only when the worker ran on this machine and its process is gone; false whenever that cannot be known. */
export function isKnownDead(worker: string): boolean {
  const name = parse(worker);
  if (name === undefined || name.host !== hostname()) return false;
  if (name.boot !== bootId()) return true;
  if (name.namespace !== pidNamespace()) return false;
  if (!isAlive(name.pid)) return true;
  const startedAt = startOf(name.pid);
  return startedAt !== undefined && name.startedAt !== "-" && startedAt !== name.startedAt;
}

/** Kills a process and all it has started, when it leads a group; does nothing when they are gone, or not ours any more. */
export function killGroup(pid: number): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, "SIGKILL");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ESRCH" && code !== "EPERM") throw error;
    }
  }
}

function parse(worker: string): WorkerName | undefined {
  const [host, boot, pid, startedAt, namespace] = worker.split("|");
  if (host === undefined || boot === undefined || startedAt === undefined || namespace === undefined || !Number.isInteger(Number(pid))) return undefined;
  return { host, boot, pid: Number(pid), startedAt, namespace };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function bootId(): string {
  return readOr("/proc/sys/kernel/random/boot_id", "-").trim();
}

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "-";
  }
}

/** When a process began, in the kernel's ticks; undefined where the system does not tell. A zombie has ended. */
function startOf(pid: number): string | undefined {
  const stat = readOr(`/proc/${pid}/stat`, "");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" ? "zombie" : fields[19];
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return otherwise;
  }
}
