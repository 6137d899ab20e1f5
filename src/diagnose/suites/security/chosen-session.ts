import { createId } from "../../../ids.ts";
import { cameBack, urlOf, wentOut } from "../../asking/security/door.ts";
import { noSessions, openLegacy } from "../../asking/security/legacy-session.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

const shown = { "Mcp-Session-Id": "<an id of ours>" };

export const check: Check = {
  id: "security/chosen-session",
  question: "Does the server use only session ids that it has made itself?",
  severity: "major",
  why: "Whoever can make a victim's client use an id of their choice shares the session with it, and reads and sends what the victim does.",
  remedy:
    "Make a new id for each initialize, whatever Mcp-Session-Id came with it, and answer ids that you never gave out with 404.",
  source: "MCP 2025-11-25, Transports: Session Management; Security Best Practices: Session Hijacking",
  transport: "http",
  async run(probe) {
    const own = await openLegacy(probe);
    if (own?.sessionId === undefined) return skipped(noSessions);
    const chosen = createId();
    const { session, answer } = await probe.greet({
      revision: own.revision,
      credentials: { ...urlOf(probe).headers, "mcp-session-id": chosen },
    });
    if (session.sessionId === chosen)
      return failed({
        title: "The client chooses the session's id",
        evidence: [
          wentOut(probe, "initialize", shown),
          probe.received(`HTTP ${answer.http?.status ?? 0}, Mcp-Session-Id: <the same id>`),
        ],
      });
    const used = await own.request("tools/list", {}, { headers: { "mcp-session-id": createId() } });
    if (used.result === undefined) return passed();
    return failed({
      title: "A session id that nobody gave out is taken for a session",
      evidence: [wentOut(probe, "tools/list", shown), cameBack(probe, used)],
    });
  },
};
