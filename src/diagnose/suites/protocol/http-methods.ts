import { hasVersionHeader } from "../../../wire/revisions.ts";
import type { Probe } from "../../asking/probe.ts";
import { firstWords, initialize, verdictOf } from "../../asking/protocol/raw-requests.ts";
import type { Check, Fault } from "../../check.ts";
import type { HttpAnswer } from "../../wire/probe-http.ts";

export const check: Check = {
  id: "protocol/http-methods",
  question: "Are GET and DELETE answered with a stream, an end of the session, or 405?",
  severity: "minor",
  why: "Clients open a GET stream for notifications and end their session with DELETE. They read 405 as “not offered”; anything else is reported as an error or tried again and again.",
  remedy: "Answer GET with a text/event-stream or with HTTP status 405, and DELETE with 2xx or 405.",
  source:
    "MCP 2025-11-25, Transports: Listening for Messages from the Server, Session Management; MCP 2026-07-28, Streamable HTTP: Earlier Streamable HTTP Revisions",
  transport: "http",
  async run(probe) {
    const headers = await beginSession(probe);
    const faults: Fault[] = [];
    const stream = await headOf(probe, headers);
    if (!(stream.status === 405 || (stream.status === 200 && stream.isStream)))
      faults.push({
        subject: "GET",
        title: "GET is answered neither with a stream nor with HTTP status 405",
        evidence: [shown(probe, "GET", stream)],
      });
    const ended = await probe.http({ method: "DELETE", headers, timeoutMs: Math.min(probe.requestMs, 2_000) });
    if (ended.status === 0 || ended.status >= 500)
      faults.push({
        subject: "DELETE",
        title: "DELETE is not answered, or with an error of the server",
        evidence: [shown(probe, "DELETE", ended)],
      });
    return verdictOf(faults);
  },
};

/** A session whose stream nobody has opened yet: there may be only one. */
async function beginSession(probe: Probe): Promise<Record<string, string>> {
  const { legacy, modern } = probe.facts;
  if (legacy === undefined) return { "mcp-protocol-version": modern?.revision ?? "" };
  const send = await firstWords(probe);
  const { http } = await send(initialize(legacy.revision));
  const id = http?.headers["mcp-session-id"];
  const headers = {
    ...(hasVersionHeader(legacy.revision) && { "mcp-protocol-version": legacy.revision }),
    ...(id !== undefined && { "mcp-session-id": id }),
  };
  await send({ jsonrpc: "2.0", method: "notifications/initialized" }, { headers });
  return headers;
}

/** A stream has no end to wait for. */
async function headOf(probe: Probe, headers: Record<string, string>): Promise<HttpAnswer> {
  const enough = new AbortController();
  return await probe.http({
    method: "GET",
    headers: { ...headers, accept: "text/event-stream" },
    timeoutMs: Math.min(probe.requestMs, 2_000),
    signal: enough.signal,
    onHead: () => enough.abort(),
  });
}

function shown(probe: Probe, method: string, { status, headers, error }: HttpAnswer) {
  return probe.received(
    `${method}: ${status === 0 ? (error ?? "no answer") : `HTTP ${status}, Content-Type: ${headers["content-type"] ?? "(none)"}`}`,
  );
}
