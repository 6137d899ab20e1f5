import { fieldsOf, isObject } from "../../../wire/json.ts";
import {
  legacyRevision,
  modernRevision,
  type TaskGeneration,
  taskGenerations,
  tasksExtension,
} from "../../../wire/revisions.ts";
import { type Evidence, type Fault, failed, passed, type Severity, skipped, type Verdict } from "../../check.ts";
import { severityRank } from "../../report/score.ts";
import type { ProbeAnswer, ProbeSession, SessionOptions } from "../../wire/probe-session.ts";
import type { Facts } from "../facts.ts";
import type { Probe } from "../probe.ts";
import { steady } from "./created-task.ts";

/**
 * The two designs of tasks: part of 2025-11-25, where the client asks for one with `params.task`, and an extension of
 * 2026-07-28, where the server decides. Each check about a task is asked in every generation that the server declares;
 * its findings are about that one.
 */
export type Generation = TaskGeneration;

/** Whether it is declared so that clients see it. */
export function declares({ legacy, modern }: Pick<Facts, "legacy" | "modern">, generation: Generation): boolean {
  if (generation === modernRevision) return isObject(fieldsOf(modern?.capabilities.extensions)[tasksExtension]);
  if (legacy?.revision !== legacyRevision) return false;
  return isObject(fieldsOf(fieldsOf(fieldsOf(legacy.capabilities.tasks).requests).tools).call);
}

/** A conversation in which tasks are made. */
export interface Talk {
  readonly generation: Generation;
  readonly isModern: boolean;
  readonly probe: Probe;
  readonly session: ProbeSession;
  /** Ids of tasks that may still run; they are cancelled in the end. */
  readonly live: Set<string>;
  /** Every id that came, so that none is shown. */
  readonly ids: Set<string>;
}

/** Something that is wrong in one generation. */
export interface Problem {
  readonly title: string;
  readonly severity?: Severity;
  readonly remedy?: string;
  readonly evidence: readonly Evidence[];
}

/**
 * What a check says of one generation: what is wrong (the worst is reported), why it could not be asked, or what was
 * seen.
 */
export type Judgement = { readonly problems: readonly Problem[]; readonly note?: string } | { readonly skip: string };

export const noTasks =
  "The server declares no tasks: neither tasks.requests.tools.call of 2025-11-25 nor the extension io.modelcontextprotocol/tasks of 2026-07-28.";

export interface EachOptions {
  /** Which of them the question is about. Default: both. */
  readonly only?: Generation;
  /** What is opened in each. */
  readonly open?: ((generation: Generation) => SessionOptions) | undefined;
  /** Why it cannot be asked there, as far as that is known before anything is opened. */
  readonly unless?: ((generation: Generation) => string | undefined) | undefined;
  /** What a problem weighs that says nothing of it. */
  readonly severity: Severity;
}

/** Asks the same in each declared generation, at the same time, and makes one verdict of it. */
export async function askEach(
  probe: Probe,
  { only, open, unless, severity }: EachOptions,
  judge: (talk: Talk) => Promise<Judgement>,
): Promise<Verdict> {
  const declared = taskGenerations.filter((generation) => declares(probe.facts, generation));
  const asked = declared.filter((generation) => only === undefined || generation === only);
  if (declared.length === 0) return skipped(noTasks);
  if (asked.length === 0) return skipped(`The server does not declare the tasks of ${only ?? ""}.`);
  const judged = await Promise.all(
    asked.map(async (generation) => ({ generation, ...(await askOne(probe, { generation, open, unless }, judge)) })),
  );
  return toVerdict(judged, severity);
}

type OneOptions = Pick<EachOptions, "open" | "unless"> & { readonly generation: Generation };

async function askOne(
  probe: Probe,
  { generation, open, unless }: OneOptions,
  judge: (talk: Talk) => Promise<Judgement>,
): Promise<Judgement> {
  const skip = unless?.(generation);
  if (skip !== undefined) return { skip };
  const session = await probe.open({ revision: generation, ...open?.(generation) });
  const talk: Talk = { generation, isModern: session.isModern, probe, session, live: new Set(), ids: new Set() };
  try {
    return await judge(talk);
  } finally {
    await Promise.all([...talk.live].map((taskId) => session.request("tasks/cancel", { taskId }, { timeoutMs: 500 })));
  }
}

function toVerdict(judged: readonly ({ readonly generation: Generation } & Judgement)[], severity: Severity): Verdict {
  const faults = judged.flatMap((one) => ("skip" in one ? [] : toFaults(one, severity)));
  if (faults.length > 0) return failed(faults);
  const skips = judged.flatMap((one) => ("skip" in one ? [one] : []));
  if (skips.length === judged.length) return skipped([...new Set(skips.map(({ skip }) => skip))].join(" "));
  const notes = judged.flatMap((one) => {
    if ("skip" in one) return [`${one.generation} was not asked: ${one.skip}`];
    return one.note === undefined ? [] : [`${one.generation}: ${one.note}`];
  });
  return notes.length === 0 ? passed() : passed(notes.join(" "));
}

function toFaults(
  { generation, problems }: { generation: Generation; problems: readonly Problem[] },
  usual: Severity,
): Fault[] {
  const rank = ({ severity = usual }: Problem) => severityRank(severity);
  const [worst] = [...problems].sort((a, b) => rank(a) - rank(b));
  return worst === undefined ? [] : [{ subject: generation, ...worst, evidence: worst.evidence.slice(0, 4) }];
}

/** Asks for one thing about a task. */
export function askTask(
  talk: Talk,
  method: string,
  taskId: string,
  timeoutMs = talk.probe.requestMs,
): Promise<ProbeAnswer> {
  return talk.session.request(method, { taskId }, { timeoutMs });
}

/**
 * What was sent and what came, without ids and times: they differ from run to run, and an id may be all that guards a
 * task.
 */
export function exchange(
  talk: Talk,
  request: { readonly method: string; readonly params?: unknown },
  answer: ProbeAnswer,
): Evidence[] {
  const told =
    answer.message === undefined
      ? `(${answer.problem ?? "nothing"})`
      : (answer.message.result ?? { error: answer.message.error });
  return [talk.probe.sent(steady(request, talk.ids)), talk.probe.received(steady(told, talk.ids))];
}
