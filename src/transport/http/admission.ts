import type { IncomingMessage } from "node:http";
import type { Credentials } from "../../auth/authenticate.ts";
import { AuthenticationError } from "../../auth/authentication.ts";
import { challenge } from "../../auth/challenge.ts";
import type { ProtectedResource } from "../../auth/metadata.ts";
import type { Logger } from "../../log.ts";
import type { DoorRequest, NodeRequest } from "./door-request.ts";
import { HttpRefusal } from "./http-refusal.ts";

/** Which requests over HTTP are accepted. */

/** The names of this machine that a Host or Origin header may have. */
const ownNames = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** What identifies the caller of a request. */
export function credentialsOf(request: NodeRequest): Credentials {
  return {
    authorization: request.header("authorization"),
    isRepeated: request.isRepeated("authorization"),
    isInQuery: hasTokenInUrl(request.original),
  };
}

const statuses = { missing: 401, invalid: 401, unavailable: 503 };

/**
 * The HTTP error for what an authenticator has thrown, with the challenge of a 401. A cause is logged, and not told to
 * the client.
 */
export function toHttpRefusal(error: unknown, log: Logger, resource?: ProtectedResource): HttpRefusal {
  if (error instanceof HttpRefusal) return error;
  const { kind, message, cause } =
    error instanceof AuthenticationError
      ? error
      : new AuthenticationError("invalid", "The credential could not be checked.", { cause: error });
  if (cause !== undefined) log.warn(`a credential was not accepted: ${message}`, { error: cause });
  const status = statuses[kind];
  if (status !== 401 || resource === undefined) return new HttpRefusal(status, message);
  const why = kind === "missing" ? {} : { error: "invalid_token" as const, description: message };
  const header = challenge({ ...why, scope: resource.scopes, metadataUrl: resource.metadataUrl });
  return new HttpRefusal(status, message, { headers: { "www-authenticate": header } });
}

/** The names under which a server accepts requests, and the texts for requests with another name. */
export interface OwnNames {
  has(name: string): boolean;
  /** True for the origin of web pages that may call the server though they are of another host. */
  allowsOrigin?(origin: string): boolean;
  readonly hostRule: string;
  readonly originRule: string;
}

/** Names of a server with a listener of its own. */
export function serverNames(publicUrl: string | undefined, allowedOrigins: readonly string[]): OwnNames {
  const names = publicUrl === undefined ? machineNames : publicNames(publicUrl);
  return { ...names, allowsOrigin: (origin) => allowedOrigins.includes(origin) };
}

const machineNames: OwnNames = {
  has: (name) => ownNames.has(name),
  hostRule: "The Host header must name this machine, e.g. localhost",
  originRule: "Requests from other web pages are refused",
};

/** Names of a server inside an app, which clients may know by another name. */
export function publicNames(publicUrl: string | undefined): OwnNames {
  const publicName = publicUrl === undefined ? undefined : hostOf(publicUrl);
  return {
    has: (name) => ownNames.has(name) || name === publicName,
    hostRule: "The Host header must name this machine, e.g. localhost, or the host of `publicUrl`",
    originRule: "Requests from other web pages than those of this machine and of `publicUrl` are refused",
  };
}

function hostOf(publicUrl: string): string {
  const { protocol, hostname } = URL.canParse(publicUrl) ? new URL(publicUrl) : { protocol: "", hostname: "" };
  if (protocol === "http:" || protocol === "https:") return hostname;
  throw new TypeError(
    `\`publicUrl\` must be the http or https address that clients know, e.g. https://example.com/mcp; it is ${JSON.stringify(publicUrl)}.`,
  );
}

/** A web page must not reach us through its reader's browser: not by its own origin, not by a rebound name. */
export function refuseStrangers(request: DoorRequest, names: OwnNames): void {
  refuseForeignHost(request, names);
  const { originRule } = names;
  const origin = request.header("origin");
  if (origin !== undefined && origin !== "") {
    const from = nameIn(origin);
    if (from === undefined || from === "")
      throw new HttpRefusal(403, `${originRule}: Invalid Origin header: ${origin}`);
    if (!names.has(from) && names.allowsOrigin?.(origin) !== true)
      throw new HttpRefusal(403, `${originRule}: Invalid Origin: ${from}`);
  }
}

/** Throws a 415 refusal for a body of another type than JSON: a form on a web page can send those without being asked. */
export function refuseOtherTypes(request: DoorRequest): void {
  const { method } = request;
  const hasBody = method !== "GET" && method !== "HEAD" && method !== "DELETE" && method !== "OPTIONS";
  if (hasBody && !isJson(request.header("content-type")))
    throw new HttpRefusal(415, "Content-Type must be application/json.");
}

/** Refuses a request for a name that is not the server's: a web page may have rebound its own name to our address. */
export function refuseForeignHost(request: DoorRequest, names: OwnNames): void {
  const { host } = request;
  const { hostRule } = names;
  if (host === undefined || host === "") throw new HttpRefusal(403, `${hostRule}: Missing Host header`);
  if (request.isRepeated("host")) throw new HttpRefusal(400, "There is more than one Host header; send one.");
  const name = /[/?#@]/.test(host) ? undefined : nameIn(`http://${host}`);
  if (name === undefined) throw new HttpRefusal(403, `${hostRule}: Invalid Host header: ${host}`);
  if (!names.has(name)) throw new HttpRefusal(403, `${hostRule}: Invalid Host: ${name}`);
}

function isJson(type: string | undefined): boolean {
  return type === "application/json" || type?.split(";", 1)[0]?.trim().toLowerCase() === "application/json";
}

/** Names that were looked up, by the header they came in: a client sends the same one again and again. */
const namesIn = new Map<string, string | undefined>();
const maxNames = 100;

function nameIn(url: string): string | undefined {
  if (namesIn.has(url)) return namesIn.get(url);
  const name = URL.canParse(url) ? new URL(url).hostname : undefined;
  if (namesIn.size < maxNames && url.length < 100) namesIn.set(url, name);
  return name;
}

/** A proxy is asked with the whole address: its host counts, as that of a Host header does. */
export function pathOf({ url = "/" }: IncomingMessage, names: OwnNames): string {
  if (url === "/mcp") return url;
  if (url.startsWith("/")) return url.split("?", 1)[0] as string;
  if (!URL.canParse(url)) throw new HttpRefusal(400, "The target of the request is no path.");
  const { hostname, pathname } = new URL(url);
  if (!names.has(hostname))
    throw new HttpRefusal(403, `The target must name this machine, e.g. localhost: Invalid Host: ${hostname}`);
  return pathname;
}

function hasTokenInUrl({ url = "/" }: IncomingMessage): boolean {
  const at = url.indexOf("?");
  if (at === -1) return false;
  const query = new URLSearchParams(url.slice(at + 1));
  return query.has("access_token") || query.has("token");
}
