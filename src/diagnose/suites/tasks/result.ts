import { fieldsOf, isObject, type Json } from "../../../wire/json.ts";
import { metaKeys } from "../../../wire/request-envelope.ts";
import { askMade, followMade, type MadeTask, patienceMs, toolResult, whyNoEnd } from "../../asking/tasks/make-task.ts";
import { askTask, exchange, type Judgement, type Problem, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";
import type { ProbeAnswer } from "../../wire/probe-session.ts";

export const check: Check = {
  id: "tasks/result",
  question: "Is a task's result the tool's own, and the same whenever it is asked for?",
  severity: "major",
  why: "Clients fetch a result again after a lost answer or a restart. One that comes once only, changes, or does not look like the tool's is a result lost to the user.",
  remedy:
    'Store what the tool returned and give exactly that: in 2025-11-25 from tasks/result, which waits for the end and names the task in `_meta`, in 2026-07-28 as `result` of tasks/get, marked `resultType: "complete"`.',
  source:
    "MCP 2025-11-25, Tasks, Result Retrieval, Related Task Metadata; SEP-2663, Task Polling; @modelcontextprotocol/ext-tasks 0.2.2.",
  limitMs: 30_000,
  isGentle: true,
  run: (probe) =>
    askMade(probe, { severity: "major" }, async (talk, made): Promise<Judgement> => {
      return talk.isModern ? await judgeModern(talk, made) : await judgeLegacy(talk, made);
    }),
};

/** tasks/result is asked at once, so that it has to wait, and once more after the end. */
async function judgeLegacy(talk: Talk, made: MadeTask): Promise<Judgement> {
  const { taskId } = made;
  const untilMs = patienceMs(talk.probe);
  const first = await askTask(talk, "tasks/result", taskId, untilMs);
  const followed = await followMade(talk, made, 0);
  const evidence = exchange(talk, { method: "tasks/result", params: { taskId } }, first);
  if (first.message === undefined)
    return followed.end === "terminal"
      ? { problems: [{ title: "tasks/result is not answered though the task has ended", evidence }] }
      : { skip: whyNoEnd(followed.end, untilMs) };
  if (followed.end !== "terminal") {
    if (followed.end === "late")
      return { problems: [{ title: "tasks/result is answered before the task has ended", evidence }] };
    return { skip: whyNoEnd(followed.end, untilMs) };
  }
  const again = await askTask(talk, "tasks/result", taskId);
  return {
    problems: [
      ...sameProblems(talk, taskId, outcomeOf(first), again, outcomeOf(again)),
      ...legacyProblems(talk, taskId, first),
    ],
  };
}

function legacyProblems(talk: Talk, taskId: string, answer: ProbeAnswer): Problem[] {
  const evidence = exchange(talk, { method: "tasks/result", params: { taskId } }, answer);
  // A call that ended in an error of the protocol has that error as its result.
  if (answer.result === undefined) return [];
  if (!looksLikeToolResult(answer.result))
    return [{ title: "tasks/result is answered with something that is no tool's result", evidence }];
  const related = fieldsOf(answer.result._meta)[metaKeys.relatedTask];
  if (fieldsOf(related).taskId === taskId) return [];
  return [
    {
      title: "The answer of tasks/result does not name its task",
      severity: "minor",
      remedy: `Add \`_meta["${metaKeys.relatedTask}"] = { taskId }\` to the answer of tasks/result.`,
      evidence,
    },
  ];
}

async function judgeModern(talk: Talk, made: MadeTask): Promise<Judgement> {
  const { taskId } = made;
  const untilMs = patienceMs(talk.probe);
  const followed = await followMade(talk, made, untilMs);
  const ended = followed.seen.at(-1);
  if (followed.end !== "terminal" || ended === undefined) return { skip: whyNoEnd(followed.end, untilMs) };
  const again = await askTask(talk, "tasks/get", taskId);
  const inner = (answer: ProbeAnswer) => ({ result: answer.result?.result, error: answer.result?.error });
  return {
    problems: [
      ...sameProblems(talk, taskId, inner(ended.answer), again, inner(again)),
      ...modernProblems(talk, taskId, ended),
    ],
  };
}

function modernProblems(
  talk: Talk,
  taskId: string,
  { task, answer }: { readonly task: Json; readonly answer: ProbeAnswer },
): Problem[] {
  const problem = (title: string, more: Partial<Problem> = {}): Problem[] => [
    { title, evidence: exchange(talk, { method: "tasks/get", params: { taskId } }, answer), ...more },
  ];
  if (task.status === "failed" && !isObject(task.error)) return problem("A failed task has no error");
  if (task.status !== "completed") return [];
  if (!isObject(task.result)) return problem("A completed task has no result");
  if (!looksLikeToolResult(task.result)) return problem("The result of a completed task is no tool's result");
  if (fieldsOf(task.result._meta)[metaKeys.relatedTask] !== undefined)
    return problem("The result of a task names a related task, as only 2025-11-25 has it", {
      severity: "minor",
      remedy: `Leave \`_meta["${metaKeys.relatedTask}"]\` out of the result in 2026-07-28.`,
    });
  if (task.result.resultType === "complete") return [];
  return problem(
    "The result of a completed task lacks resultType, without which ext-tasks 0.2.2 reports it as failed",
    {
      severity: "minor",
      remedy: 'Add `resultType: "complete"` to the result inside the task.',
    },
  );
}

function sameProblems(talk: Talk, taskId: string, first: unknown, again: ProbeAnswer, second: unknown): Problem[] {
  const evidence = exchange(talk, { method: talk.isModern ? "tasks/get" : "tasks/result", params: { taskId } }, again);
  if (again.message === undefined || (again.error !== undefined && JSON.stringify(first) !== JSON.stringify(second)))
    return [{ title: "A task's result can be fetched only once", evidence }];
  return JSON.stringify(first) === JSON.stringify(second)
    ? []
    : [{ title: "A task's result is another one when it is asked for again", evidence }];
}

function outcomeOf({ result, error }: ProbeAnswer): unknown {
  return result === undefined ? { code: error?.code } : toolResult(result);
}

function looksLikeToolResult(result: Json): boolean {
  return Array.isArray(result.content) || result.structuredContent !== undefined;
}
