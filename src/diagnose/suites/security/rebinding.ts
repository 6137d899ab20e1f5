import { cameBack, isHeldByToken, knock, placeOf, urlOf, wentOut } from "../../asking/security/door.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "security/rebinding",
  question: "Does a local server refuse a web page that reaches it under another name?",
  severity: "blocker",
  why: "A page on the internet can have its own name lead to 127.0.0.1 (DNS rebinding). The reader's browser then calls the tools for it, and shows it the results.",
  remedy:
    "Compare the Host and Origin headers of every request with the names that you serve, e.g. localhost, 127.0.0.1 and [::1], and answer others with 403.",
  source: "MCP 2025-11-25, Transports: Security Warning; MCP 2026-07-28, Streamable HTTP; CVE-2025-66414",
  transport: "http",
  async run(probe) {
    const target = urlOf(probe);
    if (placeOf(target) === "public") return skipped("It is asked of servers on this machine or in a private network.");
    const { port } = new URL(target.url);
    const host = `evil.example${port === "" ? "" : `:${port}`}`;
    // As a browser sends it: to the page, the server is its own origin.
    const asPage = { host, origin: `http://${host}` };
    const { isOpen, answer } = await knock(probe, { ...target.headers, ...asPage });
    if (!isOpen) return passed();
    const evidence = [
      wentOut(probe, "a handshake and tools/list", { Host: "evil.example", Origin: "http://evil.example" }),
      cameBack(probe, answer),
    ];
    if (await isHeldByToken(probe, asPage))
      return failed({
        title: "A web page under another name is only held back by the token",
        severity: "minor",
        evidence,
      });
    return failed({ title: "Any web page that its user visits can call the tools", evidence });
  },
};
