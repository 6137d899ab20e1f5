import { CommandError, ProtocolError } from "../errors.ts";
import type { Answer, Origin, Question } from "./context.ts";
import { type ForeignRequest, type JsonObject, withoutReservedMeta } from "./foreign.ts";
import { noFields, toForm } from "./foreign-form.ts";
import { maxResultBytes } from "./result-json.ts";

/**
 * What somebody else's server asks, as a question of ours and back. A form and a link are for a person, wherever one
 * can be found; the model and the folders of a client are that client's alone.
 */

/** What a client must have declared to be asked for it; undefined for what a person answers. */
const capabilities: Readonly<Record<string, "sampling" | "roots">> = {
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

const elicitation = "elicitation/create";

/** True when a person can answer it; else only a client can, by itself. */
export function isForPerson({ request }: Pick<Question, "request">): boolean {
  return request === undefined || request.method === elicitation;
}

/** True when its answer is a form, filled in. */
export function isForm(question: Pick<Question, "request">): boolean {
  return isForPerson(question) && !isLink(question);
}

/** True when it asks a person to open a link. */
export function isLink({ request }: Pick<Question, "request">): boolean {
  return request?.method === elicitation && request.params.mode === "url";
}

/** Only a person may answer it: a model must neither confirm for its user nor say that they have followed a link. */
export function needsPerson(question: Pick<Question, "request" | "isConfirmation">): boolean {
  return question.isConfirmation || isLink(question);
}

export function capabilityFor({ method }: ForeignRequest): "sampling" | "roots" | undefined {
  return Object.hasOwn(capabilities, method) ? capabilities[method] : undefined;
}

/** Whether the client that called has declared what this takes. */
export function isDeclared(request: ForeignRequest, { client }: Origin): boolean {
  const needed = capabilityFor(request);
  return needed === undefined || client?.capabilities?.[needed] !== undefined;
}

/** Throws what a server is told whose request nobody could answer. */
export function refuseRequest(request: ForeignRequest, { name, origin }: { name: string; origin: Origin }): void {
  const { method, params } = request;
  const needed = capabilityFor(request);
  if (needed !== undefined && origin.door === "terminal")
    throw new CommandError(
      `${name} asks ${method} of the client that has called it, and in a terminal there is none; call it from an MCP client that has declared \`${needed}\`.`,
    );
  if (!isDeclared(request, origin))
    throw new CommandError(
      `The client that called ${name} cannot answer ${method}: it has not declared \`${needed}\`.`,
    );
  if (JSON.stringify(params).length > maxResultBytes)
    throw new CommandError(`${name} asks ${method} with more than ${maxResultBytes / 1024 / 1024} MiB; ask with less.`);
}

/** For a door that shows it to a person; what is meant for a client alone has no form. */
export function toQuestion(given: ForeignRequest, key?: string): Question {
  const request = { ...given, params: withoutReservedMeta(given.params) };
  return {
    message: wordsOf(request),
    schema: isForm({ request }) ? toForm(request.params.requestedSchema) : noFields,
    isConfirmation: false,
    request,
    ...(key !== undefined && isFree(key) && { key }),
  };
}

/** Keys as ours are would be taken for ours; and what is too long, or no name at all, names nothing. */
function isFree(key: string): boolean {
  return key !== "" && key.length <= 200 && key !== "__proto__" && !/^(q\d+$|r\d+\/)/.test(key);
}

function wordsOf(request: ForeignRequest): string {
  const { method, params } = request;
  if (method === "sampling/createMessage") return `an answer of the client's model (${method})`;
  if (method === "roots/list") return `the client's folders (${method})`;
  const words = typeof params.message === "string" ? params.message : method;
  return isLink({ request }) ? `${words} ${String(params.url)}` : words;
}

/** An answer as the server expects it that has asked. Throws the error that the client has answered with. */
export function toForeignAnswer(request: ForeignRequest, answer: Answer): JsonObject {
  if (answer.action === "accept") {
    if (!isForPerson({ request })) return answer.content;
    return isLink({ request }) ? { action: "accept" } : { action: "accept", content: answer.content };
  }
  const { action, error } = answer;
  if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data);
  if (isForPerson({ request })) return { action };
  throw new CommandError(`The client did not answer ${request.method}.`);
}

/** True when an earlier attempt has asked the very same. */
export function isSameQuestion(one: Question, other: Question): boolean {
  return one.request === undefined || other.request === undefined
    ? one.request === other.request && one.message === other.message
    : JSON.stringify(one.request) === JSON.stringify(other.request);
}
