import { createId } from "../../../ids.ts";
import { modernRevision } from "../../../wire/revisions.ts";
import { likelySlowFirst } from "../../asking/likely-slow.ts";
import { createdTask } from "../../asking/tasks/created-task.ts";
import { askEach, exchange, type Judgement, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

/** A handle comes at once; what takes longer is a plain call under way. */
const handleMs = 800;

export const check: Check = {
  id: "tasks/uninvited",
  question: "Does a client that did not ask for tasks get none?",
  severity: "major",
  why: "A client without tasks takes the handle for the tool's result: its user sees an empty or broken answer, and nobody ever fetches the real one.",
  remedy:
    "Decide by the request at hand: a task only for `params.task` in 2025-11-25, and only when this very request's clientCapabilities name the extension in 2026-07-28. Otherwise answer with the result; refuse tasks/get, tasks/update and tasks/cancel there with −32021.",
  source: "MCP 2025-11-25, Tasks, Creating Tasks; SEP-2663, Capability Negotiation, Protocol Errors; bernstein #3079.",
  run: (probe) =>
    askEach(
      probe,
      {
        severity: "major",
        open: (generation) => (generation === modernRevision ? { capabilities: { elicitation: {} } } : {}),
      },
      async (talk) => {
        const [called, asked] = [await callPlainly(talk), talk.isModern ? await askUndeclared(talk) : undefined];
        if ("skip" in called) return asked ?? called;
        return { problems: [...called.problems, ...(asked?.problems ?? [])] };
      },
    ),
};

async function callPlainly(talk: Talk): Promise<Judgement> {
  const { probe, session } = talk;
  const [first] = likelySlowFirst(probe.callables).filter(({ tool }) => tool.taskSupport !== "required");
  if (first === undefined)
    return {
      skip: "No tool says that it only reads (readOnlyHint), with arguments that can be guessed; name one with --tool and --args.",
    };
  const params = { name: first.tool.name, arguments: first.arguments };
  const { id, answer: coming } = session.start("tools/call", params, { timeoutMs: handleMs });
  const answer = await coming;
  if (answer.message === undefined) await session.notify("notifications/cancelled", { requestId: id });
  const task = createdTask(talk.generation, answer);
  if (task === undefined) return { problems: [] };
  if (typeof task.taskId === "string") talk.ids.add(task.taskId);
  return {
    problems: [
      {
        title: "A client that did not ask for a task is answered with one",
        evidence: exchange(talk, { method: "tools/call", params }, answer),
      },
    ],
  };
}

/** Without the capability every method of the extension is refused with −32021, before the id is looked at. */
async function askUndeclared(talk: Talk) {
  const taskId = createId();
  talk.ids.add(taskId);
  const answer = await talk.session.request("tasks/get", { taskId }, { timeoutMs: handleMs });
  if (answer.message === undefined || answer.error?.code === -32021) return { problems: [] };
  const evidence = exchange(talk, { method: "tasks/get", params: { taskId } }, answer);
  return {
    problems: [
      {
        title: "tasks/get of a client that did not declare tasks is not refused with −32021",
        severity: "minor" as const,
        evidence,
      },
    ],
  };
}
