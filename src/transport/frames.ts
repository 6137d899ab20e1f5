import { isUtf8 } from "node:buffer";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { RequestError } from "../errors.ts";

export const maxBodyBytes = 4 * 1024 * 1024;
export const maxDepth = 64;

/** Reads one JSON-RPC message from bytes. Throws a RequestError that says what is wrong with them. */
export function parseMessage(bytes: Buffer): JSONRPCMessage {
  return checkMessage(parseJson(bytes));
}

/** Reads JSON from bytes, refusing bad UTF-8 and nesting that could not be written again. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new RequestError("parse", "The message is not valid UTF-8.");
  if (isDeeperThan(bytes, maxDepth)) throw new RequestError("request", `The message is nested more than ${maxDepth} levels deep.`);
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new RequestError("parse", `The message is not JSON: ${(cause as Error).message.slice(0, 200)}.`);
  }
}

/** Checks the shape that every JSON-RPC message has; its content is the SDK's concern. */
export function checkMessage(value: unknown): JSONRPCMessage {
  const refuse = (text: string) => new RequestError("request", text);
  if (Array.isArray(value)) throw refuse("Batches are not supported; send one message at a time.");
  if (typeof value !== "object" || value === null) throw refuse("A message must be a JSON object.");
  const { jsonrpc, method, id, params, result, error } = value as Record<string, unknown>;
  if (jsonrpc !== "2.0") throw refuse('`jsonrpc` must be "2.0".');
  if (id !== undefined && !isRequestId(id)) throw refuse("`id` must be a text or a whole number.");
  if (method === undefined) {
    if (id === undefined && error === undefined) throw refuse("`method` is missing.");
    if (result === undefined && error === undefined) throw refuse("`method` is missing.");
    return value as JSONRPCMessage;
  }
  if (typeof method !== "string") throw refuse("`method` must be a text.");
  if (params !== undefined && (typeof params !== "object" || params === null || Array.isArray(params))) throw refuse("`params` must be an object.");
  return value as JSONRPCMessage;
}

function isRequestId(id: unknown): boolean {
  return typeof id === "string" || Number.isSafeInteger(id);
}

/** Counts brackets outside strings, without parsing. */
function isDeeperThan(bytes: Buffer, limit: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (isInString) {
      if (byte === 0x5c) at++;
      else if (byte === 0x22) isInString = false;
    } else if (byte === 0x22) isInString = true;
    else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > limit) return true;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return false;
}
