import { maxResultBytes } from "../command/result-json.ts";
import { ProtocolError, RpcCode } from "../errors.ts";
import { weigh } from "../task/weigh.ts";
import { excerptOf, isObject, type Json, listOf, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { checkToolResult, MalformedAnswer } from "../wire/peer-errors.ts";
import type { Result } from "./request.ts";

/** So many pages of a list are read to know what is in it. */
const maxPages = 100;

/** All items of a list, page by page. */
export async function readAllPages(
  name: string,
  readPage: (cursor: string | undefined) => Promise<Json>,
): Promise<readonly Json[]> {
  const found: Json[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const result = await readPage(cursor);
    found.push(...listOf(result[name]).filter(isObject));
    cursor = textOf(result.nextCursor);
    if (cursor === undefined) break;
  }
  return found;
}

/** Returns the result of an answer. Throws the error that it holds, and a `MalformedAnswer` as it is. */
export function toAnswered({ result, error }: Message, method: string, params: Json): Result {
  if (error instanceof MalformedAnswer) throw error.naming("The server", method);
  if (error !== undefined) throw withoutEcho(toError(error), textOf(params.name) ?? textOf(params.uri));
  if (!isObject(result)) throw new MalformedAnswer("its `result` is no object", { request: method });
  checkToolResult(method, result);
  return bounded(result, method, textOf(params.name));
}

export function toError({ code, message, data }: NonNullable<Message["error"]>): ProtocolError {
  return new ProtocolError(code, message, data);
}

/** Megabytes that a client sent as a name are not sent back to it. */
function withoutEcho(error: ProtocolError, name = ""): ProtocolError {
  const excerpt = excerptOf(name);
  if (excerpt === name) return error;
  const data = isObject(error.data) && error.data.uri === name ? { ...error.data, uri: excerpt } : error.data;
  return new ProtocolError(error.code, error.message.replaceAll(name, excerpt), data);
}

/** A result as large as a command's may be; of a larger one the model is told, or else whoever asked. */
function bounded(result: Result, method: string, name = method): Result {
  if (!isTooLarge(result)) return result;
  const most = `${maxResultBytes / 1024 / 1024} MiB`;
  if (method !== "tools/call")
    throw new ProtocolError(RpcCode.Internal, `The answer to ${method} is larger than ${most}.`);
  const text = `${name} returned more than ${most}; write it to a file and return the path.`;
  return { content: [{ type: "text", text }], isError: true };
}

function isTooLarge(result: Result): boolean {
  // No letter takes more than six bytes, escaped, so most results need not be written to be counted.
  const few = maxResultBytes / 6;
  try {
    return weigh(result, few) >= few && Buffer.byteLength(JSON.stringify(result)) > maxResultBytes;
  } catch {
    // Whoever writes it says why it cannot be written.
    return false;
  }
}
