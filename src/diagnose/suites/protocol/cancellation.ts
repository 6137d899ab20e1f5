import { sleep } from "../../../clock.ts";
import type { Json } from "../../../wire/json.ts";
import type { Callable } from "../../asking/callables.ts";
import { likelySlowFirst } from "../../asking/likely-slow.ts";
import type { Probe } from "../../asking/probe.ts";
import { cameBack, isAlive } from "../../asking/protocol/raw-requests.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import type { ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";

const maxCalls = 3;
/** Shorter calls may have ended before the message reaches the server. */
const runsMs = 400;
/** Longer ones are not waited for. */
const longestMs = 3_500;
const cancelAfterMs = 100;
/** An answer this soon after may have been on its way. */
const crossingMs = 100;

export const check: Check = {
  id: "protocol/cancellation",
  question: "Is a call that was cancelled left unanswered, and does the server go on?",
  severity: "minor",
  why: "When the user stops a call, its work should stop too. A server that goes on wastes its time, and its late answer is for nobody.",
  remedy:
    "On notifications/cancelled stop the work of that request and send nothing for it; in 2026-07-28 over HTTP the closed connection says the same.",
  source: "MCP 2025-11-25, Cancellation; MCP 2026-07-28, Cancellation",
  limitMs: 30_000,
  async run(probe) {
    if (probe.callables.length === 0)
      return skipped("No tool says that it only reads; name one that takes a while with --tool.");
    const { legacy } = probe.facts;
    const session = await probe.open({ capabilities: {}, ...(legacy !== undefined && { revision: legacy.revision }) });
    const slow = await findSlow(probe, session);
    if ("why" in slow) return skipped(slow.why);
    const outcome = await cancel(probe, session, slow);
    const evidence = [
      probe.sent({ method: "tools/call", params: { name: slow.callable.tool.name } }),
      probe.sent("notifications/cancelled for this call"),
    ];
    if (!(await isAlive(session)))
      return failed({
        title: "After a cancelled call the server does not answer any more",
        severity: "major",
        evidence,
      });
    if (outcome?.late.message === undefined) return passed();
    if (outcome.afterMs < (outcome.late.error === undefined ? crossingMs : 0))
      return skipped("The call ended at the moment it was cancelled; name a slower tool with --tool.");
    return failed({
      title: "A call is answered after it was cancelled",
      evidence: [...evidence, cameBack(probe, outcome.late)],
    });
  },
};

interface Slow {
  readonly callable: Callable;
  /** How long it takes when nobody cancels it: before that, silence says nothing. */
  readonly lengthMs: number;
}

/** Calls one tool after the other, to its end, until one takes its time. */
async function findSlow(probe: Probe, session: ProbeSession): Promise<Slow | { readonly why: string }> {
  const callables = likelySlowFirst(probe.callables.filter(({ tool }) => tool.taskSupport !== "required")).slice(
    0,
    maxCalls,
  );
  let isTooLong = false;
  for (const callable of callables) {
    const { id, answer } = session.start("tools/call", paramsOf(callable), { timeoutMs: longestMs });
    const { message, elapsedMs } = await answer;
    if (message !== undefined && elapsedMs >= runsMs) return { callable, lengthMs: elapsedMs };
    if (message !== undefined) continue;
    isTooLong = true;
    if (!cancelsByClosing(session)) await session.notify("notifications/cancelled", { requestId: id });
  }
  if (isTooLong)
    return {
      why: `No tool that may be called ends within ${longestMs / 1000} s, and before that silence says nothing; name one of a second or two with --tool.`,
    };
  return { why: `No tool that may be called runs for more than ${runsMs} ms; name one with --tool.` };
}

/** Calls it once more, cancels it soon, and waits until it would have ended by itself. */
async function cancel(
  probe: Probe,
  session: ProbeSession,
  { callable, lengthMs }: Slow,
): Promise<{ readonly late: ProbeAnswer; readonly afterMs: number } | undefined> {
  if (cancelsByClosing(session))
    return void (await session.request("tools/call", paramsOf(callable), { timeoutMs: cancelAfterMs }));
  const startedAt = probe.clock.monotonic();
  const { id, answer } = session.start("tools/call", paramsOf(callable), { timeoutMs: lengthMs * 1.5 + 500 });
  await Promise.race([answer, sleep(probe.clock, cancelAfterMs, probe.signal)]);
  const cancelledMs = probe.clock.monotonic() - startedAt;
  await session.notify("notifications/cancelled", { requestId: id, reason: "The user has stopped it." });
  const late = await answer;
  return { late, afterMs: late.elapsedMs - cancelledMs };
}

/** Over HTTP in 2026-07-28 the connection that is closed says it, and after that nothing can come. */
function cancelsByClosing({ isModern, pipe }: ProbeSession): boolean {
  return isModern && pipe === undefined;
}

function paramsOf({ tool, arguments: chosen }: Callable): Json {
  return { name: tool.name, arguments: chosen };
}
