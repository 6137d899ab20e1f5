import { createId } from "../../../ids.ts";
import { fieldsOf } from "../../../wire/json.ts";
import { askEach, exchange, type Problem, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";
import type { ProbeAnswer } from "../../wire/probe-session.ts";

const answerMs = 2_000;

export const check: Check = {
  id: "tasks/unknown-id",
  question: "Is a task that does not exist refused with −32602, at once, by every method?",
  severity: "major",
  why: "Clients come back with ids of yesterday. Only −32602 tells them that the task is gone; an answer that never comes, or a made-up task, leaves them waiting for it.",
  remedy:
    "Look the task up first in tasks/get, tasks/result and tasks/cancel, and answer −32602 for every id that this caller has no task of: unknown, expired or another's.",
  source: "MCP 2025-11-25, Tasks, Protocol Errors; SEP-2663, Protocol Errors.",
  isGentle: true,
  run: (probe) =>
    askEach(probe, { severity: "major" }, async (talk) => {
      const asked = await Promise.all(
        methodsOf(talk).map(async (method) => ({ method, ...(await ask(talk, method)) })),
      );
      return { problems: asked.flatMap(({ method, params, answer }) => problemsOf(talk, { method, params, answer })) };
    }),
};

function methodsOf({ isModern, session }: Talk): readonly string[] {
  if (isModern) return ["tasks/get", "tasks/cancel"];
  return [
    "tasks/get",
    "tasks/result",
    ...(fieldsOf(session.capabilities.tasks).cancel === undefined ? [] : ["tasks/cancel"]),
  ];
}

async function ask(talk: Talk, method: string) {
  const taskId = createId();
  talk.ids.add(taskId);
  const params = { taskId };
  return { params, answer: await talk.session.request(method, params, { timeoutMs: answerMs }) };
}

function problemsOf(
  talk: Talk,
  { method, params, answer }: { readonly method: string; readonly params: object; readonly answer: ProbeAnswer },
): Problem[] {
  const evidence = exchange(talk, { method, params }, answer);
  if (answer.message === undefined)
    return [{ title: `${method} of a task that does not exist is not answered`, evidence }];
  if (answer.error === undefined) {
    // The extension only asks tasks/get to refuse (MUST); tasks/cancel may acknowledge anything (SHOULD).
    return talk.isModern && method !== "tasks/get"
      ? []
      : [{ title: `${method} of a task that does not exist is answered with a result`, evidence }];
  }
  if (answer.error.code === -32602) return [];
  return [
    {
      title: `${method} of a task that does not exist is refused with another code than −32602`,
      severity: "minor",
      evidence,
    },
  ];
}
