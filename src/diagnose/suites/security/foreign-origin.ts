import type { Probe } from "../../asking/probe.ts";
import { cameBack, foreignOrigin, isHeldByToken, knock, placeOf, urlOf, wentOut } from "../../asking/security/door.ts";
import { preflight } from "../../asking/security/preflight.ts";
import { type Check, failed, passed, type Severity } from "../../check.ts";
import type { HttpAnswer } from "../../wire/probe-http.ts";

export const check: Check = {
  id: "security/foreign-origin",
  question: "Does the server refuse requests that a web page of somebody else sends?",
  severity: "minor",
  why: "The Origin header says which page a browser sends a request for. A server that does not look at it can be used by pages that its user only visits.",
  remedy:
    "Answer requests with an Origin that is not on your list with 403; allow those without one, as programs send none.",
  source: "MCP 2025-11-25, Transports: Security Warning; MCP 2026-07-28, Streamable HTTP",
  transport: "http",
  async run(probe) {
    const target = urlOf(probe);
    const foreign = { origin: foreignOrigin };
    const { isOpen, answer } = await knock(probe, { ...target.headers, ...foreign });
    if (!isOpen) return passed();
    const evidence = [wentOut(probe, "a handshake and tools/list", { Origin: foreignOrigin }), cameBack(probe, answer)];
    const place = placeOf(target);
    if (place === "public" || (await isHeldByToken(probe, foreign))) {
      const severity: Severity = place === "public" ? "info" : "minor";
      return failed({
        title: "Requests of foreign web pages are taken when they carry what the server wants",
        severity,
        evidence,
      });
    }
    const allowed = await preflight(probe);
    if (allowsForeign(allowed))
      return failed({
        title: "Any web page may call the tools and read the results",
        severity: "major",
        evidence: [...evidence, shown(probe, allowed)],
      });
    if (await takesPlainText(probe))
      return failed({
        title: "Any web page can have tools called, though it does not see the results",
        severity: "major",
        evidence: [
          ...evidence,
          wentOut(probe, "tools/list", { Origin: foreignOrigin, "Content-Type": "text/plain" }),
          probe.received("a result"),
        ],
      });
    return failed({ title: "Requests of foreign web pages are taken; only the browser holds them back", evidence });
  },
};

/** A browser lets the page send JSON, and see what comes back. */
function allowsForeign({ status, headers }: HttpAnswer): boolean {
  return status < 400 && ["*", foreignOrigin].includes(headers["access-control-allow-origin"] ?? "");
}

/** What a browser sends without asking first. */
async function takesPlainText(probe: Probe): Promise<boolean> {
  const session = await probe.open({ credentials: { ...urlOf(probe).headers, origin: foreignOrigin } });
  const { result } = await session.request("tools/list", {}, { headers: { "content-type": "text/plain" } });
  return result !== undefined;
}

function shown(probe: Probe, { status, headers }: HttpAnswer) {
  return probe.received(
    `HTTP ${status} to OPTIONS, Access-Control-Allow-Origin: ${headers["access-control-allow-origin"] ?? "(none)"}`,
  );
}
