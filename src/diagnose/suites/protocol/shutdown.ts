import { sleep } from "../../../clock.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/shutdown",
  question: "Does the server leave, with all that it has started, when its standard input ends?",
  severity: "minor",
  why: "Hosts end a server by closing its input. One that stays is killed, without the chance to save anything, or runs on unseen after the host is gone.",
  remedy: "Exit when the standard input ends, and end the processes that you have started.",
  source: "MCP 2026-07-28, stdio: Shutdown; MCP 2025-11-25, Lifecycle: Shutdown",
  transport: "stdio",
  async run(probe) {
    const { pipe } = await probe.open();
    if (pipe === undefined) return skipped("It is asked of servers that are started here only.");
    const hasLeft = await pipe.leave();
    if (!hasLeft)
      return failed({
        title: "The server does not leave when its standard input ends",
        evidence: [probe.measured("It still ran 2 s later and was killed.")],
      });
    if (pipe.leftovers().length > 0) await sleep(probe.clock, 300, probe.signal);
    const count = pipe.leftovers().length;
    if (count === 0) return passed();
    return failed({
      title: "The server leaves processes of its own behind",
      evidence: [probe.measured(`${count} of its processes still ran after it had left.`)],
    });
  },
};
