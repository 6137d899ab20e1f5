import { fieldsOf } from "../../../wire/json.ts";
import { legacyRevision } from "../../../wire/revisions.ts";
import { fieldProblems, steady } from "../../asking/tasks/created-task.ts";
import { isMade, makeTask } from "../../asking/tasks/make-task.ts";
import { askEach, exchange, type Judgement, type Problem, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

const junkCursor = "meanwhile-no-such-cursor";

export const check: Check = {
  id: "tasks/list",
  question: "Does tasks/list show every task of its caller, page by page?",
  severity: "minor",
  why: "A client that lost an id finds its task by the list; one that is missing there, or a list without an end, loses the result or hangs the client.",
  remedy:
    "List every task that tasks/get would find for this caller, give a nextCursor while there is more, refuse cursors you did not give out with −32602, and leave tasks.list undeclared where callers cannot be told apart.",
  source: "MCP 2025-11-25, Tasks, Task Listing, Protocol Errors.",
  isGentle: true,
  run: (probe) =>
    askEach(probe, { severity: "minor", only: legacyRevision }, async (talk): Promise<Judgement> => {
      if (fieldsOf(talk.session.capabilities.tasks).list === undefined)
        return { skip: "The server does not declare tasks.list." };
      const junk = await junkProblems(talk);
      const made = await makeTask(talk);
      if (!isMade(made))
        return junk.length > 0 ? { problems: junk } : { problems: [], note: `cursors were tried only. ${made.why}` };
      return { problems: [...(await listProblems(talk, made.taskId)), ...junk] };
    }),
};

async function listProblems(talk: Talk, taskId: string): Promise<Problem[]> {
  const { items, problem, answers, pages } = await talk.session.list("tasks/list", "tasks", {
    maxItems: 2_000,
    maxPages: 100,
  });
  const last = answers.at(-1);
  const evidence = last === undefined ? [] : exchange(talk, { method: "tasks/list" }, last);
  if (last?.result === undefined || !Array.isArray(last.result.tasks))
    return [{ title: "tasks/list is declared and does not give a list", severity: "major", evidence }];
  if (problem === "the same cursor came twice")
    return [{ title: "tasks/list gives the same cursor again and again", severity: "major", evidence }];
  const mine = items.filter((item) => item.taskId === taskId);
  // A list that is longer than anybody reads says nothing about what is missing.
  if (mine.length === 0 && problem === undefined)
    return [
      {
        title: "A task that tasks/get finds is missing in tasks/list",
        severity: "major",
        evidence: [...evidence, talk.probe.measured(`${items.length} tasks on ${pages} pages.`)],
      },
    ];
  if (mine.length > 1) return [{ title: "tasks/list shows a task twice", evidence }];
  const fields = mine[0] === undefined ? [] : fieldProblems(talk.generation, mine[0]);
  if (fields.length > 0)
    return [
      {
        title: `tasks/list shows tasks that are not whole: ${fields.join(", ")}`,
        evidence: [talk.probe.received(steady(mine[0], talk.ids))],
      },
    ];
  return [];
}

async function junkProblems(talk: Talk): Promise<Problem[]> {
  const params = { cursor: junkCursor };
  const answer = await talk.session.request("tasks/list", params);
  if (answer.error?.code === -32602) return [];
  const title =
    answer.result === undefined
      ? "A cursor that was never given out is refused with another code than −32602"
      : "A cursor that was never given out is taken for one";
  return [{ title, evidence: exchange(talk, { method: "tasks/list", params }, answer) }];
}
