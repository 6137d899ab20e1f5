import { describeFigures, toFigures } from "../../asking/performance/figures.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

const slowMs = 1_000;
const maxTotalMs = 4_000;

export const check: Check = {
  id: "performance/list-latency",
  question: "Is tools/list answered quickly?",
  severity: "minor",
  why: "Hosts list the tools before the first prompt of every session and again at each change; the user waits for it.",
  remedy: "Build the list once, and again only when it changes; do not ask other systems for it at each request.",
  source: "measured: servers of the SDKs need a few milliseconds",
  isGentle: true,
  run: async (probe) => {
    const session = await probe.open({ capabilities: {} });
    const times: number[] = [];
    const endsAt = probe.clock.monotonic() + maxTotalMs;
    for (let left = probe.isFull ? 100 : 20; left > 0 && probe.clock.monotonic() < endsAt; left--) {
      const answer = await session.request("tools/list", {});
      if (answer.result === undefined) return skipped("tools/list was answered with an error, or not at all.");
      times.push(answer.elapsedMs);
    }
    const figures = toFigures(times);
    const evidence = [probe.measured(describeFigures(figures))];
    if (figures.p50Ms <= slowMs) return passed(undefined, { evidence, data: { figures } });
    return failed({ title: "tools/list takes longer than a second", evidence }, { figures });
  },
};
