import { fieldsOf, type Json, textOf } from "./message.ts";

/** `Mcp-Name` and `Mcp-Param-*` of 2026-07-28: what a request is about, where proxies can read it. */

/** A text as a header's value; what a header cannot hold is sent as base64. */
export function headerValue(text: string): string {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}

/** The headers that a tool's schema asks for with `x-mcp-header`, for these arguments. */
export function paramHeaders(schema: Json, args: Json): Record<string, string> {
  const headers: Record<string, string> = {};
  const visit = (properties: Json, values: Json): void => {
    for (const [name, property] of Object.entries(properties)) {
      const { "x-mcp-header": mark, properties: inner } = fieldsOf(property);
      const value = values[name];
      const header = textOf(mark);
      const isToken = header !== undefined && /^[\w!#$%&'*+.^`|~-]+$/.test(header);
      if (isToken && (typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value)))
        headers[`Mcp-Param-${header}`] = headerValue(String(value));
      if (inner !== undefined) visit(fieldsOf(inner), fieldsOf(value));
    }
  };
  visit(fieldsOf(schema.properties), args);
  return headers;
}
