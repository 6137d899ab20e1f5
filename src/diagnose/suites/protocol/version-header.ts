import { hasVersionHeader } from "../../../wire/revisions.ts";
import { cameBack, noLegacy } from "../../asking/protocol/raw-requests.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

const unknown = "2099-01-01";

export const check: Check = {
  id: "protocol/version-header",
  question: "Is a request refused whose MCP-Protocol-Version header names an unknown revision?",
  severity: "minor",
  why: "The header says by which rules a message is meant. A server that ignores it reads messages of a newer client by older rules, and both are wrong without noticing.",
  remedy: "Answer with HTTP status 400 when MCP-Protocol-Version is none of the revisions you implement.",
  source: "MCP 2025-11-25, Transports: Protocol Version Header",
  transport: "http",
  async run(probe) {
    const { legacy } = probe.facts;
    if (legacy === undefined) return skipped(noLegacy);
    if (!hasVersionHeader(legacy.revision))
      return skipped(`${probe.show(legacy.revision, 20)} does not have this header yet.`);
    const session = await probe.open({ revision: legacy.revision });
    const answer = await session.request("ping", {}, { headers: { "mcp-protocol-version": unknown } });
    if (answer.http?.status === 400) return passed();
    return failed({
      title: "A request with an unknown MCP-Protocol-Version is not refused with HTTP status 400",
      evidence: [probe.sent(`ping with MCP-Protocol-Version: ${unknown}`), cameBack(probe, answer)],
    });
  },
};
