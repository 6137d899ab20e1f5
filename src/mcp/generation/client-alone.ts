import { callerKey } from "../../command/caller.ts";
import { isForPerson } from "../../command/foreign-question.ts";
import type { Engine } from "../../task/engine.ts";
import { isTerminal, openQuestions, type Task, type TaskQuestion } from "../../task/task.ts";
import { canAnswer, toAnswer, toInputRequest } from "../questions.ts";
import type { ClientRequest, Result } from "../request.ts";

/**
 * What nobody but a client itself can answer, of a client of 2026-07-28 that has a handle: it is sent back from a
 * follow-up call with it, and calls again with the answers.
 */

/** What it is sent back with; undefined where there is nothing. */
export function toSendBack(task: Task, request: ClientRequest): Result | undefined {
  const asked = askedOf(task, request);
  if (asked.length === 0) return undefined;
  const inputRequests = Object.fromEntries(asked.map((question) => [question.key, toInputRequest(question)]));
  return { resultType: "input_required", inputRequests };
}

/** Takes the answers that a call brings along. */
export async function takeAnswers(engine: Engine, taskId: string, request: ClientRequest): Promise<void> {
  const responses = request.inputResponses;
  if (!request.client.isModern || Object.keys(responses).length === 0) return;
  const caller = callerKey(request.caller);
  const given = askedOf(await engine.get(caller, taskId), request).filter(({ key }) => Object.hasOwn(responses, key));
  const answers = given.map((question) => [question.key, toAnswer(responses[question.key], question)] as const);
  if (answers.length > 0) await engine.answer(caller, taskId, Object.fromEntries(answers));
}

function askedOf(task: Task, { client }: ClientRequest): readonly TaskQuestion[] {
  if (!client.isModern || isTerminal(task)) return [];
  return openQuestions(task).filter((question) => !isForPerson(question) && canAnswer(question, client.capabilities));
}
