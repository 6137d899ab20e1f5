import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { anonymous, type Caller } from "../../command/caller.ts";
import { thisProgram } from "../../program/program.ts";
import type { DoorRequest, NodeRequest } from "./door-request.ts";
import type { HttpOptions } from "./http-door.ts";
import { HttpRefusal } from "./http-refusal.ts";

/** Who may come in by HTTP, and as whom. */

/** The names of this machine that a Host or Origin header may have. */
const ownNames = new Set(["localhost", "127.0.0.1", "[::1]"]);

export type Admission = Pick<HttpOptions, "token" | "localUser" | "allowAnonymous" | "identify">;

/** Who asks; throws what somebody is refused with who may not come in. */
export function callerOf(request: NodeRequest, { token, localUser, allowAnonymous, identify }: Admission): Caller {
  const known = identify?.(request.original);
  if (known !== undefined) return known;
  if (hasTokenInUrl(request.original))
    throw new HttpRefusal(401, `A token in the URL is not taken, because URLs are kept and logged; ${cure()}.`);
  const authorization = request.header("authorization");
  if (request.isRepeated("authorization"))
    throw new HttpRefusal(401, `There is more than one Authorization header; ${cure()}, once.`);
  if (authorization === undefined) {
    if (allowAnonymous) return anonymous;
    throw new HttpRefusal(401, `This server wants to know who calls; ${cure()}, or start it with --allow-anonymous.`);
  }
  const given = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  if (given === undefined) throw new HttpRefusal(401, `The Authorization header holds no bearer token; ${cure()}.`);
  if (!isSameSecret(Buffer.from(given), Buffer.from(token())))
    throw new HttpRefusal(401, `The bearer token is not this home's; ${cure()}.`);
  return localUser;
}

/** Whose requests are taken: the names that we have, and how somebody is told who calls us by another. */
export interface OwnNames {
  has(name: string): boolean;
  readonly hostRule: string;
  readonly originRule: string;
}

/** Of a server with a listener of its own. */
export const machineNames: OwnNames = {
  has: (name) => ownNames.has(name),
  hostRule: "The Host header must name this machine, e.g. localhost",
  originRule: "Requests from other web pages are refused",
};

/** Of one inside an app, which others may know by another name. */
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
  const { host, method } = request;
  const { hostRule, originRule } = names;
  if (host === undefined || host === "") throw new HttpRefusal(403, `${hostRule}: Missing Host header`);
  if (request.isRepeated("host")) throw new HttpRefusal(400, "There is more than one Host header; send one.");
  const name = /[/?#@]/.test(host) ? undefined : nameIn(`http://${host}`);
  if (name === undefined) throw new HttpRefusal(403, `${hostRule}: Invalid Host header: ${host}`);
  if (!names.has(name)) throw new HttpRefusal(403, `${hostRule}: Invalid Host: ${name}`);
  const origin = request.header("origin");
  if (origin !== undefined && origin !== "") {
    const from = nameIn(origin);
    if (from === undefined || from === "")
      throw new HttpRefusal(403, `${originRule}: Invalid Origin header: ${origin}`);
    if (!names.has(from)) throw new HttpRefusal(403, `${originRule}: Invalid Origin: ${from}`);
  }
  const hasBody = method !== "GET" && method !== "HEAD" && method !== "DELETE" && method !== "OPTIONS";
  if (hasBody && !isJson(request.header("content-type")))
    throw new HttpRefusal(415, "Content-Type must be application/json.");
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

/** What every caller who is refused for want of a token is told. */
const cure = () => `send \`Authorization: Bearer …\` with what \`${thisProgram.name} token\` prints`;

/** A proxy is asked with the whole address: its host counts, as that of a Host header does. */
export function pathOf({ url = "/" }: IncomingMessage): string {
  if (url === "/mcp") return url;
  if (url.startsWith("/")) return url.split("?", 1)[0] as string;
  if (!URL.canParse(url)) throw new HttpRefusal(400, "The target of the request is no path.");
  const { hostname, pathname } = new URL(url);
  if (!ownNames.has(hostname))
    throw new HttpRefusal(403, `The target must name this machine, e.g. localhost: Invalid Host: ${hostname}`);
  return pathname;
}

function hasTokenInUrl({ url = "/" }: IncomingMessage): boolean {
  const at = url.indexOf("?");
  if (at === -1) return false;
  const query = new URLSearchParams(url.slice(at + 1));
  return query.has("access_token") || query.has("token");
}

/** Compares in a time that tells nothing; an empty secret is none. */
function isSameSecret(given: Buffer, expected: Buffer): boolean {
  return expected.length > 0 && given.length === expected.length && timingSafeEqual(given, expected);
}
