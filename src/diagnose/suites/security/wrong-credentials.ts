import {
  cameBack,
  credentialsOf,
  knock,
  needsCredentials,
  toWrong,
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
    const wrong = toWrong(credentials);
    const { isOpen, answer } = await knock(probe, { ...others, ...wrong });
    if (!isOpen) return passed();
    return failed({
      title: "The server takes a token that nobody gave out",
      evidence: [wentOut(probe, "a handshake and tools/list", wrong), cameBack(probe, answer)],
    });
  },
};
