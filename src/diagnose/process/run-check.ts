import { systemClock, within } from "../../clock.ts";
import { TimedOut } from "../../errors.ts";
import type { Facts } from "../asking/facts.ts";
import { HandshakeFailed, Probe } from "../asking/probe.ts";
import type { SessionPool } from "../asking/session-pool.ts";
import { survey } from "../asking/survey.ts";
import type { CallLog } from "../asking/tool-calls.ts";
import { type Check, skipped, type Verdict } from "../check.ts";
import type { DiagnosisTarget, ToolToCall } from "../diagnosis-target.ts";
import type { PipeEvents } from "../wire/server-pipe.ts";

/** What is the same for every check of a diagnosis. */
export interface CheckConditions {
  readonly target: DiagnosisTarget;
  readonly tools: readonly ToolToCall[];
  readonly isFull: boolean;
  readonly requestMs: number;
  /** A folder of the user's that no server should hand files out of. */
  readonly privateFolder?: string | undefined;
}

/** What the process that runs checks keeps between them. */
interface Surroundings {
  readonly events: PipeEvents;
  readonly pool?: SessionPool;
  readonly memory?: Map<string, Promise<unknown>>;
  readonly calls?: CallLog;
}

export type KnownConditions = CheckConditions & { readonly facts: Facts; readonly limitMs: number };

const noFacts = (target: DiagnosisTarget): Facts => ({
  transport: target.kind,
  modern: undefined,
  legacy: undefined,
  tools: [],
  isLocked: false,
});

/** Learns what there is to check. */
export async function runSurvey(conditions: CheckConditions, events: PipeEvents): Promise<Facts> {
  const probe = new Probe({
    ...conditions,
    facts: noFacts(conditions.target),
    signal: new AbortController().signal,
    events,
  });
  try {
    return await survey(probe);
  } finally {
    await probe.close();
  }
}

/** Asks one question, within its time. */
export async function runCheck(
  check: Check,
  conditions: KnownConditions,
  { events, pool, memory, calls }: Surroundings,
): Promise<Verdict> {
  if (check.transport !== undefined && check.transport !== conditions.facts.transport)
    return skipped(
      check.transport === "http"
        ? "It is asked of servers with a URL only."
        : "It is asked of servers that are started here only.",
    );
  const over = new AbortController();
  const probe = new Probe({
    ...conditions,
    signal: over.signal,
    events,
    memory,
    calls,
    pool: check.isGentle === true ? pool : undefined,
  });
  let isSound = false;
  try {
    const verdict = await within(systemClock, conditions.limitMs, check.run(probe), () => {
      over.abort(new TimedOut(Math.ceil(conditions.limitMs / 100) / 10));
      throw over.signal.reason;
    });
    isSound = verdict.outcome !== "failed";
    return verdict;
  } catch (error) {
    // Every check but those about the handshake itself builds on one that works.
    if (error instanceof HandshakeFailed) return skipped(error.message);
    throw error;
  } finally {
    await probe.close();
    if (!isSound && check.isGentle === true) await pool?.empty();
  }
}

/** Calls tools once, all at the same time, so that it is known whether they work; what came is kept by `calls`. */
export async function runTrial(
  names: readonly string[],
  conditions: KnownConditions,
  { events, calls }: Surroundings,
): Promise<void> {
  const over = AbortSignal.timeout(conditions.limitMs + trialGraceMs);
  const probe = new Probe({ ...conditions, signal: over, events, calls });
  try {
    const session = await probe.open({ capabilities: {} });
    const chosen = probe.callables.filter(({ tool }) => names.includes(tool.name));
    await Promise.all(
      chosen.map((callable) =>
        session.request(
          "tools/call",
          { name: callable.tool.name, arguments: callable.arguments },
          { timeoutMs: conditions.limitMs },
        ),
      ),
    );
  } finally {
    await probe.close();
  }
}

const trialGraceMs = 2_000;
