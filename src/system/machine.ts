import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { createId } from "../ids.ts";

/**
 * Names a worker process so that another process on the same machine can tell for certain whether it still lives:
 * machine, boot, process id, when that process began, because ids are given out again, and the namespace the id belongs
 * to, because containers share machine and boot but cannot see each other's processes.
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
  return [hostname(), bootId(), process.pid, startOf(process.pid) ?? "-", pidNamespace(), createId().slice(0, 8)].join(
    "|",
  );
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

/** Descriptors that are kept for files of the work itself: its database, its log, what commands open. */
const keptDescriptors = 16;

/** False when connections have taken nearly all file descriptors of this process; true where that cannot be known. */
export function hasDescriptorsLeft(): boolean {
  try {
    const most = Number(
      /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1] ?? Number.POSITIVE_INFINITY,
    );
    return readdirSync("/proc/self/fd").length + keptDescriptors < most;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EMFILE";
  }
}

/**
 * Kills a process and all it has started, when it leads a group; does nothing when they are gone, or not ours any more.
 */
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

/**
 * Ends what a process has started and what has left its group since, and tells which processes those were. They are
 * known by their parents, or by `mark`, a `NAME=value` that they have inherited in their environment. Needs /proc;
 * elsewhere nobody is found.
 */
export function endStrays(leader: number, mark: string): number[] {
  const strays = straysOf(leader, mark);
  for (const pid of strays) killGroup(pid);
  return strays;
}

interface Running {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly startedAt: number;
}

function straysOf(leader: number, mark: string): number[] {
  const all = runningProcesses();
  const parents = new Map(all.map(({ pid, parent }) => [pid, parent]));
  // Whoever was there before it was not started by it. Most processes were, and their environment need not be read.
  const since = Number(fieldsOf(leader)[19] ?? 0);
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid) ?? 0;
    return parent === leader || (parent > 1 && parent !== pid && isBelow(parent));
  };
  const isStray = ({ pid, group, startedAt }: Running) =>
    pid !== leader &&
    pid !== process.pid &&
    group !== leader &&
    startedAt >= since &&
    (isBelow(pid) || isMarked(pid, mark));
  return all.filter(isStray).map(({ pid }) => pid);
}

function isMarked(pid: number, mark: string): boolean {
  return `\0${readOr(`/proc/${pid}/environ`, "")}`.includes(`\0${mark}\0`);
}

function runningProcesses(): Running[] {
  return pidsOf("/proc").flatMap((pid) => {
    const fields = fieldsOf(pid);
    const [state = "Z", parent, group] = fields;
    return state === "Z" ? [] : [{ pid, parent: Number(parent), group: Number(group), startedAt: Number(fields[19]) }];
  });
}

function pidsOf(folder: string): number[] {
  try {
    return readdirSync(folder).map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** What of our own environment is for whoever we start too: settings, but nothing that is between our own processes. */
const forChildren: ReadonlySet<string> = new Set([
  "MEANWHILE_HOME",
  "MEANWHILE_STORE",
  "MEANWHILE_LOG",
  "MEANWHILE_DEBUG",
]);

/** The environment for a process that runs somebody else's code: all that is not ours, and of ours what it may know. */
export function childEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("MEANWHILE_") || forChildren.has(name)),
  );
}

function parse(worker: string): WorkerName | undefined {
  const [host, boot, pid, startedAt, namespace] = worker.split("|");
  if (
    host === undefined ||
    boot === undefined ||
    startedAt === undefined ||
    namespace === undefined ||
    !Number.isInteger(Number(pid))
  )
    return undefined;
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
  const fields = fieldsOf(pid);
  return fields[0] === "Z" ? "zombie" : fields[19];
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
