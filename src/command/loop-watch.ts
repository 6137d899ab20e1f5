import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import { inspectBuiltins } from "./guard-builtins.ts";
import { commandsSinceLastLook, listenForCommands } from "./running.ts";

const tickMs = 250;
const blockedMs = 1_000;

/**
 * Notices when a command keeps everybody else waiting, or has changed what they share, and says which; ends when the
 * returned function is called. `onCommands` hears what runs as long as the loop turns: what it heard last is what
 * blocks a loop that does not.
 */
export function watchLoop(clock: Clock, log: Logger, onCommands?: (names: readonly string[]) => void): () => void {
  const stopListening = onCommands === undefined ? undefined : listenForCommands(onCommands);
  let cancel = () => {};
  let lastAt = clock.monotonic();
  const tick = () => {
    const now = clock.monotonic();
    const lateMs = now - lastAt - tickMs;
    inspectBuiltins();
    const names = commandsSinceLastLook();
    if (lateMs > blockedMs && names.length > 0) {
      log.warn(
        `the event loop was blocked for ${Math.round(lateMs)} ms while ${names.join(", ")} ran; isolation: "process" keeps such a command from holding up the others`,
      );
    }
    lastAt = now;
    cancel = clock.after(tickMs, tick);
  };
  cancel = clock.after(tickMs, tick);
  return () => {
    cancel();
    stopListening?.();
  };
}
