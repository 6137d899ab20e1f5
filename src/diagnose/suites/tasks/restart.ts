import { askMade, followMade } from "../../asking/tasks/make-task.ts";
import { askTask, exchange, type Judgement, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

const followMs = 15_000;

export const check: Check = {
  id: "tasks/restart",
  question: "Is a task still known after the server was killed and started again?",
  severity: "major",
  why: "Hosts start a server for each session and kill it with the session. A task that lives in the server's memory is lost then, with hours of work and without a word.",
  remedy:
    "Keep tasks in a file or database and store each before its answer; after a start go on with those that were running, or end them as failed with a reason. Meanwhile does this for its commands.",
  source:
    "MCP 2025-11-25, Tasks (durable state machines); SEP-2663, Task Creation: durably created before the answer; measured hosts.",
  transport: "stdio",
  isThorough: true,
  limitMs: 40_000,
  run: (probe) =>
    askMade(probe, { severity: "major" }, async (talk, made): Promise<Judgement> => {
      talk.session.pipe?.kill();
      await talk.session.pipe?.ended;
      talk.live.clear();
      const session = await probe.open({ revision: talk.generation });
      const later: Talk = { ...talk, session };
      const answer = await askTask(later, "tasks/get", made.taskId);
      const evidence = exchange(later, { method: "tasks/get", params: { taskId: made.taskId } }, answer);
      if (answer.result === undefined)
        return { problems: [{ title: "A task is lost when the server is killed and started again", evidence }] };
      const { end, answer: last } = await followMade(later, { taskId: made.taskId, task: answer.result }, followMs);
      if (end === "late" && last.result?.lastUpdatedAt === answer.result.lastUpdatedAt)
        return {
          problems: [
            {
              title: "A task is known after a restart, but nothing works on it any more",
              evidence: exchange(later, { method: "tasks/get" }, last),
            },
          ],
        };
      return {
        problems: [],
        note:
          end === "terminal"
            ? `the task ended as ${probe.show(String(last.result?.status), 30)} after the restart.`
            : "the task is known after the restart.",
      };
    }),
};
