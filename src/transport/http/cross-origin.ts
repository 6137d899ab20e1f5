import type { ServerResponse } from "node:http";
import type { OwnNames } from "./admission.ts";
import type { NodeRequest } from "./door-request.ts";
import { writeJson } from "./endpoint.ts";
import { HttpRefusal } from "./http-refusal.ts";

/** What browsers need before web pages of other origins may call the server, or read its metadata (CORS). */

const exposed = "WWW-Authenticate, Mcp-Session-Id, Retry-After";
/** Headers of MCP requests. Others are not allowed. */
const requestHeader = /^(authorization|content-type|accept|last-event-id|mcp-[a-z0-9-]+)$/i;
const maxHeaders = 50;
const preflightSeconds = 600;

/** Lets pages of an allowed origin read the response. Credentials of the browser, such as cookies, are never allowed. */
export function allowOrigin(request: NodeRequest, response: ServerResponse, names: OwnNames): boolean {
  const origin = request.header("origin");
  if (origin === undefined || names.allowsOrigin?.(origin) !== true) return false;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-expose-headers", exposed);
  response.setHeader("vary", "Origin");
  return true;
}

/** Answers a request in which a browser asks what a page may send. False for any other request. */
export function answerPreflight(request: NodeRequest, response: ServerResponse): boolean {
  if (request.method !== "OPTIONS" || request.header("access-control-request-method") === undefined) return false;
  const names = (request.header("access-control-request-headers") ?? "").split(",").map((name) => name.trim());
  response.writeHead(204, {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": names
      .filter((name) => requestHeader.test(name))
      .slice(0, maxHeaders)
      .join(", "),
    "access-control-max-age": String(preflightSeconds),
  });
  response.end();
  return true;
}

/** Answers with a document that any page may read, because nothing in it is secret. */
export function answerMetadata({ method }: NodeRequest, response: ServerResponse, metadata: object): void {
  const open = { "access-control-allow-origin": "*" };
  if (method === "GET" || method === "HEAD") return void writeJson(response, 200, metadata, open);
  if (method !== "OPTIONS")
    throw new HttpRefusal(405, "The metadata is read by GET.", { headers: { allow: "GET, HEAD, OPTIONS" } });
  const allowed = { "access-control-allow-methods": "GET, HEAD", "access-control-allow-headers": "*" };
  response.writeHead(204, { ...open, ...allowed, "access-control-max-age": String(preflightSeconds) });
  response.end();
}
