import { toTimestamp } from "../clock.ts";
import type { Answer } from "../command/context.ts";
import { RequestError } from "../errors.ts";
import type { Engine } from "../task/engine.ts";
import type { LimitedQuestion, TaskQuestion } from "../task/task.ts";
import type { Json } from "../wire/json.ts";
import type { ClientCapabilities, ClientConnection, ClientRequest } from "./request.ts";

/**
 * How a question reaches the person behind a call.
 *
 * Before 2026-07-28 the server sends `elicitation/create` and waits. Since then a server sends no requests: the call
 * answers `input_required` with its questions, and the client calls again with the answers and a signed `requestState`.
 * That state leads back to a run that waits, or, for questions ahead of any run, carries the answers given so far.
 */

const elicitTimeoutMs = 24 * 60 * 60 * 1000;

/**
 * Asks a client before 2026-07-28: on the stream of a request, or on whatever stream its connection has open by itself.
 */
export async function elicit(
  question: LimitedQuestion,
  on: Pick<ClientRequest | ClientConnection, "ask">,
  signal: AbortSignal,
  related?: Record<string, unknown>,
): Promise<Answer> {
  const _meta = { ...related, ...deadlineOf(question) };
  const params = {
    message: question.message,
    requestedSchema: question.schema,
    ...(Object.keys(_meta).length > 0 && { _meta }),
  };
  return toAnswer(await on.ask("elicitation/create", params, { signal, timeoutMs: elicitTimeoutMs }));
}

/** What a client sends may lack its content. */
export function toAnswer(response: unknown): Answer {
  const { action, content } = (response ?? {}) as { action?: string; content?: Record<string, unknown> };
  return action === "accept"
    ? { action, content: content ?? {} }
    : { action: action === "decline" ? "decline" : "cancel" };
}

/** True when this request's client can show a form to its person. */
export function canElicit({ elicitation }: ClientCapabilities): boolean {
  // A bare `elicitation: {}` is the older way to say "forms".
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

export function toInputRequest(question: LimitedQuestion): Json {
  const { message, schema } = question;
  const _meta = deadlineOf(question);
  return {
    method: "elicitation/create",
    params: { mode: "form", message, requestedSchema: schema, ...(_meta && { _meta }) },
  };
}

/** By when it has to be answered, for a client that shows it. */
function deadlineOf({ until }: LimitedQuestion): Record<string, unknown> | undefined {
  return until === undefined ? undefined : { "meanwhile/answerUntil": toTimestamp(until) };
}

const maxAnswers = 3;

/** Asks, and asks again with the reason when the answer does not fit; gives up as dismissed. */
export async function answerUntilFits(
  engine: Engine,
  caller: string,
  taskId: string,
  question: TaskQuestion,
  ask: (question: TaskQuestion) => ReturnType<typeof elicit>,
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
      words = { ...question, message: `${question.message} (${error.message})` };
    }
  }
}
