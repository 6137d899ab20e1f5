import { fieldsOf, listOf } from "../../../wire/json.ts";
import { metaKeys } from "../../../wire/request-envelope.ts";
import { modernRevision } from "../../../wire/revisions.ts";
import { cameBack, errorOf, noModern, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, passed, skipped } from "../../check.ts";

const asked = "2099-01-01";

export const check: Check = {
  id: "protocol/unsupported-version",
  question: "Is a request of an unknown revision refused with −32022 and the list of those that work?",
  severity: "major",
  why: "This error is how a newer client learns which revision to use. Without it, or without its list, the client falls back to initialize or gives up.",
  remedy:
    'Answer with error −32022 and data { "supported": ["2026-07-28"], "requested": "…" }; over HTTP with status 400.',
  source: "MCP 2026-07-28, Versioning: Protocol Version Negotiation; Streamable HTTP: Protocol Version Header",
  async run(probe) {
    if (probe.facts.modern === undefined) return skipped(noModern);
    const session = await probe.open({ revision: modernRevision });
    const answer = await session.request(
      "server/discover",
      {},
      { meta: { [metaKeys.revision]: asked }, headers: { "mcp-protocol-version": asked } },
    );
    const evidence = [probe.sent(`server/discover with protocolVersion ${asked}`), cameBack(probe, answer)];
    const one = (title: string, severity: Fault["severity"] = "major") => verdictOf([{ title, severity, evidence }]);
    const error = errorOf(answer.message);
    if (answer.result !== undefined) return one("A request of a revision that does not exist is answered as if it did");
    if (error === undefined) return one("A request of an unknown revision is not answered");
    if (error.code !== -32022) return one("A request of an unknown revision is refused with another error than −32022");
    const supported = listOf(fieldsOf(error.data).supported);
    if (!supported.includes(modernRevision)) return one("The error −32022 does not say which revisions are supported");
    if (answer.http !== undefined && answer.http.status !== 400)
      return one("The error −32022 comes with another HTTP status than 400", "minor");
    return passed();
  },
};
