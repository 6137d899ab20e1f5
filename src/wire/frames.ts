import { isUtf8 } from "node:buffer";
import { RequestError } from "../errors.ts";
import { describeExcess, type JsonLimits, type JsonWeight, weighJson, weighValue } from "./json.ts";
import type { Message } from "./message.ts";
import { isRequestId, maxRequestIdLength, metaKeys } from "./request-envelope.ts";

export const maxBodyBytes = 4 * 1024 * 1024;
export const maxIntroductionBytes = 16 * 1024;
/** Checking a member of an object takes far longer than sending it. */
const limits = { depth: 64, values: 100_000, members: 10_000 } as const satisfies JsonLimits;
/** What to do about too much of each. */
const cures = {
  depth: "",
  values: "; put them in a file, or send them in parts",
  members: "; put them in a list, or in a file",
};

/** Reads one JSON-RPC message from bytes. Throws a RequestError that says what is wrong with them. */
export function parseMessage(bytes: Buffer): Message {
  return checkMessage(parseJson(bytes));
}

/**
 * Reads JSON from bytes, refusing bad UTF-8, nesting that could not be written again, and more values than can be
 * checked in a moment.
 */
export function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new RequestError("parse", "The message is not valid UTF-8.");
  const text = bytes.toString("utf8");
  refuseExcess(weighJson(text, limits));
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new RequestError("parse", `The message is not JSON: ${(cause as Error).message.slice(0, 200)}.`);
  }
}

/** About how many bytes the JSON of a value has that somebody else has parsed; refuses what `parseJson` would. */
export function weighParsed(value: unknown): number {
  const weight = weighValue(value, limits);
  refuseExcess(weight);
  return weight.bytes;
}

function refuseExcess({ excess }: JsonWeight): void {
  if (excess !== undefined)
    throw new RequestError("request", `The message ${describeExcess(excess, limits)}${cures[excess]}.`);
}

/** Checks the shape that every JSON-RPC message has; its content is its method's concern. */
export function checkMessage(value: unknown): Message {
  const refuse = (text: string) => new RequestError("request", text);
  if (Array.isArray(value)) throw refuse("Batches are not supported; send one message at a time.");
  if (typeof value !== "object" || value === null) throw refuse("A message must be a JSON object.");
  const { jsonrpc, method, id, params, result, error } = value as Record<string, unknown>;
  if (jsonrpc !== "2.0") throw refuse('`jsonrpc` must be "2.0".');
  if (typeof id === "string" && id.length > maxRequestIdLength)
    throw refuse(
      `\`id\` has ${id.length} characters, and ${maxRequestIdLength} are the most; use a shorter one, such as a number.`,
    );
  if (id !== undefined && !isRequestId(id)) throw refuse("`id` must be a text or a whole number.");
  if (method === undefined) {
    if (id === undefined && error === undefined) throw refuse("`method` is missing.");
    if (result === undefined && error === undefined) throw refuse("`method` is missing.");
    return value as Message;
  }
  if (typeof method !== "string") throw refuse("`method` must be a text.");
  if (params !== undefined && (typeof params !== "object" || params === null || Array.isArray(params)))
    throw refuse("`params` must be an object.");
  return value as Message;
}

/**
 * Why what a client says about itself is not taken; undefined when it is. It is kept as long as its session, and read
 * with every request.
 */
export function refuseIntroduction(message: Message): string | undefined {
  if (message.method === undefined) return undefined;
  const {
    _meta = {},
    clientInfo,
    capabilities,
  } = (message.params ?? {}) as Record<string, unknown> & { _meta?: Record<string, unknown> | null };
  const said =
    message.method === "initialize"
      ? { clientInfo, capabilities }
      : { clientInfo: _meta?.[metaKeys.clientInfo], capabilities: _meta?.[metaKeys.clientCapabilities] };
  const bytes = Buffer.byteLength(JSON.stringify(said));
  if (bytes <= maxIntroductionBytes) return undefined;
  return `What the client says about itself, its info and capabilities, is ${bytes} bytes of JSON, and ${maxIntroductionBytes} are the most; say less.`;
}
