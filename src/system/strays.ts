import { type RunningProcess, system } from "./system.ts";

/**
 * Ends what a process has started and what has left its group since, and tells which processes those were. They are
 * known by their parents, or by `mark`, a `NAME=value` that they have inherited in their environment. Where processes
 * cannot be listed nobody is found.
 */
export function endStrays(leader: number, mark: string): number[] {
  const strays = straysOf(leader, mark);
  for (const pid of strays) system.killGroup(pid);
  return strays;
}

/** Ends all who have inherited a mark, and what is in their groups; tells how many they were. */
export function endMarked(mark: string): number {
  const others = system.processes().flatMap(({ pid }) => (pid === process.pid ? [] : [pid]));
  const marked = system.markedOf(others, mark);
  for (const pid of marked) system.killGroup(pid);
  return marked.length;
}

function straysOf(leader: number, mark: string): number[] {
  const all = system.processes();
  const known = new Map(all.map((one) => [one.pid, one]));
  // Whoever was there before it was not started by it. Most processes were, and their environment need not be read.
  const since = known.get(leader)?.startedAt ?? 0;
  const isBelow = (pid: number): boolean => {
    const parent = known.get(pid)?.parent ?? 0;
    return parent === leader || (parent > 1 && parent !== pid && isBelow(parent));
  };
  const mayBeStray = ({ pid, group, startedAt }: RunningProcess) =>
    pid !== leader && pid !== process.pid && group !== leader && startedAt >= since;
  const pids = all.filter(mayBeStray).map(({ pid }) => pid);
  const below = new Set(pids.filter(isBelow));
  const marked = system.markedOf(
    pids.filter((pid) => !below.has(pid)),
    mark,
  );
  return [...below, ...marked];
}
