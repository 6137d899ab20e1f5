import { RpcCode } from "../errors.ts";
import { describeExcess, isObject, type Json, type JsonLimits, weighJson } from "./json.ts";

/**
 * JSON-RPC messages as they are read and written. What the other side sends is `unknown` until somebody has looked at
 * it.
 */

export interface Message {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** More than any result has that somebody means to read; ten times what our own servers take. */
const limits: JsonLimits = { depth: 200, values: 1_000_000 };

/** Reads one message; undefined for what is none, such as a line that a server prints by accident. */
export function readMessage(text: string): Message | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || value.jsonrpc !== "2.0") return undefined;
  const { id, method, params, error } = value;
  if (id !== undefined && id !== null && typeof id !== "string" && typeof id !== "number") return undefined;
  if (method !== undefined && typeof method !== "string") return undefined;
  if (params !== undefined && !isObject(params)) return undefined;
  if (error !== undefined && (!isObject(error) || typeof error.code !== "number")) return undefined;
  const { excess } = weighJson(text, limits);
  if (excess === undefined) return value as Message;
  // Who waits for it has to hear that it will not come.
  return method === undefined && id != null
    ? { id, error: { code: RpcCode.Internal, message: `the answer ${describeExcess(excess, limits)}` } }
    : undefined;
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
