import { type Clock, formatDuration, loopIdleMs } from "../clock.ts";
import type { Logger } from "../log.ts";
import { inspectBuiltins } from "./guard-builtins.ts";
import {
  commandsSinceLastLook,
  endedSuspects,
  type LiveRun,
  listenForCommands,
  minBlockMs,
  running,
  takeBlocks,
} from "./running.ts";

const tickMs = 250;
const cure = 'isolation: "process" in its command prevents that';

/**
 * How many turns of the event loop are still part of a block: a connection that was made during the block is accepted in
 * one turn, and its request is read in the next. Node accepts one connection a turn, so each request that is read adds
 * turns, until the next tick.
 */
const turnsAfterBlock = 2;

interface Watch {
  readonly clock: Clock;
  /** How long the event loop has waited for something to do, since any moment. */
  readonly idleMs: () => number;
  tickedAt: number;
  lateMs: number;
  /** The turns that are still part of a block. */
  turnsLeft: number;
  /** `idleMs` at the last tick. */
  idleAtTickMs: number;
  /** Of the blocked time since the last tick, what single runs are known to have blocked. */
  explainedMs: number;
}

/** The watch of this process. */
let watch: Watch | undefined;

/**
 * When the bytes arrived that the event loop hands over now, on the monotonic clock. While a command blocks the event
 * loop nothing is read, so bytes that are read right after a block count from its start. Without `watchLoop` they count
 * from now.
 */
export function arrivalTime(clock: Clock): number {
  const now = clock.monotonic();
  if (watch === undefined) return now;
  const isAfterBlock = watch.turnsLeft > 0;
  if (isAfterBlock) watch.turnsLeft = turnsAfterBlock;
  const blockMs = Math.max(overdueMs(), isAfterBlock ? watch.lateMs : 0);
  return blockMs < tickMs ? now : now - blockMs;
}

/** How long the watch has not looked although it should have: the event loop is blocked. 0 without `watchLoop`. */
function overdueMs(): number {
  return watch === undefined ? 0 : watch.clock.monotonic() - watch.tickedAt - tickMs;
}

/**
 * How long the event loop has been blocked since the last tick. Time in which it waited for something to do does not
 * count: then the whole process was stopped, or the machine slept.
 */
function blockedSinceTickMs(): number {
  const late = overdueMs();
  if (watch === undefined || late <= minBlockMs) return late;
  const waitedMs = watch.idleMs() - watch.idleAtTickMs;
  return Math.min(late, late + tickMs - waitedMs);
}

/** What of that no single run is known to have blocked. */
function unexplainedMs(): number {
  return blockedSinceTickMs() - (watch?.explainedMs ?? 0);
}

/** The first lines of a run have run, since `begunAt` on the monotonic clock: nothing else ran in that time. */
export function noteFirstLines(run: LiveRun, begunAt: number): void {
  if (watch === undefined || overdueMs() <= minBlockMs) return;
  const ms = Math.min(unexplainedMs(), watch.clock.monotonic() - begunAt);
  if (ms > minBlockMs) explain(watch, run, ms);
}

/** A run has ended: if no other run was there while the event loop was blocked, this one has blocked it. */
export function noteRunEnd(run: LiveRun): void {
  if (watch === undefined || overdueMs() <= minBlockMs) return;
  const ms = unexplainedMs();
  const ownMs = run.mayHaveBlocked(ms);
  if (ownMs <= minBlockMs) return;
  if (suspectsOf(ms).every((other) => other === run)) explain(watch, run, ownMs);
  else endedSuspects.add(run);
}

/** The runs that may have blocked the event loop for the last `ms`. */
function suspectsOf(ms: number): readonly LiveRun[] {
  return [...running, ...endedSuspects].filter((run) => run.mayHaveBlocked(ms) > minBlockMs);
}

function explain(own: Watch, run: LiveRun, ms: number): void {
  own.explainedMs += ms;
  run.noteBlock(ms);
}

/**
 * Logs which commands blocked the event loop, or changed what all commands share; ends when the returned function is
 * called. A block that made an answer too late for its host is a warning. A block is a run's own only if no other run
 * may have caused it; otherwise the log names all that ran. `onCommands` gets the names of the commands that run or
 * whose files are loaded: when the event loop is blocked, the last names are those that block it.
 */
export function watchLoop(
  clock: Clock,
  log: Logger,
  onCommands?: Parameters<typeof listenForCommands>[0],
  idleMs = loopIdleMs,
): () => void {
  const stopListening = onCommands === undefined ? undefined : listenForCommands(onCommands);
  let cancel = () => {};
  const idleAtTickMs = idleMs();
  const own: Watch = {
    ...{ clock, idleMs, idleAtTickMs },
    ...{ tickedAt: clock.monotonic(), lateMs: 0, turnsLeft: 0, explainedMs: 0 },
  };
  watch = own;
  const tick = () => {
    inspectBuiltins();
    logBlocks(own, log);
    const now = clock.monotonic();
    own.lateMs = now - own.tickedAt - tickMs;
    own.tickedAt = now;
    own.idleAtTickMs = idleMs();
    own.explainedMs = 0;
    const isCounting = own.turnsLeft > 0;
    own.turnsLeft = own.lateMs > tickMs ? turnsAfterBlock : 0;
    if (own.turnsLeft > 0 && !isCounting) setImmediate(countTurn);
    cancel = clock.after(tickMs, tick);
  };
  const countTurn = () => {
    own.turnsLeft -= 1;
    if (own.turnsLeft > 0) setImmediate(countTurn);
  };
  cancel = clock.after(tickMs, tick);
  return () => {
    cancel();
    if (watch === own) watch = undefined;
    stopListening?.();
  };
}

/** Names the commands that have blocked the event loop since the last tick. */
function logBlocks(own: Watch, log: Logger): void {
  const names = new Set(commandsSinceLastLook());
  const blockedMs = watch === own ? blockedSinceTickMs() : 0;
  const suspects = suspectsOf(blockedMs - own.explainedMs);
  const [only] = suspects;
  if (only !== undefined && suspects.length === 1) explain(own, only, only.mayHaveBlocked(blockedMs - own.explainedMs));
  endedSuspects.clear();
  const isExplained = blockedMs - own.explainedMs <= minBlockMs;
  const blocks = takeBlocks();
  const named = isExplained ? new Set(blocks.map(({ name }) => name)) : names;
  for (const { name, ms, lateFor } of blocks) {
    if (lateFor === undefined) continue;
    named.delete(name);
    log.warn(
      `${name} blocked the event loop for ${formatDuration(ms)}, so its answer came too late: ${lateFor.host} waits ${formatDuration(lateFor.limitMs)}; ${cure}`,
    );
  }
  if (blockedMs > minBlockMs && named.size > 0)
    log.info(`the event loop was blocked for ${formatDuration(blockedMs)} while ${[...named].join(", ")} ran; ${cure}`);
}
