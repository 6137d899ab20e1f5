import type { ClaimRequest, ClaimShares, Created, CreateOptions, KeptTasks } from "../task/store.ts";
import { differingNames, type EndedTask, isTerminal, type LiveTask, type NewTask, type Task } from "../task/task.ts";

/** What SQL says of the rows of a table, said of those in memory. */

export interface MemoryRow {
  readonly number: number;
  task: Task;
  readonly steps: Map<string, string>;
  /** Of what was put in and what came out, once it has ended. */
  bytes?: number;
}

/** The one to claim next. */
export function readyFor(
  rows: Iterable<MemoryRow>,
  { project, taskId, except = [], environment, shares }: ClaimRequest,
  now: number,
): MemoryRow | undefined {
  const turns = new Map(shares?.turns);
  const turnOf = ({ task }: MemoryRow) => (taskId === undefined ? (turns.get(task.caller) ?? 0) : 0);
  return [...rows]
    .filter(
      ({ task }) =>
        task.project === project && task.status === "queued" && task.notBefore <= now && !except.includes(task.taskId),
    )
    .filter(({ task }) => differingNames(task.environment, environment).length === 0)
    .filter(({ task }) => (taskId === undefined ? mayRun(task, shares) : task.taskId === taskId))
    .sort((a, b) => turnOf(a) - turnOf(b) || a.task.notBefore - b.task.notBefore || a.number - b.number)[0];
}

/** The live, handed-out task of an equal call; the oldest one. */
export function equalTo(
  { caller, project, digest, environment }: Pick<NewTask, "caller" | "project" | "digest" | "environment">,
  rows: Iterable<MemoryRow>,
): MemoryRow | undefined {
  const isEqual = (task: Task) => task.caller === caller && task.project === project && task.digest === digest;
  return [...rows].find(
    ({ task }) =>
      isEqual(task) && !isTerminal(task) && !task.isCall && differingNames(task.environment, environment).length === 0,
  );
}

/** Those of a caller's ended tasks that ended before the ones to keep. */
export function beyond(keeps: KeptTasks, caller: string, rows: Iterable<MemoryRow>): ReadonlySet<MemoryRow> {
  const finishedAt = ({ task }: MemoryRow) => (isTerminal(task) ? task.finishedAt : 0);
  const ended = [...rows].filter(({ task }) => task.caller === caller && isTerminal(task));
  ended.sort((a, b) => finishedAt(b) - finishedAt(a) || b.number - a.number);
  let bytes = 0;
  const isOver = (row: MemoryRow, at: number) => {
    bytes += bytesOf(row);
    return bytes > keeps.bytes || at >= keeps.count;
  };
  return new Set(ended.filter(isOver));
}

/** What there is too much of, if there is. */
export function fullOf(own: readonly MemoryRow[], { maxLive }: CreateOptions): Created | undefined {
  const live = own.filter(({ task }) => !isTerminal(task) && !task.isCall && task.status !== "input_required");
  return live.length >= maxLive ? { kind: "full", live: maxLive } : undefined;
}

/** False while its caller has as many of its kind running as there may be. */
function mayRun({ caller, isEndless }: Task, shares: ClaimShares | undefined): boolean {
  const full = (isEndless ? shares?.fullOfEndless : shares?.full) ?? [];
  return full !== "everybody" && !full.includes(caller);
}

/** Who has been put right no longer fits the sum, so that a jump which several have seen counts once. */
export function keptAfter(task: EndedTask, byMs: number, now: number): EndedTask {
  const { finishedAt, expiresAt, ttlMs } = task;
  if (byMs <= 0) return { ...task, expiresAt: Math.min(expiresAt, now + ttlMs) };
  return finishedAt <= now - byMs && expiresAt === finishedAt + ttlMs ? { ...task, expiresAt: expiresAt + byMs } : task;
}

export function queuedAfter(task: LiveTask, byMs: number, now: number): LiveTask {
  const isEarly = byMs < 0 && task.lease === undefined && task.notBefore > now;
  return isEarly ? { ...task, notBefore: Math.max(now, task.notBefore + byMs) } : task;
}

function bytesOf(row: MemoryRow): number {
  const { input, outcome, questions } = row.task as { input: unknown; outcome?: unknown; questions: unknown };
  row.bytes ??= Buffer.byteLength(JSON.stringify([input, outcome, questions]));
  return row.bytes;
}

/** What a database would keep of a value, and nothing that others still hold. */
export function toJson<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** What is given out may be changed by whoever gets it. */
export function copyOf(row: MemoryRow): Task {
  return structuredClone(row.task);
}
