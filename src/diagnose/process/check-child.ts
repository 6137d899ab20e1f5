import { messageOf } from "../../errors.ts";
import { system } from "../../system/system.ts";
import { CheckAnswerer, type CheckMessage, type CheckRequest } from "./answer-checks.ts";

/**
 * The child process that speaks to a server nobody trusts. Its parent bounds its time and memory, and ends what it has
 * started.
 */

const answerer = new CheckAnswerer(tell);

// The parent is gone, and with it whoever would end what was started here.
process.on("disconnect", () => {
  for (const pid of answerer.servers) system.killGroup(pid);
  process.exit(0);
});
process.on("message", (message) => void answerer.answer(message as CheckRequest));
// A late error of a connection that is over must not take the next check with it.
process.on("uncaughtException", (error) => tell({ type: "broken", message: messageOf(error), isLate: false }));

function tell(message: CheckMessage): void {
  // A parent that has just gone takes nothing any more, and `disconnect` says so.
  process.send?.(message, () => undefined);
}
