import net from "node:net";
import { kindOf } from "../../../wire/address-kinds.ts";
import type { Evidence } from "../../check.ts";
import type { HttpServerTarget } from "../../diagnosis-target.ts";
import type { ProbeAnswer, ProbeSession, SessionOptions } from "../../wire/probe-session.ts";
import type { Probe } from "../probe.ts";

/** Who may come in, and from where: what the checks of this suite have in common. */

export const foreignOrigin = "https://evil.example";
export const needsCredentials =
  "No credentials were given; give those that the server wants with --token-env NAME (or --header 'Name: value').";

/** The target of a check that is asked over HTTP only. */
export function urlOf({ target }: Probe): HttpServerTarget {
  if (target.kind !== "http") throw new Error("This is asked of servers with a URL only.");
  return target;
}

/**
 * Who can send a request to it: this machine, this network, or everybody. Judged by the address alone, without a
 * look-up.
 */
export function placeOf({ url }: Pick<HttpServerTarget, "url">): "loopback" | "private" | "public" {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  if (net.isIP(host) !== 0) return kindOf(host);
  if (host === "localhost" || host.endsWith(".localhost")) return "loopback";
  return !host.includes(".") || /\.(?:local|internal|intranet|lan|home|corp|test|home\.arpa)$/.test(host)
    ? "private"
    : "public";
}

/** The headers that say who is calling, of all that are sent. */
export function credentialsOf(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => /auth|cookie|key|token|secret|password|session/i.test(name)),
  );
}

/** All headers but those that say who is calling. */
export function withoutCredentials(headers: Readonly<Record<string, string>>): Record<string, string> {
  const credentials = credentialsOf(headers);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => credentials[name] === undefined));
}

/** Whether a door that opens with these headers is shut without what says who is calling. */
export async function isHeldByToken(probe: Probe, headers: Readonly<Record<string, string>>): Promise<boolean> {
  const { headers: own } = urlOf(probe);
  if (Object.keys(credentialsOf(own)).length === 0) return false;
  return !(await knock(probe, { ...withoutCredentials(own), ...headers })).isOpen;
}

/** Credentials of the same kind with another secret, which no server has given out. */
export function toWrong(credentials: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(credentials).map(([name, value]) => [name, toWrongValue(value)]));
}

function toWrongValue(value: string): string {
  const scheme = /^(?:Bearer|Basic|Token)\s+/i.exec(value)?.[0] ?? "";
  return `${scheme}${"d3JvbmctdG9rZW4tb2YtbWVhbndoaWxl".slice(0, Math.max(8, Math.min(value.length - scheme.length, 32)))}`;
}

/** What takes headers away from a request that would carry them. */
export function blanked(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, ""]));
}

interface Knock {
  /** It let us in: the handshake was taken, and its tools were listed. */
  readonly isOpen: boolean;
  /** What decided it. */
  readonly answer: ProbeAnswer;
  readonly session: ProbeSession;
}

/** Comes to the door with these headers and tries to get in. */
export async function knock(
  probe: Probe,
  headers: Readonly<Record<string, string>>,
  options: SessionOptions = {},
): Promise<Knock> {
  const { session, answer } = await probe.greet({ ...options, credentials: headers });
  if (answer.result === undefined) return { isOpen: false, answer, session };
  const tools = await session.request("tools/list", {});
  // A server without tools has none to list.
  const isOpen = tools.result !== undefined || (probe.facts.tools.length === 0 && !isRefusal(tools));
  return { isOpen, answer: isOpen ? answer : tools, session };
}

/** Comes to the door with nothing that says who is calling: neither in the headers nor in the address. */
export function knockAsNobody(probe: Probe): Promise<Knock> {
  const { url, headers } = urlOf(probe);
  return knock(probe, withoutCredentials(headers), { url: withoutSecrets(url) });
}

/** The names of what looks like a secret in an address. */
export function secretNamesIn(url: string): string[] {
  return [...new URL(url).searchParams.keys()].filter((name) => /token|key|secret|auth|password|sig/i.test(name));
}

/** An address without what looks like a secret in it; the rest may be needed to find the server. */
export function withoutSecrets(url: string): string {
  const names = secretNamesIn(url);
  if (names.length === 0) return url;
  const bare = new URL(url);
  for (const name of names) bare.searchParams.delete(name);
  return bare.href;
}

/** A plain no of the door, below the protocol. */
function isRefusal({ http }: ProbeAnswer): boolean {
  return http !== undefined && [400, 401, 403, 404, 405, 421].includes(http.status);
}

/** What came over HTTP, in a line. */
export function cameBack(probe: Probe, { http, message, problem }: ProbeAnswer): Evidence {
  const body = message === undefined ? (http?.text ?? "") : JSON.stringify(message);
  const status = http === undefined || http.status === 0 ? (problem ?? "nothing") : `HTTP ${http.status}`;
  return probe.received(body === "" ? status : `${status} ${body}`);
}

/** The beginning of a request as it was sent; credentials are not among the headers. */
export function wentOut(probe: Probe, what: string, headers: Readonly<Record<string, string>> = {}): Evidence {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return probe.sent([what, ...lines].join(", "));
}
