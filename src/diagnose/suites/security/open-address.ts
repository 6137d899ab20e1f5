import { judgeArguments } from "../../asking/security/unrestricted.ts";
import type { Check } from "../../check.ts";

const addressNames =
  /^(?:(?:base|target|source|image|file|page|site|webhook|callback|redirect|remote|server|api|feed|repo|download)_?)?(?:url|uri|urls|uris|href|endpoint|webhook|callback|hostname|host|proxy)$/i;

export const check: Check = {
  id: "security/open-address",
  question: "Do arguments that are addresses say which addresses they take?",
  severity: "info",
  why: "A tool that fetches whatever address it is given can be led to the machine's own services and to the metadata of its cloud (SSRF).",
  remedy:
    'Narrow the argument (an enum, a pattern, or at least format: "uri"), and in the tool refuse private and link-local addresses after the name is looked up, redirects included.',
  source: "MCP Security Best Practices: Server-Side Request Forgery; OWASP, SSRF",
  isStatic: true,
  run: async (probe) => judgeArguments(probe, addressNames, "an address"),
};
