import { isUtf8 } from "node:buffer";
import { CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, type JSONRPCMessage } from "@modelcontextprotocol/server";
import { RequestError } from "../errors.ts";

export const maxBodyBytes = 4 * 1024 * 1024;
export const maxDepth = 64;
const maxIntroductionBytes = 16 * 1024;
/** Values in one message, and members of one object in it: checking a member takes far longer than sending it. */
export const maxElements = 100_000;
export const maxMembers = 10_000;

/** Reads one JSON-RPC message from bytes. Throws a RequestError that says what is wrong with them. */
export function parseMessage(bytes: Buffer): JSONRPCMessage {
  return checkMessage(parseJson(bytes));
}

/** Reads JSON from bytes, refusing bad UTF-8, nesting that could not be written again, and more values than can be checked in a moment. */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new RequestError("parse", "The message is not valid UTF-8.");
  const excess = excessOf(bytes);
  if (excess !== undefined) throw new RequestError("request", `The message ${excess}.`);
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

/** Why what a client says about itself is not taken; undefined when it is. It is kept as long as its session, and read with every request. */
export function refuseIntroduction(message: JSONRPCMessage): string | undefined {
  if (!("method" in message)) return undefined;
  const { _meta = {}, clientInfo, capabilities } = (message.params ?? {}) as Record<string, unknown> & { _meta?: Record<string, unknown> | null };
  const said =
    message.method === "initialize"
      ? { clientInfo, capabilities }
      : { clientInfo: _meta?.[CLIENT_INFO_META_KEY], capabilities: _meta?.[CLIENT_CAPABILITIES_META_KEY] };
  const bytes = Buffer.byteLength(JSON.stringify(said));
  if (bytes <= maxIntroductionBytes) return undefined;
  return `What the client says about itself, its info and capabilities, is ${bytes} bytes of JSON, and ${maxIntroductionBytes} are the most; say less.`;
}

function isRequestId(id: unknown): boolean {
  return typeof id === "string" || Number.isSafeInteger(id);
}

/** What there is too much of, counted outside strings and without parsing: a comma or a bracket is a value, a colon a member. */
function excessOf(bytes: Buffer): string | undefined {
  const members = new Uint32Array(maxDepth + 1);
  let depth = 0;
  let elements = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (isInString) {
      if (byte === 0x5c) at++;
      else if (byte === 0x22) isInString = false;
    } else if (byte === 0x22) isInString = true;
    else if (byte === 0x2c) elements++;
    else if (byte === 0x3a) {
      if (++(members[depth] as number) > maxMembers) return `has an object with more than ${inWords(maxMembers)} members; put them in a list, or in a file`;
    } else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > maxDepth) return `is nested more than ${maxDepth} levels deep`;
      members[depth] = 0;
      elements++;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
    if (elements > maxElements) return `holds more than ${inWords(maxElements)} values; put them in a file, or send them in parts`;
  }
  return undefined;
}

function inWords(count: number): string {
  return count.toLocaleString("en");
}
