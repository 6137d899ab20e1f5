import { isUtf8 } from "node:buffer";
import { ProtocolError, RpcCode, requestErrors } from "../errors.ts";
import { hasClaim, isModernClaim, refuseIssue, toIssueError } from "./claim.ts";
import { excerptOf, fieldsOf, isObject, type Json, textOf } from "./json.ts";
import type { Message } from "./message.ts";
import { markedValue, metaKeys, paramMarks } from "./request-envelope.ts";
import { isModern, modernRevision } from "./revisions.ts";

/** How an HTTP server reads which revision a message is of, and whether its headers say the same as its body. */

export interface Headed {
  /** By its name in lower case; of one that was sent more than once, all that was said. */
  header(name: string): string | undefined;
}

/** What a message is about, by method: the field that its `Mcp-Name` header repeats. */
const subjects: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** True for a message of 2026-07-28 or later; throws what one is refused with that says two things at once. */
export function isModernMessage({ id, method, params = {} }: Message, request: Headed): boolean {
  if (method === undefined) return false;
  const meta = isObject(params._meta) ? params._meta : undefined;
  const version = headerOf(request, "mcp-protocol-version");
  const namesModern = version !== undefined && isModern(version);
  if (id === undefined) return isModernNotification(method, meta, request, namesModern);
  if (method === "initialize" && !(meta !== undefined && isModernClaim(meta))) {
    if (namesModern)
      throw mismatch(
        version,
        "an initialize request (legacy handshake) was sent with a modern MCP-Protocol-Version header",
      );
    return false;
  }
  if (meta === undefined || !hasClaim(meta)) {
    if (namesModern) throw missingEnvelope(version, meta);
    return false;
  }
  refuseIssue(meta);
  refuseOtherVersion(meta, version);
  refuseOtherMethod(method, request);
  return true;
}

function isModernNotification(method: string, meta: Json | undefined, request: Headed, namesModern: boolean): boolean {
  if (meta === undefined || !hasClaim(meta)) {
    if (namesModern) refuseOtherMethod(method, request);
    return namesModern;
  }
  if (typeof meta[metaKeys.revision] !== "string")
    throw toIssueError({ key: metaKeys.revision, problem: "expected a protocol version string" });
  refuseOtherVersion(meta, headerOf(request, "mcp-protocol-version"));
  if (isModern(meta[metaKeys.revision] as string)) refuseOtherMethod(method, request);
  return true;
}

/**
 * Throws what a request of 2026-07-28 is refused with whose revision is unknown, or whose headers are not those that it
 * has to have.
 */
export function checkRouting({ method = "", params = {} }: Message, request: Headed): void {
  const revision = textOf(fieldsOf(params._meta)[metaKeys.revision]);
  if (revision !== modernRevision) throw unsupportedRevision(revision);
  if (headerOf(request, "mcp-protocol-version") === undefined)
    throw mismatch(
      "(missing)",
      `the body envelope names protocol version ${revision} but the required MCP-Protocol-Version header is absent`,
    );
  if (headerOf(request, "mcp-method") === undefined)
    throw mismatch(
      "(missing)",
      `the body names method ${excerptOf(method)} but the required Mcp-Method header is absent`,
    );
  const field = Object.hasOwn(subjects, method) ? subjects[method] : undefined;
  if (field !== undefined) checkName(field, textOf(params[field]), headerOf(request, "mcp-name"));
}

function checkName(field: string, subject: string | undefined, header: string | undefined): void {
  const said = () => `the body carries params.${field}="${excerptOf(subject ?? "")}"`;
  if (header === undefined) {
    if (subject !== undefined) throw mismatch("(missing)", `${said()} but the required Mcp-Name header is absent`);
    return;
  }
  const decoded = decodeHeader(header);
  if (decoded === undefined) throw mismatch(header, "the Mcp-Name header carries an invalid Base64 sentinel value");
  if (subject !== undefined && decoded !== subject)
    throw mismatch(header, `${said()} but the Mcp-Name header names "${excerptOf(decoded)}"`);
}

/**
 * Throws what a call is refused with whose arguments are not those that its `Mcp-Param-*` headers repeat, as the tool's
 * schema marks them.
 */
export function checkParamHeaders(schema: Json, args: unknown, request: Headed): void {
  for (const mark of paramMarks(schema)) {
    const { header, path, isNumber } = mark;
    const value = markedValue(mark, args);
    const isTold =
      typeof value === "string" ||
      typeof value === "boolean" ||
      (typeof value === "number" && (!Number.isInteger(value) || Number.isSafeInteger(value)));
    if (!isTold) continue;
    const name = `Mcp-Param-${header}`;
    const said = `the body carries ${path.join(".")}=${excerptOf(JSON.stringify(value))}`;
    const given = headerOf(request, name.toLowerCase());
    if (given === undefined) throw mismatch(name, `${said} but the ${name} header is absent`);
    const decoded = decodeHeader(given);
    if (decoded === undefined) throw mismatch(name, `the ${name} header carries an invalid Base64 sentinel value`);
    const isSame =
      isNumber && typeof value === "number" && /^-?\d+(\.\d+)?$/.test(decoded)
        ? Number(decoded) === value
        : decoded === String(value);
    if (!isSame)
      throw mismatch(name, `the ${name} header decodes to ${excerptOf(JSON.stringify(decoded))} but ${said}`);
  }
}

export function unsupportedRevision(requested = "unknown"): ProtocolError {
  return new ProtocolError(RpcCode.UnsupportedRevision, `Unsupported protocol version: ${excerptOf(requested)}`, {
    supported: [modernRevision],
    requested: excerptOf(requested),
  });
}

function refuseOtherVersion(meta: Json, version: string | undefined): void {
  const claimed = meta[metaKeys.revision] as string;
  if (version !== undefined && version !== claimed)
    throw mismatch(
      version,
      `the body envelope names protocol version ${excerptOf(claimed)} but the MCP-Protocol-Version header names ${version}`,
    );
}

function refuseOtherMethod(method: string, request: Headed): void {
  const named = headerOf(request, "mcp-method");
  if (named !== undefined && named !== method)
    throw mismatch(named, `the body names method ${excerptOf(method)} but the Mcp-Method header names ${named}`);
}

function missingEnvelope(version: string, meta: Json | undefined): ProtocolError {
  const keys = [metaKeys.revision, metaKeys.clientCapabilities];
  const missing = meta === undefined ? ["_meta"] : keys.filter((key) => meta[key] === undefined);
  const text = `Invalid params: the MCP-Protocol-Version header names protocol revision ${version}, but the request is missing the required per-request envelope key(s): ${missing.join(", ")}`;
  return new ProtocolError(requestErrors.params.code, text, { envelope: { missing } });
}

function mismatch(header: string, body: string): ProtocolError {
  return new ProtocolError(RpcCode.HeaderMismatch, `Bad Request: the request headers and body disagree: ${body}`, {
    mismatch: { header, body },
  });
}

function headerOf(request: Headed, name: string): string | undefined {
  return request.header(name)?.trim();
}

function decodeHeader(value: string): string | undefined {
  const encoded = /^=\?base64\?(.*)\?=$/s.exec(value)?.[1];
  if (encoded === undefined) return value;
  const bytes = Buffer.from(encoded, "base64");
  return bytes.toString("base64") === encoded && isUtf8(bytes) ? bytes.toString("utf8") : undefined;
}
