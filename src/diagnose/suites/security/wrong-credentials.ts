import {
  cameBack,
  credentialsOf,
  knock,
  needsCredentials,
  urlOf,
  wentOut,
  withoutCredentials,
} from "../../asking/security/door.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "security/wrong-credentials",
  question: "Does the server refuse credentials that it never gave out?",
  severity: "blocker",
  why: "A door that only looks whether there is a token, not whether it is the right one, is open to everybody.",
  remedy:
    "Check every token: its signature or its stored hash, its issuer, its audience and its end. Answer a wrong one with 401.",
  source: "MCP 2025-11-25 and 2026-07-28, Authorization: Access Token Usage",
  transport: "http",
  async run(probe) {
    const { headers } = urlOf(probe);
    const credentials = credentialsOf(headers);
    if (Object.keys(credentials).length === 0) return skipped(needsCredentials);
    const others = withoutCredentials(headers);
    if ((await knock(probe, others)).isOpen)
      return skipped("The server works without credentials; see security/no-credentials.");
    const wrong = Object.fromEntries(Object.entries(credentials).map(([name, value]) => [name, toWrong(value)]));
    const { isOpen, answer } = await knock(probe, { ...others, ...wrong });
    if (!isOpen) return passed();
    return failed({
      title: "The server takes a token that nobody gave out",
      evidence: [wentOut(probe, "a handshake and tools/list", wrong), cameBack(probe, answer)],
    });
  },
};

/** The same kind of value, with another secret. */
function toWrong(value: string): string {
  const scheme = /^(?:Bearer|Basic|Token)\s+/i.exec(value)?.[0] ?? "";
  return `${scheme}${"d3JvbmctdG9rZW4tb2YtbWVhbndoaWxl".slice(0, Math.max(8, Math.min(value.length - scheme.length, 32)))}`;
}
