import type { ToolResult } from "./client.ts";

/** JSON-RPC messages as they are read and written. What a server sends is `unknown` until somebody has looked at it. */

export type Json = Readonly<Record<string, unknown>>;

export interface Message {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Deeper nesting could not be written again, nor compared, without running out of stack. */
const maxDepth = 200;
/** More than any result has that somebody means to read; ten times what our own servers take. */
const maxElements = 1_000_000;

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
  const excess = excessOf(value);
  if (excess === undefined) return value as Message;
  // Who waits for it has to hear that it will not come.
  return method === undefined && id != null ? { id, error: { code: -32603, message: `the answer ${excess}` } } : undefined;
}

export function writeMessage(message: Message): string {
  return JSON.stringify({ jsonrpc: "2.0", ...message });
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields of an object; none of anything else. */
export function fieldsOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** A result as every caller may read it. Nothing is taken from it. */
export function toToolResult(result: Json): ToolResult {
  return (Array.isArray(result.content) ? result : { ...result, content: [] }) as unknown as ToolResult;
}

/** The first text in a result; empty when there is none. */
export function firstTextOf({ content }: Json): string {
  const [first] = Array.isArray(content) ? content : [];
  return textOf(fieldsOf(first).text) ?? "";
}

/** Words of a server's for a sentence of ours: one line, of a length that can be read. */
export function cut(text: string, length = 300): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}

/** What there is too much of in a message. */
function excessOf(message: Json): string | undefined {
  let elements = 0;
  let level: unknown[] = [message];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) return `is nested more than ${maxDepth} levels deep`;
    const below: unknown[] = [];
    for (const item of level) {
      const inner = Object.values(item as object);
      elements += inner.length;
      if (elements > maxElements) return `holds more than ${maxElements.toLocaleString("en")} values`;
      for (const value of inner) if (typeof value === "object" && value !== null) below.push(value);
    }
    level = below;
  }
  return undefined;
}
