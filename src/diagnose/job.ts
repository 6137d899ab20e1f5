import { systemClock } from "../clock.ts";
import { TimedOut } from "../errors.ts";
import { type Check, skipped, type Verdict } from "./check.ts";
import type { Facts } from "./facts.ts";
import { HandshakeFailed, LiveProbe, type SessionPool } from "./probe.ts";
import { survey } from "./survey.ts";
import type { Target, ToolWish } from "./target.ts";
import type { PipeEvents } from "./wire/pipe.ts";

/** What is the same for every check of a diagnosis. */
export interface Job {
  readonly target: Target;
  readonly tools: readonly ToolWish[];
  readonly isFull: boolean;
  readonly requestMs: number;
}

/** What the process that runs checks keeps between them. */
interface Surroundings {
  readonly events: PipeEvents;
  readonly pool?: SessionPool;
  readonly memory?: Map<string, Promise<unknown>>;
}

type CheckJob = Job & { readonly facts: Facts; readonly limitMs: number };

const noFacts = (target: Target): Facts => ({ transport: target.kind, modern: undefined, legacy: undefined, tools: [], isLocked: false });

/** Learns what there is to check. */
export async function runSurvey(job: Job, events: PipeEvents): Promise<Facts> {
  const probe = new LiveProbe({ ...job, facts: noFacts(job.target), signal: new AbortController().signal, events });
  try {
    return await survey(probe);
  } finally {
    await probe.close();
  }
}

/** Asks one question, within its time. */
export async function runCheck(check: Check, job: CheckJob, { events, pool, memory }: Surroundings): Promise<Verdict> {
  if (check.transport !== undefined && check.transport !== job.facts.transport)
    return skipped(check.transport === "http" ? "It is asked of servers with a URL only." : "It is asked of servers that are started here only.");
  const over = new AbortController();
  const late = Promise.withResolvers<never>();
  const stopTimer = systemClock.after(job.limitMs, () => {
    const reason = new TimedOut(Math.ceil(job.limitMs / 100) / 10);
    over.abort(reason);
    late.reject(reason);
  });
  const probe = new LiveProbe({ ...job, signal: over.signal, events, memory, pool: check.isGentle === true ? pool : undefined });
  let isSound = false;
  try {
    const verdict = await Promise.race([check.run(probe), late.promise]);
    isSound = verdict.outcome !== "failed";
    return verdict;
  } catch (error) {
    // Every check but those about the handshake itself builds on one that works.
    if (error instanceof HandshakeFailed) return skipped(error.message);
    throw error;
  } finally {
    stopTimer();
    await probe.close();
    if (!isSound && check.isGentle === true) await pool?.empty();
  }
}
