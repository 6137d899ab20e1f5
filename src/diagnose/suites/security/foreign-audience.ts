import { cameBack, knock, toWrong, urlOf, wentOut, withoutCredentials } from "../../asking/security/door.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "security/foreign-audience",
  question: "Does the server refuse tokens that were issued for another server?",
  severity: "blocker",
  why: "Another server that a user has signed in at holds such a token, and can act here as that user.",
  remedy:
    "Accept only tokens whose audience (`aud`) is this server's own URL, or the value that your identity provider issues for it alone. Answer others with 401.",
  source:
    "RFC 8707; RFC 9068, 4; MCP 2025-11-25 and 2026-07-28, Authorization: Token Audience Binding and Validation (MUST)",
  transport: "http",
  async run(probe) {
    const { headers, foreignHeaders } = urlOf(probe);
    if (foreignHeaders === undefined)
      return skipped(
        "It takes a token that the same issuer has issued for another server; give it with --foreign-header 'Authorization: Bearer …'.",
      );
    const others = withoutCredentials(headers);
    if ((await knock(probe, others)).isOpen)
      return skipped("The server works without credentials; see security/no-credentials.");
    if ((await knock(probe, { ...others, ...toWrong(foreignHeaders) })).isOpen)
      return skipped("The server accepts any token; see security/wrong-credentials.");
    const { isOpen, answer } = await knock(probe, { ...others, ...foreignHeaders });
    if (!isOpen) return passed();
    return failed({
      title: "The server accepts a token that was issued for another server",
      evidence: [wentOut(probe, "a handshake and tools/list", foreignHeaders), cameBack(probe, answer)],
    });
  },
};
