import { sleep } from "../../../clock.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import { likelySlowFirst } from "../../likely-slow.ts";
import type { Callable, Probe } from "../../probe.ts";
import type { Answer, Session } from "../../wire/session.ts";
import { cameBack, isAlive } from "./exchange.ts";

const maxCalls = 3;
const runsMs = 300;
/** An answer this soon after may have been on its way. */
const crossingMs = 100;

export const check: Check = {
  id: "protocol/cancellation",
  question: "Is a call that was cancelled left unanswered, and does the server go on?",
  severity: "minor",
  why: "When the user stops a call, its work should stop too. A server that goes on wastes its time, and its late answer is for nobody.",
  remedy: "On notifications/cancelled stop the work of that request and send nothing for it; in 2026-07-28 over HTTP the closed connection says the same.",
  source: "MCP 2025-11-25, Cancellation; MCP 2026-07-28, Cancellation",
  async run(probe) {
    if (probe.callables.length === 0) return skipped("No tool says that it only reads; name one that takes a while with --tool.");
    const { legacy } = probe.facts;
    const session = await probe.open({ capabilities: {}, ...(legacy !== undefined && { revision: legacy.revision }) });
    const running = await findSlow(probe, session);
    if (running === undefined) return skipped(`No tool that may be called runs for more than ${runsMs} ms; name one with --tool.`);
    const { callable, id, answer } = running;
    const isHttpOnly2026 = session.isModern && session.pipe === undefined;
    const cancelledAt = probe.clock.monotonic();
    if (!isHttpOnly2026) await session.notify("notifications/cancelled", { requestId: id, reason: "The user has stopped it." });
    const late = isHttpOnly2026 ? undefined : await within(probe, answer, probe.isFull ? 3_000 : 500);
    const afterMs = probe.clock.monotonic() - cancelledAt;
    const evidence = [probe.sent({ method: "tools/call", params: { name: callable.tool.name } }), probe.sent("notifications/cancelled for this call")];
    if (!(await isAlive(session))) return failed({ title: "After a cancelled call the server does not answer any more", severity: "major", evidence });
    if (late?.message === undefined) return passed();
    if (late.error === undefined && afterMs < crossingMs) return skipped("The call ended at the moment it was cancelled; name a slower tool with --tool.");
    return failed({ title: "A call is answered after it was cancelled", evidence: [...evidence, cameBack(probe, late)] });
  },
};

interface Running {
  readonly callable: Callable;
  readonly id: string | number;
  readonly answer: Promise<Answer>;
}

/** Starts one tool after the other until one takes its time. */
async function findSlow(probe: Probe, session: Session): Promise<Running | undefined> {
  const callables = likelySlowFirst(probe.callables.filter(({ tool }) => tool.taskSupport !== "required")).slice(0, maxCalls);
  for (const callable of callables) {
    // Over HTTP in 2026-07-28 the end of the time closes the connection, and that cancels.
    const timeoutMs = session.isModern && session.pipe === undefined ? runsMs : probe.requestMs;
    const { id, answer } = session.start("tools/call", { name: callable.tool.name, arguments: callable.arguments }, { timeoutMs });
    const soon = await within(probe, answer, runsMs);
    if (soon === undefined || soon.problem?.startsWith("no answer within") === true) return { callable, id, answer };
  }
  return undefined;
}

async function within(probe: Probe, answer: Promise<Answer>, ms: number): Promise<Answer | undefined> {
  return await Promise.race([answer, sleep(probe.clock, ms, probe.signal).then(() => undefined)]);
}
