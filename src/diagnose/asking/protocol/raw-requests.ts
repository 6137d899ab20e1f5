import { isObject, type Json } from "../../../wire/json.ts";
import { toEnvelope } from "../../../wire/request-envelope.ts";
import { hasVersionHeader } from "../../../wire/revisions.ts";
import { type Evidence, type Fault, failed, passed, type Verdict } from "../../check.ts";
import { httpCarrier, pipeCarrier, type RawAnswer } from "../../wire/carriers.ts";
import type { ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";
import type { PrintedLine } from "../../wire/server-pipe.ts";
import type { Facts } from "../facts.ts";
import type { Probe } from "../probe.ts";

/** What the checks of this suite have in common: the eras, messages as they are on the wire, and how they are shown. */

export const noModern = "The server does not speak 2026-07-28.";
export const noLegacy = "The server does not speak a revision that begins with initialize.";

/** The revisions a server was seen to speak, newest first. */
export function revisionsOf({ modern, legacy }: Facts): string[] {
  return [modern, legacy].flatMap((era) => (era === undefined ? [] : [era.revision]));
}

/**
 * Where to ask what both eras have in common: over HTTP in each; over pipes in the newest, because every conversation
 * starts a process.
 */
export function revisionsToAsk(facts: Facts): string[] {
  const all = revisionsOf(facts);
  return facts.transport === "http" ? all : all.slice(0, 1);
}

/** A request that every server answers in its era, and that changes nothing. */
export function harmless(session: ProbeSession): string {
  return session.isModern ? "server/discover" : "ping";
}

/** True when the server answers a harmless request, whatever it has been through. */
export async function isAlive(session: ProbeSession): Promise<boolean> {
  const answers = async () => (await session.request(harmless(session), {})).message !== undefined;
  // What kills a process may strike a moment after it has answered.
  return (await answers()) && (session.pipe === undefined || (await answers()));
}

/** A way to a server that has heard nothing yet; each call sends one message as it is. */
export async function firstWords(
  probe: Probe,
): Promise<(message: Json, how?: { timeoutMs?: number; headers?: Record<string, string> }) => Promise<RawAnswer>> {
  const carrier =
    probe.target.kind === "http"
      ? httpCarrier((options) => probe.http(options))
      : pipeCarrier(await probe.startPipe(), probe.signal);
  return (message, { timeoutMs = probe.requestMs, headers = {} } = {}) =>
    carrier.send(message, { timeoutMs, headers, onOther: () => undefined });
}

export function initialize(protocolVersion: string, id: string | number = "hello"): Json {
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: "meanwhile-diagnose", version: "1" } };
  return { jsonrpc: "2.0", id, method: "initialize", params };
}

/** The headers of a conversation, for bodies that the conversation itself would not send. */
export function headersOf(session: ProbeSession, method: string): Record<string, string> {
  return {
    ...(session.sessionId !== undefined && { "mcp-session-id": session.sessionId }),
    ...(hasVersionHeader(session.revision) && { "mcp-protocol-version": session.revision }),
    ...(session.isModern && { "mcp-method": method }),
  };
}

/** A request as the conversation would write it. */
export function bodyOf(session: ProbeSession, method: string, id: string | number): string {
  const params = session.isModern ? { _meta: toEnvelope({ name: "meanwhile-diagnose", version: "1" }, {}) } : {};
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

/** What came for a message: its status, and the answer or why there is none. */
export function cameBack(probe: Probe, { message, problem, http }: RawAnswer | ProbeAnswer): Evidence {
  const status = http === undefined || http.status === 0 ? "" : `HTTP ${http.status}: `;
  const said = message === undefined ? (problem ?? (http?.text || "(nothing)")) : JSON.stringify(message);
  return probe.received(`${status}${said}`);
}

/** The error of an answer; undefined where there is none. */
export function errorOf(
  message: Json | undefined,
): { readonly code: unknown; readonly message: unknown; readonly data: unknown } | undefined {
  return isObject(message?.error)
    ? { code: message.error.code, message: message.error.message, data: message.error.data }
    : undefined;
}

/** Passed when nothing is wrong. */
export function verdictOf(faults: readonly Fault[], note?: string): Verdict {
  return faults.length === 0 ? passed(note) : failed(faults);
}

/** True for a line that a client reads as a message. */
export function isMessage({ json }: PrintedLine): boolean {
  // What is wrong inside a message is the envelope's business.
  return isObject(json) && (json.jsonrpc === "2.0" || json.id !== undefined);
}
