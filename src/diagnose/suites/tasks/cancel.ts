import { sleep } from "../../../clock.ts";
import { fieldsOf } from "../../../wire/json.ts";
import { isTerminal } from "../../asking/tasks/created-task.ts";
import { isMade, type MadeTask, makeTask, noTool } from "../../asking/tasks/make-task.ts";
import {
  askEach,
  askTask,
  exchange,
  type Judgement,
  type Problem,
  type Talk,
} from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";
import type { ProbeAnswer } from "../../wire/probe-session.ts";

/** How long a cancelled task is watched for a change of mind. */
const afterMs = 400;
const resultMs = 1_500;

export const check: Check = {
  id: "tasks/cancel",
  question: "Is a running task cancelled when it is asked to, once and for good?",
  severity: "major",
  why: "A user who stops a task and sees it finish all the same, or whose host is told an error for pressing stop twice, cannot trust the button. Claude Code sends tasks/cancel twice within 10 ms.",
  remedy:
    "In 2025-11-25 store `cancelled` before answering with the task, and refuse to cancel an ended one with −32602; in 2026-07-28 answer every tasks/cancel of a known task with an empty result. Never let a late result overwrite `cancelled`.",
  source: "MCP 2025-11-25, Tasks, Task Cancellation; SEP-2663, Task Cancellation; measured hosts.",
  isGentle: true,
  run: (probe) =>
    askEach(probe, { severity: "major", unless: noTool(probe) }, async (talk): Promise<Judgement> => {
      if (!talk.isModern && fieldsOf(talk.session.capabilities.tasks).cancel === undefined)
        return { skip: "The server does not declare tasks.cancel." };
      const made = await makeTask(talk);
      if (!isMade(made)) return { skip: made.why };
      const cancelled = await askTask(talk, "tasks/cancel", made.taskId);
      const after = await askTask(talk, "tasks/get", made.taskId);
      if (isOver(made, cancelled, after))
        return { skip: "The task ended before it could be cancelled; name a slower tool with --tool and --args." };
      talk.live.delete(made.taskId);
      const problems = [
        ...ackProblems(talk, made, cancelled),
        ...(await laterProblems(talk, made, after)),
        ...(await againProblems(talk, made)),
      ];
      return { problems: talk.isModern ? problems : [...problems, ...(await resultProblems(talk, made))] };
    }),
};

/** True when it was over before the cancel came, or may have been, so that nothing can be said. */
function isOver({ task }: MadeTask, cancelled: ProbeAnswer, { result }: ProbeAnswer): boolean {
  if (isTerminal(task)) return true;
  if (result === undefined) return cancelled.error?.code === -32602;
  return (
    isTerminal(result) &&
    result.status !== "cancelled" &&
    (cancelled.error?.code === -32602 || isTerminal({ status: "completed", ...cancelled.result }))
  );
}

function ackProblems(talk: Talk, { taskId }: MadeTask, cancelled: ProbeAnswer): Problem[] {
  const evidence = exchange(talk, { method: "tasks/cancel", params: { taskId } }, cancelled);
  if (cancelled.result === undefined) return [{ title: "tasks/cancel of a running task fails", evidence }];
  if (!talk.isModern)
    return cancelled.result.status === "cancelled"
      ? []
      : [{ title: "tasks/cancel is answered with a task that is not cancelled", evidence }];
  const { resultType } = cancelled.result;
  return resultType === "complete"
    ? []
    : [{ title: "tasks/cancel is answered with another resultType than complete", severity: "minor", evidence }];
}

/** Once cancelled, a task is cancelled or gone; in 2026-07-28 it may take its time, or finish first. */
async function laterProblems(talk: Talk, { taskId }: MadeTask, after: ProbeAnswer): Promise<Problem[]> {
  const was = after.result?.status;
  const evidence = exchange(talk, { method: "tasks/get", params: { taskId } }, after);
  if (!talk.isModern && after.result !== undefined && was !== "cancelled")
    return [{ title: "A task that was cancelled is not shown as cancelled", evidence }];
  await sleep(talk.probe.clock, afterMs, talk.probe.signal);
  const later = await askTask(talk, "tasks/get", taskId);
  if (was !== "cancelled" || later.result === undefined || later.result.status === "cancelled") return [];
  return [
    {
      title: "A cancelled task does not stay cancelled",
      evidence: exchange(talk, { method: "tasks/get", params: { taskId } }, later),
    },
  ];
}

async function againProblems(talk: Talk, { taskId }: MadeTask): Promise<Problem[]> {
  const again = await askTask(talk, "tasks/cancel", taskId);
  const evidence = exchange(talk, { method: "tasks/cancel", params: { taskId } }, again);
  if (again.message === undefined) return [{ title: "A second tasks/cancel is not answered", evidence }];
  if (!talk.isModern)
    return again.error?.code === -32602
      ? []
      : [{ title: "A second tasks/cancel is not refused with −32602", severity: "minor", evidence }];
  if (again.error === undefined) return [];
  // A server may forget a cancelled task; then its id is unknown to everything.
  const known = await askTask(talk, "tasks/get", taskId);
  return known.result === undefined ? [] : [{ title: "A second tasks/cancel is answered with an error", evidence }];
}

async function resultProblems(talk: Talk, { taskId }: MadeTask): Promise<Problem[]> {
  const answer = await askTask(talk, "tasks/result", taskId, resultMs);
  if (answer.message !== undefined) return [];
  return [
    {
      title: "tasks/result of a cancelled task is never answered",
      evidence: exchange(talk, { method: "tasks/result", params: { taskId } }, answer),
    },
  ];
}
