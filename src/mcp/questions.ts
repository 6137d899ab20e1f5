import { toTimestamp } from "../clock.ts";
import type { Answer, Question } from "../command/context.ts";
import type { JsonObject } from "../command/foreign.ts";
import { capabilityFor, isForm, isForPerson, isLink } from "../command/foreign-question.ts";
import { ProtocolError, RequestError } from "../errors.ts";
import type { Engine } from "../task/engine.ts";
import type { TaskQuestion } from "../task/task.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import type { ClientCapabilities, ClientConnection, ClientRequest } from "./request.ts";

/**
 * How a question reaches the person behind a call.
 *
 * Before 2026-07-28 the server sends `elicitation/create`, or what a server behind a command has asked, and waits. Since then a server sends no requests: the call
 * answers `input_required` with its questions, and the client calls again with the answers and a signed `requestState`.
 * That state leads back to a run that waits, or, for questions ahead of any run, carries the answers given so far.
 */

const elicitTimeoutMs = 24 * 60 * 60 * 1000;

/**
 * Asks a client before 2026-07-28: on the stream of a request, or on whatever stream its connection has open by itself.
 * What somebody else's server asks is asked in its own words, and an error is an answer to it.
 */
export async function askClient(
  question: UntilQuestion,
  on: Pick<ClientRequest | ClientConnection, "ask">,
  signal: AbortSignal,
  related?: Record<string, unknown>,
): Promise<Answer> {
  const { request } = question;
  const limits = { signal, timeoutMs: elicitTimeoutMs };
  if (request === undefined) {
    const _meta = { ...related, ...deadlineOf(question) };
    const params = {
      message: question.message,
      requestedSchema: question.schema,
      ...(Object.keys(_meta).length > 0 && { _meta }),
    };
    return toAnswer(await on.ask("elicitation/create", params, limits));
  }
  const { method, params } = request;
  try {
    const sent = related === undefined ? params : addOwnMeta(params, question, related);
    return toAnswer(await on.ask(method, sent, limits), question);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const { code, message, data } = error;
    return { action: "cancel", error: { code, message, ...(data !== undefined && { data }) } };
  }
}

/**
 * A client's response as an answer: to a form, which may lack its content, or to a question; of what a client answers by
 * itself the whole of it.
 */
export function toAnswer(response: unknown, question: Pick<Question, "request"> = {}): Answer {
  if (!isForPerson(question)) return { action: "accept", content: fieldsOf(response) };
  const { action, content } = fieldsOf(response);
  return action === "accept"
    ? { action, content: fieldsOf(content) }
    : { action: action === "decline" ? "decline" : "cancel" };
}

/** Whether a client that declares this can answer it. */
export function canAnswer(question: Pick<Question, "request">, capabilities: ClientCapabilities): boolean {
  const { request } = question;
  if (isLink(question)) return capabilities.elicitation?.url !== undefined;
  if (request === undefined || isForm(question)) return canElicit(capabilities);
  const needed = capabilityFor(request);
  return needed === undefined || capabilities[needed] !== undefined;
}

/** True when this request's client can show a form to its person. */
export function canElicit({ elicitation }: ClientCapabilities): boolean {
  // A bare `elicitation: {}` is the older way to say "forms".
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/** Until when it may be answered is known of one that is on record. */
type UntilQuestion = Question & Pick<TaskQuestion, "until">;

export function toInputRequest(question: UntilQuestion): Json {
  const { message, schema, request } = question;
  if (request !== undefined) return { method: request.method, params: request.params };
  const _meta = deadlineOf(question);
  return {
    method: "elicitation/create",
    params: { mode: "form", message, requestedSchema: schema, ...(_meta && { _meta }) },
  };
}

/** An open question of a task, with its deadline also where another server asks it. */
export function toTaskInputRequest(question: UntilQuestion): Json {
  const { request } = question;
  if (request === undefined) return toInputRequest(question);
  return { method: request.method, params: addOwnMeta(request.params, question, {}) };
}

/** Adds this server's `_meta` keys to what another server asks in a task. */
function addOwnMeta(params: JsonObject, question: UntilQuestion, related: Record<string, unknown>): JsonObject {
  const own = { ...related, ...(isForPerson(question) && deadlineOf(question)) };
  return Object.keys(own).length === 0 ? params : { ...params, _meta: { ...fieldsOf(params._meta), ...own } };
}

/** By when it has to be answered, for a client that shows it. */
function deadlineOf({ until }: UntilQuestion): Record<string, unknown> | undefined {
  return until === undefined ? undefined : { "meanwhile/answerUntil": toTimestamp(until) };
}

const maxAnswers = 3;

/** Asks, and asks again with the reason when the answer does not fit; gives up as dismissed. */
export async function answerUntilFits(
  engine: Engine,
  caller: string,
  taskId: string,
  question: TaskQuestion,
  ask: (question: TaskQuestion) => Promise<Answer>,
): Promise<void> {
  let words = question;
  for (let tries = 1; ; tries++) {
    const answer = await ask(words);
    try {
      await engine.answer(caller, taskId, { [question.key]: answer });
      return;
    } catch (error) {
      if (!(error instanceof RequestError) || answer.action !== "accept") throw error;
      if (tries === maxAnswers) {
        await engine.answer(caller, taskId, { [question.key]: { action: "cancel" } });
        return;
      }
      words = withReason(question, error.message);
    }
  }
}

/** The same form again, with why its last answer was none. */
export function withReason<Q extends Question>(question: Q, why: string): Q {
  const { request } = question;
  if (!isForm(question)) return question;
  const message = `${question.message} (${why})`;
  return request === undefined
    ? { ...question, message }
    : { ...question, message, request: { ...request, params: { ...request.params, message } } };
}
