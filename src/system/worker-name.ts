import { hostname } from "node:os";
import { createId } from "../ids.ts";
import { type System, system } from "./system.ts";

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

/** Stands in a name for what could not be read. */
const unknown = "-";

/** A fresh name for a worker in this process. */
export function createWorkerName(on: System = system): string {
  const id = createId().slice(0, 8);
  return [hostname(), on.bootId(), process.pid, on.ownStart() ?? unknown, on.pidNamespace(), id].join("|");
}

/** Workers of this process that ended without a shutdown, while the process goes on. */
const killedHere = new Set<string>();

/** Has `isKnownDead` return true for a worker of this process: a test has killed it, and the process still runs. */
export function markKilled(worker: string): void {
  killedHere.add(worker);
}

/**
 * True only when the worker ran on this machine and its process is gone; false whenever that cannot be known. Where
 * machines share a store two of them may have one name, so that only the same boot is certainly the same machine.
 */
export function isKnownDead(worker: string, given: { on?: System; isOneMachine?: boolean } = {}): boolean {
  const { on = system, isOneMachine = true } = given;
  if (killedHere.has(worker)) return true;
  const name = parse(worker);
  if (name === undefined || name.host !== hostname()) return false;
  // Where it cannot be read, it is the same on all.
  if (!isOneMachine && name.boot === unknown) return false;
  if (name.boot !== on.bootId()) return isOneMachine && areKnown(name.boot, on.bootId());
  if (name.namespace !== on.pidNamespace()) return false;
  if (name.pid === process.pid) {
    const ownStart = on.ownStart() ?? unknown;
    return name.startedAt !== ownStart && areKnown(name.startedAt, ownStart);
  }
  if (!on.isAlive(name.pid)) return true;
  return name.startedAt !== unknown && on.beganAt(name.pid, name.startedAt) === false;
}

/** False where one of the facts could not be read: without a file descriptor left, /proc cannot be. */
function areKnown(...facts: readonly string[]): boolean {
  return !facts.includes(unknown);
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
