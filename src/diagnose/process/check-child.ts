import { messageOf } from "../../errors.ts";
import { system } from "../../system/system.ts";
import type { Facts } from "../asking/facts.ts";
import { SessionPool } from "../asking/session-pool.ts";
import { type CalledTool, CallLog } from "../asking/tool-calls.ts";
import type { Verdict } from "../check.ts";
import { checks } from "../suites/index.ts";
import type { PipeEvents } from "../wire/server-pipe.ts";
import { type CheckConditions, type KnownConditions, runCheck, runSurvey, runTrial } from "./run-check.ts";

/**
 * The child process that speaks to a server nobody trusts. Its parent bounds its time and memory, and ends what it has
 * started.
 */

export type CheckRequest =
  | { readonly type: "survey"; readonly conditions: CheckConditions }
  | { readonly type: "check"; readonly id: string; readonly conditions: KnownConditions }
  | { readonly type: "trial"; readonly names: readonly string[]; readonly conditions: KnownConditions };

export type CheckMessage =
  | { readonly type: "facts"; readonly facts: Facts }
  | { readonly type: "verdict"; readonly verdict: Verdict }
  | { readonly type: "tried" }
  | { readonly type: "called"; readonly call: CalledTool }
  | { readonly type: "broken"; readonly message: string; readonly isLate: boolean }
  | { readonly type: "started" | "ended"; readonly pid: number };

const pool = new SessionPool();
const memory = new Map<string, Promise<unknown>>();
const calls = new CallLog((call) => tell({ type: "called", call }));
const servers = new Set<number>();
const events: PipeEvents = {
  onStart: (pid) => {
    servers.add(pid);
    tell({ type: "started", pid });
  },
  onEnd: (pid) => {
    servers.delete(pid);
    tell({ type: "ended", pid });
  },
};

// The parent is gone, and with it whoever would end what was started here.
process.on("disconnect", () => {
  for (const pid of servers) system.killGroup(pid);
  process.exit(0);
});
process.on("message", (message) => void hear(message as CheckRequest));
// A late error of a connection that is over must not take the next check with it.
process.on("uncaughtException", (error) => tell({ type: "broken", message: messageOf(error), isLate: false }));

async function hear(message: CheckRequest): Promise<void> {
  try {
    if (message.type === "survey") return tell({ type: "facts", facts: await runSurvey(message.conditions, events) });
    if (message.type === "trial") {
      await runTrial(message.names, message.conditions, { events, calls });
      return tell({ type: "tried" });
    }
    const check = checks.find(({ id }) => id === message.id);
    if (check === undefined) throw new Error(`There is no check ${message.id}.`);
    tell({ type: "verdict", verdict: await runCheck(check, message.conditions, { events, pool, memory, calls }) });
  } catch (error) {
    tell({ type: "broken", message: messageOf(error), isLate: (error as Error | undefined)?.name === "TimedOut" });
  }
}

function tell(message: CheckMessage): void {
  // A parent that has just gone takes nothing any more, and \`disconnect\` says so.
  process.send?.(message, () => undefined);
}
