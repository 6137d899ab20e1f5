import { callTool, findQuickTool, isGood, noQuickTool, type QuickTool } from "../../asking/performance/quick-tool.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import type { ProbeSession } from "../../wire/probe-session.ts";
import type { Pipe } from "../../wire/server-pipe.ts";

const warmUp = 50;
const calls = 500;
const maxGrowthBytes = 30 * 1024 * 1024;
/** What a server may print in all before it is stopped as a flood is 32 MiB. */
const maxAnswerBytes = 20 * 1024;

export const check: Check = {
  id: "performance/memory-growth",
  question: "Does the server's memory stay where it is over 500 calls?",
  severity: "minor",
  why: "A host keeps a server for days. One that keeps something of every call slows the machine down and is killed in the middle of somebody's work.",
  remedy:
    "Look for lists, maps and listeners that grow with each call: finished calls, progress tokens, sessions, caches without a limit.",
  source: "measured: more than 30 MiB and more than half as much again after 500 calls, and going on with 500 more",
  transport: "stdio",
  isThorough: true,
  limitMs: 120_000,
  run: async (probe) => {
    const session = await probe.open({ capabilities: {} });
    const quick = await findQuickTool(probe, session);
    if (quick === undefined) return skipped(noQuickTool);
    if (quick.answerBytes > maxAnswerBytes)
      return skipped("The only quick tool's answers are too large for a thousand of them.");
    const { pipe } = session;
    const sizes = await measure(session, quick, pipe);
    if (sizes === undefined)
      return skipped("The system does not tell how much memory the server uses, or a call was not answered.");
    const [before = 0, after = 0, last] = sizes;
    const figures = {
      calls,
      beforeBytes: before,
      afterBytes: after,
      ...(last !== undefined && { afterTwiceBytes: last }),
    };
    const evidence = [
      probe.measured(
        `${toMib(before)} after ${warmUp} calls, ${sizes.slice(1).map(toMib).join(", then ")} after ${calls} more each`,
      ),
    ];
    if (last === undefined || last - after < (after - before) / 2)
      return passed(undefined, { evidence, data: { figures } });
    return failed({ title: "The server's memory grows with every call", evidence }, { figures });
  },
};

/**
 * Bytes after the warm-up, after 500 calls and, where those brought much, after 500 more: a heap that settles does not
 * go on growing.
 */
async function measure(session: ProbeSession, quick: QuickTool, pipe: Pipe | undefined): Promise<number[] | undefined> {
  const sizes: number[] = [];
  for (const count of [warmUp, calls, calls]) {
    if (sizes.length === 2 && !hasGrown(sizes)) break;
    for (let left = count; left > 0; left--)
      if (!isGood(await callTool(session, quick.callable, quick.callable.arguments, 5_000))) return undefined;
    const bytes = await pipe?.residentBytes();
    if (bytes === undefined) return undefined;
    sizes.push(bytes);
  }
  return sizes;
}

function hasGrown([before = 0, after = 0]: readonly number[]): boolean {
  return after - before > maxGrowthBytes && after > before * 1.5;
}

function toMib(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`;
}
