import { createId } from "../../../ids.ts";
import { isObject, listOf } from "../../../wire/json.ts";
import { taskGenerations } from "../../../wire/revisions.ts";
import type { Probe } from "../../asking/probe.ts";
import { urlOf } from "../../asking/security/door.ts";
import { steady } from "../../asking/tasks/created-task.ts";
import { isMade, makeTask } from "../../asking/tasks/make-task.ts";
import { declares, type Generation, noTasks, type Talk } from "../../asking/tasks/task-generation.ts";
import { type Check, type Evidence, type Fault, failed, passed, skipped } from "../../check.ts";
import type { ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";

export const check: Check = {
  id: "security/foreign-task",
  question: "Is a task hidden from every caller but the one who made it?",
  severity: "blocker",
  why: "Results of tasks hold what people asked and got. Where another caller can read or cancel them, one customer sees or stops the work of another.",
  remedy:
    "Keep with each task who made it, and answer everybody else exactly as for an id that never was: error −32602, the same text, and not in any list.",
  source: "MCP 2025-11-25, Tasks: Task Isolation and Access Control; SEP-2663, Security; CVE-2026-52870",
  transport: "http",
  limitMs: 15_000,
  async run(probe) {
    const { otherHeaders } = urlOf(probe);
    if (otherHeaders === undefined)
      return skipped(
        "It takes two callers; give the other's credentials with --other-header 'Authorization: Bearer …'.",
      );
    const declared = taskGenerations.filter((generation) => declares(probe.facts, generation));
    if (declared.length === 0) return skipped(noTasks);
    const judged = await Promise.all(declared.map((generation) => judge(probe, generation, otherHeaders)));
    const faults = judged.flatMap((one) => (typeof one === "string" ? [] : one));
    if (faults.length > 0) return failed(faults);
    const reasons = judged.filter((one) => typeof one === "string");
    return reasons.length === judged.length ? skipped([...new Set(reasons)].join(" ")) : passed(reasons[0]);
  },
};

/** What is wrong in one generation of tasks, or why it could not be asked. */
async function judge(
  probe: Probe,
  generation: Generation,
  otherHeaders: Readonly<Record<string, string>>,
): Promise<Fault[] | string> {
  const [mine, theirs] = await Promise.all([
    probe.open({ revision: generation }),
    probe.open({ revision: generation, credentials: otherHeaders }),
  ]);
  const talk: Talk = { generation, isModern: mine.isModern, probe, session: mine, live: new Set(), ids: new Set() };
  const made = await makeTask(talk);
  if (!isMade(made)) return made.why;
  const subject = generation;
  try {
    const leak = await findLeak(probe, { theirs, mine, taskId: made.taskId });
    return leak === undefined ? [] : [{ subject, ...leak }];
  } finally {
    await mine.request("tasks/cancel", { taskId: made.taskId }, { timeoutMs: 500 });
  }
}

async function findLeak(
  probe: Probe,
  { theirs, mine, taskId }: { theirs: ProbeSession; mine: ProbeSession; taskId: string },
): Promise<Fault | undefined> {
  const unknown = createId();
  const show = (answer: ProbeAnswer): Evidence =>
    probe.received(steady(answer.message ?? answer.problem, [taskId, unknown]));
  const ask = (method: string, id: string) => theirs.request(method, { taskId: id }, { timeoutMs: 2_000 });
  const sent = (method: string) =>
    probe.sent(`${method} of a task that the first caller has made, with the other's credentials`);
  const read = await ask("tasks/get", taskId);
  const never = await ask("tasks/get", unknown);
  const isAlike = (one: ProbeAnswer, other: ProbeAnswer) =>
    steadyOf(one, [taskId, unknown]) === steadyOf(other, [taskId, unknown]);
  // A server that answers every id alike gives nothing away; that it does is told by tasks/unknown-id.
  if (read.result !== undefined && !isAlike(read, never))
    return { title: "Another caller can read a task", evidence: [sent("tasks/get"), show(read)] };
  const listed = await findInList(theirs, taskId);
  if (listed !== undefined)
    return { title: "Another caller finds the task in a list", evidence: [sent("tasks/list"), show(listed)] };
  for (const method of theirs.isModern ? ["tasks/update", "tasks/cancel"] : ["tasks/result", "tasks/cancel"]) {
    const answer = await ask(method, taskId);
    if (answer.result !== undefined && !isAlike(answer, await ask(method, unknown)))
      return { title: `Another caller is not refused by ${method}`, evidence: [sent(method), show(answer)] };
  }
  const after = await mine.request("tasks/get", { taskId });
  if (after.result?.status === "cancelled")
    return { title: "Another caller can cancel a task", evidence: [sent("tasks/cancel"), show(after)] };
  if (isAlike(read, never)) return undefined;
  return {
    title: "The answer tells another caller that the task exists",
    severity: "minor",
    evidence: [sent("tasks/get"), show(read), probe.sent("tasks/get of an id that never was"), show(never)],
  };
}

async function findInList(theirs: ProbeSession, taskId: string): Promise<ProbeAnswer | undefined> {
  if (theirs.isModern) return undefined;
  const { answers } = await theirs.list("tasks/list", "tasks", { maxPages: 5, maxItems: 500, timeoutMs: 3_000 });
  return answers.find(({ result }) => listOf(result?.tasks).some((task) => isObject(task) && task.taskId === taskId));
}

/** What a caller can tell answers apart by. */
function steadyOf({ result, error, http }: ProbeAnswer, ids: readonly string[]): string {
  return steady([result, error, http?.status], ids);
}
