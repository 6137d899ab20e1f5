import { sleep } from "../../../clock.ts";
import { askSpeaker, type Speaker, saidWith, stopCalls } from "../../asking/progress/watched-calls.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import type { ProbeSession } from "../../wire/probe-session.ts";

/** What was on its way when the cancel came. */
const graceMs = 300;
/** A call that ends within this is answered while protocol/cancellation, with --full, still listens. */
const answeredMs = 3_000;

export const check: Check = {
  id: "progress/after-cancel",
  question: "Does a cancelled call fall silent?",
  severity: "minor",
  why: "Progress after a cancel shows that the work goes on: the user pressed stop, and the server still spends time, money or somebody's quota.",
  remedy:
    "Pass the request's abort signal down to the work and stop there; send nothing more for the call, neither progress nor an answer.",
  source:
    "MCP 2025-11-25, Cancellation, Behavior Requirements; MCP 2026-07-28, Cancellation; anthropics/claude-code #44006.",
  isThorough: true,
  limitMs: 40_000,
  async run(probe) {
    const { legacy, transport } = probe.facts;
    // Over HTTP a client of 2026-07-28 cancels by hanging up, and then hears nothing by itself.
    if (transport === "http" && legacy === undefined)
      return skipped("Over HTTP it can be heard only in revisions before 2026-07-28, and the server speaks none.");
    const judge = async (session: ProbeSession, { call }: Speaker) => {
      const said = saidWith(session, call.token);
      const firstMs = (said[0]?.at ?? call.startedAt) - call.startedAt;
      if (call.ended() !== undefined)
        return skipped("The call ended before it could be cancelled; name a slower tool with --tool and --args.");
      await stopCalls(session, call);
      await sleep(probe.clock, graceMs, probe.signal);
      if (call.ended()?.answer.message !== undefined)
        return skipped("The call ended as it was cancelled; name a slower tool with --tool and --args.");
      const before = saidWith(session, call.token).length;
      // As long as it takes this call to say something, but not for ever.
      await sleep(probe.clock, Math.min(1.5 * firstMs + 300, 6_000), probe.signal);
      const late = saidWith(session, call.token).slice(before);
      if (late.length === 0) return passed();
      // Where protocol/cancellation asks in the same revision, it has seen the answer that such a call ends with.
      const isAskedThere = legacy === undefined || session.revision === legacy.revision;
      if (isAskedThere)
        await Promise.race([
          call.end,
          sleep(probe.clock, Math.max(answeredMs - (probe.clock.monotonic() - call.startedAt), 0), probe.signal),
        ]);
      if (isAskedThere && call.ended()?.answer.message !== undefined)
        return passed("The call is not stopped by a cancel; see protocol/cancellation.");
      return failed({
        title: "A cancelled call goes on and still reports progress",
        evidence: [
          probe.sent({ method: "notifications/cancelled", params: { requestId: "…" } }),
          ...late.slice(0, 2).map(({ message }) => probe.received(message)),
        ],
      });
    };
    return await askSpeaker(probe, judge, transport === "http" ? legacy?.revision : undefined);
  },
};
