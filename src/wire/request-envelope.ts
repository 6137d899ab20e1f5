import { fieldsOf, type Json, textOf } from "./json.ts";
import { modernRevision } from "./revisions.ts";

/**
 * What a request says about itself: its ID; and on 2026-07-28 who asks, in its `_meta`, and what it is about, in headers
 * that proxies can read.
 */

/**
 * Max characters of a request ID. The ID is part of every answer and of every event about an answer, so its memory has
 * to be bounded.
 */
export const maxRequestIdLength = 256;

/** Returns true if the value can be the ID of a request: a whole number, or a string of at most 256 characters. */
export function isRequestId(id: unknown): id is string | number {
  return typeof id === "string" ? id.length <= maxRequestIdLength : Number.isSafeInteger(id);
}

export const metaKeys = {
  revision: "io.modelcontextprotocol/protocolVersion",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  logLevel: "io.modelcontextprotocol/logLevel",
  relatedTask: "io.modelcontextprotocol/related-task",
  subscription: "io.modelcontextprotocol/subscriptionId",
} as const;

/** From the daemon to the stdio proxy, which prints `text` on its stderr and passes nothing on. */
export const proxyNotice = "notifications/meanwhile/notice";

/** The `_meta` of who asks. */
export function toEnvelope(clientInfo: Json, clientCapabilities: Json): Json {
  return {
    [metaKeys.revision]: modernRevision,
    [metaKeys.clientInfo]: clientInfo,
    [metaKeys.clientCapabilities]: clientCapabilities,
  };
}

const envelopeKeys: ReadonlySet<string> = new Set([
  metaKeys.revision,
  metaKeys.clientInfo,
  metaKeys.clientCapabilities,
  metaKeys.logLevel,
]);

/** A request's params as they were before 2026-07-28: without who asks. */
export function withoutEnvelope(params: Json): Json {
  const said = fieldsOf(params._meta);
  if (!(metaKeys.revision in said)) return params;
  const meta = Object.entries(said);
  const kept = meta.filter(([key]) => !envelopeKeys.has(key));
  if (kept.length === meta.length) return params;
  const { _meta, ...rest } = params;
  return kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) };
}

/** What a request is about: a tool, a resource, a task. */
function subjectOf(params: Json): string | undefined {
  return textOf(params.name) ?? textOf(params.uri) ?? textOf(params.taskId);
}

/** The headers that tell a proxy where a request belongs. */
export function routingHeaders(revision: string, method: string, params: Json = {}): Record<string, string> {
  const subject = subjectOf(params);
  return {
    "mcp-protocol-version": revision,
    "mcp-method": method,
    ...(subject !== undefined && { "mcp-name": headerValue(subject) }),
  };
}

/** A text as a header's value; what a header cannot hold is sent as base64. */
export function headerValue(text: string): string {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}

/** An argument that a header repeats, as its tool's schema marks it with `x-mcp-header`. */
interface ParamMark {
  readonly header: string;
  readonly path: readonly string[];
  readonly isNumber: boolean;
}

const marksOf = new WeakMap<Json, readonly ParamMark[]>();

/** The arguments of a tool that headers repeat; looked for once. */
export function paramMarks(schema: Json): readonly ParamMark[] {
  let marks = marksOf.get(schema);
  if (marks === undefined) {
    marks = [...findMarks(schema, [])];
    marksOf.set(schema, marks);
  }
  return marks;
}

function* findMarks(schema: Json, path: readonly string[]): Iterable<ParamMark> {
  for (const [name, property] of Object.entries(fieldsOf(schema.properties))) {
    const { "x-mcp-header": mark, type } = fieldsOf(property);
    const header = textOf(mark);
    const own = [...path, name];
    if (header !== undefined && /^[\w!#$%&'*+.^`|~-]+$/.test(header))
      yield { header, path: own, isNumber: type === "integer" || type === "number" };
    yield* findMarks(fieldsOf(property), own);
  }
}

/** What a marked argument is among these. */
export function markedValue({ path }: ParamMark, args: unknown): unknown {
  return path.reduce((inner, key) => fieldsOf(inner)[key], args);
}

/** The headers that a tool's schema asks for, for these arguments. */
export function paramHeaders(schema: Json, args: Json): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const mark of paramMarks(schema)) {
    const value = markedValue(mark, args);
    if (typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value))
      headers[`Mcp-Param-${mark.header}`] = headerValue(String(value));
  }
  return headers;
}
