import { askRecorded, saidWith } from "../../asking/progress/watched-calls.ts";
import { type Check, failed, passed } from "../../check.ts";
import type { Heard } from "../../wire/probe-session.ts";

const windowMs = 1_000;
/** Ten a second is more than anybody sees; twice that is a stream. */
const maxPerSecond = 20;

export const check: Check = {
  id: "progress/rate",
  question: "Does progress come at a pace that a client can take?",
  severity: "minor",
  why: "Every notification is parsed, stored and drawn by the host. Hundreds a second slow down the host and the call itself, and over HTTP fill the connection.",
  remedy: "Send at most ten a second and the last value always: remember what is new and let a timer send it.",
  source:
    "MCP 2025-11-25, Progress, Implementation Notes: both parties SHOULD implement rate limiting to prevent flooding.",
  limitMs: 20_000,
  run: (probe) =>
    askRecorded(probe, (recording, call) => {
      const most = mostInWindow(saidWith(recording, call.token));
      if (most <= maxPerSecond) return passed();
      return failed({
        title: "Progress floods the client",
        ...(most > 10 * maxPerSecond && { severity: "major" as const }),
        evidence: [probe.measured(`${most} notifications within one second.`)],
      });
    }),
};

function mostInWindow(said: readonly Heard[]): number {
  let most = 0;
  let first = 0;
  for (const [index, { at }] of said.entries()) {
    while (at - (said[first]?.at ?? at) >= windowMs) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
