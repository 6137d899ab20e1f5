import { sleep } from "../../../clock.ts";
import { isTerminal, statuses } from "../../asking/tasks/created-task.ts";
import {
  askMade,
  type Followed,
  followMade,
  type MadeTask,
  patienceMs,
  whyNoEnd,
} from "../../asking/tasks/make-task.ts";
import { askTask, exchange, type Judgement, type Problem, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

/** How long an ended task is watched for a change of mind. */
const afterMs = 200;

export const check: Check = {
  id: "tasks/lifecycle",
  question: "Does a task run to an end through the statuses there are, and stay ended?",
  severity: "major",
  why: "A client stops asking at the first ending it sees. A task that changes afterwards, forgets itself or shows a status of its own shows users a wrong ending, or none.",
  remedy:
    "Keep to working, input_required, completed, failed and cancelled; refuse every change once one of the last three is stored; and keep an ended task for its whole ttl.",
  source: "MCP 2025-11-25, Tasks, Task Status Lifecycle; SEP-2663, Task Status, Task Polling.",
  limitMs: 30_000,
  isGentle: true,
  run: (probe) =>
    askMade(probe, { severity: "major" }, async (talk, made): Promise<Judgement> => {
      const untilMs = patienceMs(probe);
      const followed = await followMade(talk, made, untilMs);
      const problems = [...statusProblems(talk, made, followed), ...lossProblems(talk, made, followed)];
      if (followed.end !== "terminal" || problems.length > 0)
        return problems.length > 0 ? { problems } : { skip: whyNoEnd(followed.end, untilMs) };
      await sleep(probe.clock, afterMs, probe.signal);
      return { problems: await laterProblems(talk, made, followed) };
    }),
};

function statusProblems(talk: Talk, { taskId, task }: MadeTask, { seen }: Followed): Problem[] {
  const of = (title: string, index: number): Problem => ({
    title,
    evidence: [
      talk.probe.received(
        `Statuses, in order: ${[task, ...seen.map((one) => one.task)].map(({ status }) => talk.probe.show(String(status), 30)).join(", ")}`,
      ),
    ].concat(
      seen[index] === undefined ? [] : exchange(talk, { method: "tasks/get", params: { taskId } }, seen[index].answer),
    ),
  });
  const foreign = seen.findIndex((one) => !(statuses as readonly unknown[]).includes(one.task.status));
  if (foreign >= 0) return [of("A task is shown with a status that does not exist", foreign)];
  if (isTerminal(task) && seen[0] !== undefined && seen[0].task.status !== task.status)
    return [of("A task that had ended changes its status", 0)];
  const moved = seen.findIndex((one) => task.createdAt !== undefined && one.task.createdAt !== task.createdAt);
  if (moved >= 0) return [{ ...of("A task's createdAt changes while it runs", moved), severity: "minor" }];
  const back = seen.findIndex((one, index) => isBefore(one.task.lastUpdatedAt, seen[index - 1]?.task.lastUpdatedAt));
  return back >= 0 ? [{ ...of("A task's lastUpdatedAt goes back", back), severity: "minor" }] : [];
}

function isBefore(time: unknown, other: unknown): boolean {
  return typeof time === "string" && typeof other === "string" && Date.parse(time) < Date.parse(other);
}

function lossProblems(talk: Talk, { taskId }: MadeTask, { seen, end, answer }: Followed): Problem[] {
  if (end !== "unknown" && end !== "broken") return [];
  // Whether a task is known at all is the question of tasks/create, and how long it is kept that of tasks/ttl.
  if (seen.length === 0) return [];
  const evidence = exchange(talk, { method: "tasks/get", params: { taskId } }, answer);
  return [
    {
      title: end === "unknown" ? "A task is forgotten before its end was seen" : "tasks/get fails while a task runs",
      evidence,
    },
  ];
}

async function laterProblems(talk: Talk, { taskId }: MadeTask, { seen }: Followed): Promise<Problem[]> {
  const ended = seen.at(-1)?.task.status;
  const answer = await askTask(talk, "tasks/get", taskId);
  const evidence = exchange(talk, { method: "tasks/get", params: { taskId } }, answer);
  if (answer.result === undefined) return [{ title: "A task is forgotten as soon as its end was seen", evidence }];
  return answer.result.status === ended ? [] : [{ title: "A task that had ended changes its status", evidence }];
}
