import { describeFigures, type Figures, toFigures } from "../../asking/performance/figures.ts";
import { callTool, findQuickTool, isGood, noQuickTool, type QuickTool } from "../../asking/performance/quick-tool.ts";
import type { Probe } from "../../asking/probe.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import type { ProbeSession } from "../../wire/probe-session.ts";

const stallMs = 1_500;
const maxTotalMs = 8_000;

export const check: Check = {
  id: "performance/call-latency",
  question: "Does a quick tool stay quick when it is called again and again?",
  severity: "minor",
  why: "A tool that mostly answers at once and now and then stands still for seconds makes the model wait, and its host show the call as stuck.",
  remedy: "Keep long work off the thread that answers requests, and bound the time of every lookup that a tool makes.",
  source: "measured: a stall is a call of more than 1.5 s, twenty times the median, in one of twenty calls",
  limitMs: 25_000,
  isGentle: true,
  run: async (probe) => {
    const session = await probe.open({ capabilities: {} });
    const quick = await findQuickTool(probe, session);
    if (quick === undefined) return skipped(noQuickTool);
    let figures = await measure(probe, session, quick);
    // Once more before anything is said: this machine may have been busy.
    if (figures !== undefined && isStalling(figures)) figures = await measure(probe, session, quick);
    if (figures === undefined) return skipped("The tool that answered at first did not answer again.");
    const evidence = [probe.measured(`${probe.show(quick.callable.tool.name, 60)}: ${describeFigures(figures)}`)];
    if (!isStalling(figures)) return passed(undefined, { evidence, data: { figures } });
    return failed({ title: "A tool that answers at once stands still now and then", evidence }, { figures });
  },
};

async function measure(probe: Probe, session: ProbeSession, { callable }: QuickTool): Promise<Figures | undefined> {
  const times: number[] = [];
  const endsAt = probe.clock.monotonic() + maxTotalMs;
  for (let left = probe.isFull ? 100 : 20; left > 0 && probe.clock.monotonic() < endsAt; left--) {
    const answer = await callTool(session, callable, callable.arguments, probe.requestMs);
    if (!isGood(answer)) return undefined;
    times.push(answer.elapsedMs);
  }
  return toFigures(times);
}

function isStalling({ p50Ms, p95Ms }: Figures): boolean {
  return p95Ms > stallMs && p95Ms > p50Ms * 20;
}
