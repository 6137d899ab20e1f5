import { type Clock, formatDuration } from "../clock.ts";
import type { Logger } from "../log.ts";
import { inspectBuiltins } from "./guard-builtins.ts";
import { commandsSinceLastLook, listenForCommands, minBlockMs, running, takeBlocks } from "./running.ts";

const tickMs = 250;
const cure = 'isolation: "process" in its command prevents that';

/**
 * How many turns of the event loop are still part of a block: a connection that was made during the block is accepted in
 * one turn, and its request is read in the next. Node accepts one connection a turn, so each request that is read adds
 * turns, until the next tick.
 */
const turnsAfterBlock = 2;

/** The watch of this process: its last tick, how late that was, and the turns that are still part of a block. */
let watch: { readonly clock: Clock; tickedAt: number; lateMs: number; turnsLeft: number } | undefined;

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
export function overdueMs(): number {
  return watch === undefined ? 0 : watch.clock.monotonic() - watch.tickedAt - tickMs;
}

/**
 * Logs which commands blocked the event loop, or changed what all commands share; ends when the returned function is
 * called. A block that made an answer too late for its host is a warning. `onCommands` gets the names of the commands that run: when the event loop is blocked, the last names are those
 * that block it.
 */
export function watchLoop(clock: Clock, log: Logger, onCommands?: (names: readonly string[]) => void): () => void {
  const stopListening = onCommands === undefined ? undefined : listenForCommands(onCommands);
  let cancel = () => {};
  const own = { clock, tickedAt: clock.monotonic(), lateMs: 0, turnsLeft: 0 };
  watch = own;
  const tick = () => {
    const now = clock.monotonic();
    own.lateMs = now - own.tickedAt - tickMs;
    own.tickedAt = now;
    inspectBuiltins();
    if (own.lateMs > minBlockMs) for (const run of running) run.noteBlock(own.lateMs);
    const names = new Set(commandsSinceLastLook());
    for (const { name, ms, lateFor } of takeBlocks()) {
      if (lateFor === undefined) continue;
      names.delete(name);
      log.warn(
        `${name} blocked the event loop for ${formatDuration(ms)}, so its answer came too late: ${lateFor.host} waits ${formatDuration(lateFor.limitMs)}; ${cure}`,
      );
    }
    const isCounting = own.turnsLeft > 0;
    own.turnsLeft = own.lateMs > tickMs ? turnsAfterBlock : 0;
    if (own.turnsLeft > 0 && !isCounting) setImmediate(countTurn);
    if (own.lateMs > minBlockMs && names.size > 0) {
      log.info(
        `the event loop was blocked for ${formatDuration(own.lateMs)} while ${[...names].join(", ")} ran; ${cure}`,
      );
    }
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
