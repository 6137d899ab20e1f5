import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import { inspectBuiltins } from "./guard-builtins.ts";
import { commandsSinceLastLook, listenForCommands } from "./running.ts";

const tickMs = 250;
const blockedMs = 1_000;

/** The watch of this process: its last tick, how late that was, and whether the event loop has turned since. */
let watch: { readonly clock: Clock; tickedAt: number; lateMs: number; isSameTurn: boolean } | undefined;

/**
 * When the bytes arrived that the event loop hands over now, on the monotonic clock. While a command blocks the event
 * loop nothing is read, so bytes that are read right after a block count from its start. Without `watchLoop` they count
 * from now.
 */
export function arrivalTime(clock: Clock): number {
  const now = clock.monotonic();
  if (watch === undefined) return now;
  const overdueMs = watch.clock.monotonic() - watch.tickedAt - tickMs;
  const blockMs = Math.max(overdueMs, watch.isSameTurn ? watch.lateMs : 0);
  return blockMs < tickMs ? now : now - blockMs;
}

/**
 * Logs which commands blocked the event loop, or changed what all commands share; ends when the returned function is
 * called. `onCommands` gets the names of the commands that run: when the event loop is blocked, the last names are those
 * that block it.
 */
export function watchLoop(clock: Clock, log: Logger, onCommands?: (names: readonly string[]) => void): () => void {
  const stopListening = onCommands === undefined ? undefined : listenForCommands(onCommands);
  let cancel = () => {};
  const own = { clock, tickedAt: clock.monotonic(), lateMs: 0, isSameTurn: false };
  watch = own;
  const tick = () => {
    const now = clock.monotonic();
    own.lateMs = now - own.tickedAt - tickMs;
    own.tickedAt = now;
    inspectBuiltins();
    const names = commandsSinceLastLook();
    if (own.lateMs > tickMs) noteSameTurn();
    if (own.lateMs > blockedMs && names.length > 0) {
      log.warn(
        `the event loop was blocked for ${Math.round(own.lateMs)} ms while ${names.join(", ")} ran; isolation: "process" keeps such a command from holding up the others`,
      );
    }
    cancel = clock.after(tickMs, tick);
  };
  /** What is read before the event loop has turned once more arrived during the block. */
  const noteSameTurn = () => {
    own.isSameTurn = true;
    setImmediate(() => {
      own.isSameTurn = false;
    });
  };
  cancel = clock.after(tickMs, tick);
  return () => {
    cancel();
    if (watch === own) watch = undefined;
    stopListening?.();
  };
}
