import { fieldsOf, type Json, textOf } from "../wire/json.ts";
import type { ToolResult } from "./client.ts";

/** A result as every caller may read it. Nothing is taken from it. */
export function toToolResult(result: Json): ToolResult {
  return (Array.isArray(result.content) ? result : { ...result, content: [] }) as unknown as ToolResult;
}

/** The first text in a result; empty when there is none. */
export function firstTextOf({ content }: Json): string {
  const [first] = Array.isArray(content) ? content : [];
  return textOf(fieldsOf(first).text) ?? "";
}
