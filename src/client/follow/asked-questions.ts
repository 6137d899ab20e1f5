import { fieldsOf, type Json, textOf } from "../../wire/json.ts";
import { metaKeys } from "../../wire/request-envelope.ts";
import type { Answer, Question } from "../client.ts";
import { InputRequired } from "../client-errors.ts";
import type { ServerConnection } from "../connection/server-connection.ts";
import type { Watcher } from "./remote-task.ts";

/** What servers ask, and who of those that wait here is asked. */

/** A question of 2026-07-28 under its key; undefined for what is not one that a person can answer in a form. */
export function toQuestion(key: string, request: unknown, taskId: string | undefined): Question | undefined {
  const { method, params } = fieldsOf(request);
  const { mode, message, requestedSchema, _meta } = fieldsOf(params);
  if (method !== "elicitation/create" || (mode !== undefined && mode !== "form")) return undefined;
  const until = readUntil(fieldsOf(_meta)["meanwhile/answerUntil"]);
  return { key, message: textOf(message) ?? "", schema: fieldsOf(requestedSchema), taskId, ...until };
}

/** When a question expires, from a timestamp of the server. */
export function readUntil(timestamp: unknown): { readonly until?: number } {
  const until = Date.parse(textOf(timestamp) ?? "");
  return Number.isNaN(until) ? {} : { until };
}

/** An answer as it is sent. */
export function toReply(answer: Answer): Json {
  return answer.action === "accept" ? { action: "accept", content: answer.content } : { action: answer.action };
}

/** One call, or one following of a task, that can be asked. */
interface Asker {
  /** Set once there is one. */
  taskId: string | undefined;
  ask(question: Question): Promise<Answer>;
}

/** Hands `elicitation/create` to the call or task it belongs to. */
export class Askers {
  readonly #askers = new Set<Asker>();
  #count = 0;

  constructor(connection: ServerConnection) {
    connection.onQuestion = (params) => this.#answer(params);
  }

  add(asker: Asker): () => void {
    this.#askers.add(asker);
    return () => void this.#askers.delete(asker);
  }

  async #answer(params: Json): Promise<Json> {
    const taskId = textOf(fieldsOf(fieldsOf(params._meta)[metaKeys.relatedTask]).taskId);
    const asker = this.#find(taskId);
    // Somebody else may come for it: a question that nobody waits for here stays open.
    if (asker === undefined) return await new Promise(() => undefined);
    const question = toQuestion(`e${++this.#count}`, { method: "elicitation/create", params }, taskId ?? asker.taskId);
    return question === undefined ? { action: "cancel" } : toReply(await asker.ask(question));
  }

  #find(taskId: string | undefined): Asker | undefined {
    const askers = [...this.#askers].reverse();
    if (taskId === undefined) return askers.find((asker) => asker.taskId === undefined) ?? askers[0];
    // The question may be faster than the answer that names the task.
    return askers.find((asker) => asker.taskId === taskId) ?? askers.find((asker) => asker.taskId === undefined);
  }
}

/**
 * Asks a person. Where that is not possible the question is left open for whoever comes next, and who waits for the
 * work hears why, and `how` it can be answered.
 */
export async function askOrFail(
  question: Question,
  watcher: Pick<Watcher, "ask" | "fail">,
  how: string,
): Promise<Answer> {
  try {
    if (watcher.ask === undefined) throw new InputRequired(question, how);
    return await watcher.ask(question);
  } catch (error) {
    watcher.fail(error);
    return await new Promise(() => undefined);
  }
}

/** Asks one question after the other, because most people have but one terminal. */
export function inTurn(
  onInput: (question: Question) => Answer | Promise<Answer>,
): (question: Question) => Promise<Answer> {
  let last: Promise<unknown> = Promise.resolve();
  return (question) => {
    const answer = last.then(() => onInput(question));
    last = answer.catch(() => undefined);
    return answer;
  };
}
