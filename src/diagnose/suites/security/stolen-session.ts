import {
  blanked,
  cameBack,
  credentialsOf,
  knock,
  needsCredentials,
  urlOf,
  wentOut,
  withoutCredentials,
} from "../../asking/security/door.ts";
import { noSessions, openLegacy } from "../../asking/security/legacy-session.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "security/stolen-session",
  question: "Is a session of no use to somebody else who learns its id?",
  severity: "major",
  why: "Session ids stand in logs and proxies. A server that takes the id for the caller hands the session, its tasks and its messages to whoever has read it.",
  remedy:
    "Check the credentials of every request, bind each session to the caller who began it, and answer others with 404.",
  source: "MCP Security Best Practices: Session Hijacking (MUST NOT use sessions for authentication); CVE-2026-52869",
  transport: "http",
  async run(probe) {
    const { headers, otherHeaders } = urlOf(probe);
    const credentials = credentialsOf(headers);
    if (Object.keys(credentials).length === 0) return skipped(needsCredentials);
    const session = await openLegacy(probe);
    if (session?.sessionId === undefined) return skipped(noSessions);
    if ((await knock(probe, withoutCredentials(headers))).isOpen)
      return skipped("The server works without credentials; see security/no-credentials.");
    const faults: Fault[] = [];
    const nobody = await session.request("tools/list", {}, { headers: blanked(credentials) });
    if (nobody.result !== undefined)
      faults.push({
        subject: "no credentials",
        title: "The id of a session opens it without credentials",
        severity: "blocker",
        evidence: [wentOut(probe, "tools/list in the session, without credentials"), cameBack(probe, nobody)],
      });
    if (otherHeaders !== undefined) {
      const other = await session.request("tools/list", {}, { headers: { ...blanked(credentials), ...otherHeaders } });
      if (other.result !== undefined)
        faults.push({
          subject: "another caller",
          title: "A session can be used with another caller's credentials",
          evidence: [wentOut(probe, "tools/list in the session, with the other credentials"), cameBack(probe, other)],
        });
    }
    if (faults.length > 0) return failed(faults);
    return passed(
      otherHeaders === undefined
        ? "Give another caller's credentials with --other-header to ask it for them too."
        : undefined,
    );
  },
};
