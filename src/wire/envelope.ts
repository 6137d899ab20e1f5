import { fieldsOf, type Json, textOf } from "./json.ts";
import { modernRevision } from "./revisions.ts";

/** What a request of 2026-07-28 says about itself: who asks, in its `_meta`; and what it is about, in headers that proxies can read. */

export const metaKeys = {
  revision: "io.modelcontextprotocol/protocolVersion",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  logLevel: "io.modelcontextprotocol/logLevel",
  relatedTask: "io.modelcontextprotocol/related-task",
  subscription: "io.modelcontextprotocol/subscriptionId",
} as const;

/** The `_meta` of who asks. */
export function toEnvelope(clientInfo: Json, clientCapabilities: Json): Json {
  return { [metaKeys.revision]: modernRevision, [metaKeys.clientInfo]: clientInfo, [metaKeys.clientCapabilities]: clientCapabilities };
}

/** What a request is about: a tool, a resource, a task. */
export function subjectOf(params: Json): string | undefined {
  return textOf(params.name) ?? textOf(params.uri) ?? textOf(params.taskId);
}

/** The headers that tell a proxy where a request belongs. */
export function routingHeaders(revision: string, method: string, params: Json = {}): Record<string, string> {
  const subject = subjectOf(params);
  return { "mcp-protocol-version": revision, "mcp-method": method, ...(subject !== undefined && { "mcp-name": headerValue(subject) }) };
}

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
