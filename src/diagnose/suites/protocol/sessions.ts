import type { Probe } from "../../asking/probe.ts";
import { bodyOf, headersOf, noLegacy, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Evidence, type Fault, skipped } from "../../check.ts";
import type { HttpAnswer } from "../../wire/probe-http.ts";

const madeUp = "00000000-0000-4000-8000-000000000000";

export const check: Check = {
  id: "protocol/sessions",
  question: "Are session ids sendable, and unknown or ended ones refused with HTTP status 404?",
  severity: "major",
  why: "HTTP status 404 is how a client learns that its session is gone, after a restart of the server for one, and begins a new one. With any other answer every later call fails until the user restarts the host.",
  remedy:
    "Answer a request with an MCP-Session-Id that you do not know, or have ended, with HTTP status 404, and one without it with 400.",
  source: "MCP 2025-11-25, Transports: Session Management",
  transport: "http",
  async run(probe) {
    const { legacy } = probe.facts;
    if (legacy === undefined) return skipped(noLegacy);
    const session = await probe.open({ revision: legacy.revision });
    const { sessionId } = session;
    if (sessionId === undefined) return skipped("The server gives no session ids.");
    const faults: Fault[] = [];
    const send = (headers: Record<string, string>) => probe.http({ body: bodyOf(session, "ping", "session"), headers });
    const own = headersOf(session, "ping");
    const { "mcp-session-id": _id, ...bare } = own;

    if (!/^[\x21-\x7e]+$/.test(sessionId))
      faults.push({
        subject: "characters",
        title: "The session id holds other characters than visible ASCII",
        evidence: [],
      });

    const missing = await send(bare);
    if (missing.status === 0 || missing.status >= 500) {
      const title = "A request without a session id is not answered with HTTP status 400";
      faults.push({
        subject: "missing",
        title,
        severity: "minor",
        evidence: [probe.sent("ping without MCP-Session-Id"), shown(probe, missing)],
      });
    }

    const ended = await probe.http({ method: "DELETE", headers: own });
    const hasEnded = ended.status >= 200 && ended.status < 300;
    const after = await send(hasEnded ? own : { ...own, "mcp-session-id": madeUp });
    // Whether a server trusts ids that it never gave out is a question of security.
    if (after.status === 404 || (!hasEnded && after.status === 200)) return verdictOf(faults);
    const [subject, title, sent] = hasEnded
      ? [
          "ended",
          "A session that was ended is not refused with HTTP status 404",
          "DELETE, then ping with the same MCP-Session-Id",
        ]
      : [
          "unknown",
          "An unknown session id is not refused with HTTP status 404",
          "ping with a MCP-Session-Id that was never given out",
        ];
    return verdictOf([...faults, { subject, title, evidence: [probe.sent(sent), shown(probe, after)] }]);
  },
};

function shown(probe: Probe, { status, text, ended }: HttpAnswer): Evidence {
  return probe.received(status === 0 ? ended : `HTTP ${status}: ${text || "(nothing)"}`);
}
