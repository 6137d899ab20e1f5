import type { Json } from "../../../wire/json.ts";
import type { ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";
import type { Callable } from "../callables.ts";
import { failureOf } from "../failure.ts";
import { likelySlowFirst } from "../likely-slow.ts";
import type { Probe } from "../probe.ts";

/** A tool that may be called often: it says that it only reads, and it answered at once. */
export interface QuickTool {
  readonly callable: Callable;
  /** How long its first call took. */
  readonly elapsedMs: number;
  readonly answerBytes: number;
}

const quickMs = 300;
const maxTried = 3;
const tries = 2;

export const noQuickTool =
  "No tool that says it only reads (readOnlyHint) answered an example call within 300 ms, and no other is called this often.";

/**
 * Tries at most three tools: first those that stay on their own machine, then the preferred, then those that look
 * quick.
 */
export async function findQuickTool(
  probe: Probe,
  session: ProbeSession,
  isPreferred: (callable: Callable) => boolean = () => false,
): Promise<QuickTool | undefined> {
  const reading = likelySlowFirst(
    probe.callables.filter(({ tool }) => tool.annotations.readOnlyHint === true),
  ).toReversed();
  const rank = (callable: Callable) =>
    (callable.tool.annotations.openWorldHint === false ? 2 : 0) + (isPreferred(callable) ? 1 : 0);
  for (const callable of reading.toSorted((a, b) => rank(b) - rank(a)).slice(0, maxTried)) {
    // Once for all checks that look for one: a slow tool takes seconds to be known as one.
    const timing = await probe.recall(`quick tool ${callable.tool.name}`, () => timeTool(session, callable));
    if (timing !== undefined) return { callable, ...timing };
  }
  return undefined;
}

async function timeTool(session: ProbeSession, callable: Callable): Promise<Omit<QuickTool, "callable"> | undefined> {
  // The first call may load what the others then have, and this machine may be busy during the second.
  await callTool(session, callable, callable.arguments, 2_000);
  for (let left = tries; left > 0; left--) {
    const answer = await callTool(session, callable, callable.arguments, 1_000);
    if (isGood(answer) && answer.elapsedMs <= quickMs)
      return { elapsedMs: answer.elapsedMs, answerBytes: Buffer.byteLength(JSON.stringify(answer.message)) };
  }
  return undefined;
}

export function callTool(
  session: ProbeSession,
  { tool }: Callable,
  args: Json,
  timeoutMs: number,
): Promise<ProbeAnswer> {
  return session.request("tools/call", { name: tool.name, arguments: args }, { timeoutMs });
}

/** A result that is no error, neither by its fields nor by its text. */
export function isGood(answer: ProbeAnswer): boolean {
  return failureOf(answer) === undefined;
}
