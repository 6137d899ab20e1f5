import { foreignOrigin } from "../../asking/security/door.ts";
import { preflight } from "../../asking/security/preflight.ts";
import { type Check, failed, passed } from "../../check.ts";

export const check: Check = {
  id: "security/open-cors",
  question: "Does the server keep foreign web pages from acting with its user's cookies?",
  severity: "major",
  why: "With Access-Control-Allow-Credentials a browser sends the user's cookies along, so a page that the user only visits acts as the user.",
  remedy:
    "Name the origins that you trust in Access-Control-Allow-Origin, or leave Access-Control-Allow-Credentials out; never send back whatever Origin came.",
  source: "Fetch Standard, CORS protocol and credentials; MCP Security Best Practices",
  transport: "http",
  isForLocked: true,
  async run(probe) {
    const { status, headers } = await preflight(probe);
    const allowed = headers["access-control-allow-origin"] ?? "";
    const withCookies = headers["access-control-allow-credentials"] === "true";
    if (!withCookies || !["*", foreignOrigin].includes(allowed)) return passed();
    const evidence = [
      probe.sent(`OPTIONS, Origin: ${foreignOrigin}, Access-Control-Request-Method: POST`),
      probe.received(`HTTP ${status}, Access-Control-Allow-Origin: ${allowed}, Access-Control-Allow-Credentials: true`),
    ];
    // Browsers refuse this pair, so it does no harm yet.
    if (allowed === "*")
      return failed({
        title: "Every web page is allowed credentials, which browsers refuse",
        severity: "minor",
        evidence,
      });
    return failed({ title: "Every web page may act with its visitor's cookies", evidence });
  },
};
