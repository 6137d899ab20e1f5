import { formatDuration } from "../../../clock.ts";
import type { Probe } from "../../asking/probe.ts";
import {
  nothingToCall,
  paramsOf,
  progressOf,
  recordCalls,
  saidWith,
  type WatchedCall,
} from "../../asking/progress/watched-calls.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";

/** A call that has run for so long has had the time to say something. */
const silentMs = 3_000;
/** The shortest idle clock that was measured is 60 s: a third of it leaves room for what gets lost. */
const heartbeatMs = 20_000;

export const check: Check = {
  id: "progress/silence",
  question: "Does a slow call show that it is alive?",
  severity: "minor",
  why: "Hosts cut a call that is silent: opencode after 60 s, Copilot CLI after 180 s, Claude Code over HTTP after 300 s. Each progress starts their clocks anew, and users see that something happens.",
  remedy: "Send progress at least every 20 seconds while a call runs, even when there is nothing new but the time.",
  source: "Measured hosts; vfarcic/dot-ai #705, microsoft/vscode #308961. The specification leaves it to the server.",
  limitMs: 35_000,
  async run(probe) {
    const recording = await recordCalls(probe);
    if (recording === undefined) return skipped(nothingToCall);
    const { calls, until } = recording;
    const faults = calls.flatMap((call) =>
      faultOf(probe, call, { now: until, times: saidWith(recording, call.token).map(({ at }) => at) }),
    );
    // What comes with a wrong token is a sign of life too; that it helps nobody is said by progress/token.
    if (
      faults.length > 0 &&
      !progressOf(recording).some(({ message }) =>
        calls.every(({ token }) => token !== paramsOf(message).progressToken),
      )
    )
      return failed(faults);
    const slow = calls.some((call) => (call.ended()?.at ?? until) - call.startedAt >= silentMs);
    if (slow) return passed();
    return skipped(
      `No tool that was called took longer than ${silentMs / 1000} s; name a slow one with --tool and --args.`,
    );
  },
};

function faultOf(
  probe: Probe,
  call: WatchedCall,
  { now, times }: { readonly now: number; readonly times: readonly number[] },
): Fault[] {
  const until = call.ended()?.at ?? now;
  const stations = [call.startedAt, ...times, until];
  const gapMs = Math.max(...stations.slice(1).map((at, index) => at - (stations[index] as number)));
  const isSilent = times.length === 0 && gapMs >= silentMs;
  const subject = probe.show(call.callable.tool.name, 80);
  if (!isSilent && gapMs < heartbeatMs) return [];
  return [
    {
      subject,
      title: isSilent
        ? `${subject} runs for seconds and sends no progress`
        : `${subject} is silent for more than 20 seconds while it runs`,
      ...(gapMs >= heartbeatMs && { severity: "major" as const }),
      evidence: [
        probe.sent({
          method: "tools/call",
          params: {
            name: call.callable.tool.name,
            arguments: call.callable.arguments,
            _meta: { progressToken: call.token },
          },
        }),
        probe.measured(
          `Nothing came for ${formatDuration(gapMs)}${call.ended() === undefined ? ", and the call was still running" : ""}.`,
        ),
      ],
    },
  ];
}
