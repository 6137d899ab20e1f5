import { fieldProblems } from "../../asking/tasks/created-task.ts";
import { isMade, type MadeTask, makeTask, type NoTask, noTool } from "../../asking/tasks/make-task.ts";
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

export const check: Check = {
  id: "tasks/create",
  question: "Is a call that becomes a task answered with a whole task, which can be asked for at once?",
  severity: "major",
  why: "A client that cannot read the task, or is told that there is none when it first asks, reports a failed call while the work goes on without anybody.",
  remedy:
    'Store the task first, then answer: in 2025-11-25 with `{task: {taskId, status: "working", createdAt, lastUpdatedAt, ttl, pollInterval}}`, in 2026-07-28 flat with `resultType: "task"`, `ttlMs` and `pollIntervalMs`.',
  source: "MCP 2025-11-25, Tasks, Creating Tasks, Result Retrieval, Data Types; SEP-2663, Task Creation, Task Polling.",
  isGentle: true,
  run: (probe) =>
    askEach(probe, { severity: "major", unless: noTool(probe) }, async (talk): Promise<Judgement> => {
      const made = await makeTask(talk, { ttl: 60_000 });
      if (!isMade(made)) {
        const problem = missProblem(talk, made);
        return problem === undefined ? { skip: made.why } : { problems: [problem] };
      }
      const asked = await askTask(talk, "tasks/get", made.taskId);
      return { problems: [...creationProblems(talk, made), ...getProblems(talk, made, asked)] };
    }),
};

/** A call that made no task though it had to, or one that nobody can follow. */
function missProblem(talk: Talk, { last }: NoTask): Problem | undefined {
  if (last === undefined) return undefined;
  const { answer, params } = last;
  const evidence = exchange(talk, { method: "tools/call", params }, answer);
  if (answer.result?.taskId !== undefined || answer.result?.task !== undefined)
    return {
      title: `The answer to a call made as a task holds none: ${fieldProblems(talk.generation, taskOf(talk, answer))[0] ?? "it has no id"}`,
      evidence,
    };
  // In 2026-07-28 the server decides, and an error or a tool's own refusal may be about the arguments.
  if (talk.isModern) return undefined;
  if (answer.error?.code === -32601)
    return { title: "A tool that says it can run as a task refuses to (−32601)", evidence };
  if (answer.result !== undefined && answer.result.isError !== true)
    return { title: "A call made as a task is answered with the tool's result instead of a task", evidence };
  if (answer.message === undefined)
    return { title: "A call made as a task is not answered until its work is done", evidence };
  return undefined;
}

function creationProblems(talk: Talk, { task, answer, params }: MadeTask): Problem[] {
  const problems = fieldProblems(talk.generation, task);
  if (!talk.isModern && problems.length === 0 && task.status !== "working") problems.push("its status is not working");
  if (talk.isModern && answer.result?.resultType !== "task") problems.unshift("resultType is not task");
  return problems.length === 0
    ? []
    : [
        {
          title: `A new task is not whole: ${problems.join(", ")}`,
          evidence: exchange(talk, { method: "tools/call", params }, answer),
        },
      ];
}

function getProblems(talk: Talk, { taskId }: MadeTask, asked: ProbeAnswer): Problem[] {
  const evidence = exchange(talk, { method: "tasks/get", params: { taskId } }, asked);
  if (asked.result === undefined)
    return [{ title: "tasks/get does not know a task that was made a moment ago", evidence }];
  const problems = fieldProblems(talk.generation, asked.result);
  if (asked.result.taskId !== taskId && problems.length === 0) problems.push("its taskId is another's");
  if (problems.length > 0)
    return [{ title: `tasks/get answers with a task that is not whole: ${problems.join(", ")}`, evidence }];
  if (!talk.isModern || asked.result.resultType === "complete") return [];
  // Two examples in the extension's own text have it wrong.
  return [
    {
      title: "tasks/get is answered with another resultType than complete",
      severity: "minor",
      remedy: 'Set `resultType: "complete"` in the answers of tasks/get.',
      evidence,
    },
  ];
}

function taskOf(talk: Talk, { result }: ProbeAnswer): Readonly<Record<string, unknown>> {
  const inner = talk.isModern ? result : result?.task;
  return typeof inner === "object" && inner !== null ? (inner as Readonly<Record<string, unknown>>) : {};
}
