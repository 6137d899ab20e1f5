import { RpcCode } from "../errors.ts";
import { describeExcess, isObject, type Json, type JsonLimits, weighJson } from "./json.ts";
import { cut, MalformedAnswer } from "./peer-errors.ts";

/**
 * JSON-RPC messages as they are read and written. What the other side sends is `unknown` until somebody has looked at
 * it.
 */

export interface Message {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: unknown;
  /** A `MalformedAnswer` where the answer broke the rules of JSON-RPC. */
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** More than any result has that somebody means to read; ten times what our own servers take. */
const limits: JsonLimits = { depth: 200, values: 1_000_000 };

/**
 * Reads one message from a server. Returns undefined for text that is no message, such as a line that a server prints
 * by accident. A malformed answer becomes an answer whose `error` is a `MalformedAnswer`, so that its request ends.
 */
export function readMessage(text: string): Message | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { id, method, params } = value;
  if (id !== undefined && id !== null && typeof id !== "string" && typeof id !== "number") return undefined;
  const flaw = method === undefined ? flawOf(value) : undefined;
  if (flaw !== undefined) return id == null ? undefined : { id: numberIn(id), error: new MalformedAnswer(flaw) };
  if (value.jsonrpc !== "2.0") return undefined;
  if (method !== undefined && typeof method !== "string") return undefined;
  if (params !== undefined && !isObject(params)) return undefined;
  const { excess } = weighJson(text, limits);
  if (excess === undefined) return value as Message;
  // Who waits for it has to hear that it will not come.
  return method === undefined && id != null
    ? { id, error: { code: RpcCode.Internal, message: `the answer ${describeExcess(excess, limits)}` } }
    : undefined;
}

/** The members of an answer. An object with others and without `jsonrpc` may be a line of a log. */
const answerMembers: ReadonlySet<string> = new Set(["jsonrpc", "id", "result", "error"]);

/** What is wrong with an answer; undefined for a valid one, and for an object that is no answer. */
function flawOf(value: Json): string | undefined {
  const { jsonrpc, id, result, error } = value;
  const isAnswer = result !== undefined || error !== undefined;
  if (!isAnswer || (jsonrpc !== "2.0" && !Object.keys(value).every((name) => answerMembers.has(name))))
    return undefined;
  if (jsonrpc !== "2.0") return 'it lacks `"jsonrpc": "2.0"`';
  if (typeof id === "string" && numberIn(id) !== id)
    return `its \`id\` is the text ${JSON.stringify(id)} in place of the number ${id}`;
  if (error === undefined) return undefined;
  if (error === null) return "its `error` is null";
  if (!isObject(error)) return `its \`error\` is no object: «${cut(String(JSON.stringify(error)), 100)}»`;
  return typeof error.code === "number"
    ? undefined
    : `the \`code\` of its error is no number: «${cut(String(JSON.stringify(error.code ?? error.message)), 100)}»`;
}

/** The number that a text stands for, where it is an ID of a request of ours: those are whole numbers. */
function numberIn(id: string | number): string | number {
  return typeof id === "string" && /^\d{1,15}$/.test(id) ? Number(id) : id;
}

/**
 * The same of what may hold anything: an answer that cannot be written becomes an error to whoever asked for it, and
 * anything else nothing.
 */
export function writeAnything(message: Message): string | undefined {
  try {
    return writeMessage(message);
  } catch (cause) {
    if (message.method !== undefined || message.id == null) return undefined;
    const error = {
      code: RpcCode.Internal,
      message: `The answer cannot be written as JSON: ${(cause as Error).message.split("\n")[0]}.`,
    };
    return writeMessage({ id: message.id, error });
  }
}

/** A result that is written already: what is the same for many is written once. */
export class WrittenResult {
  readonly text: string;

  constructor(result: unknown) {
    this.text = JSON.stringify(result);
  }
}

export function writeMessage(message: Message): string {
  const { id, result } = message;
  if (result instanceof WrittenResult) return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result.text}}`;
  return `{"jsonrpc":"2.0",${JSON.stringify(message).slice(1)}`;
}
