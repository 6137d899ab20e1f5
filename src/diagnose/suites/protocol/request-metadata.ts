import { metaKeys } from "../../../wire/request-envelope.ts";
import { modernRevision } from "../../../wire/revisions.ts";
import { cameBack, errorOf, noModern, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/request-metadata",
  question: "Is a request without the client's capabilities refused with −32602?",
  severity: "minor",
  why: "In 2026-07-28 every request says what its client can do. A server that guesses instead may answer with questions or tasks that the client cannot handle.",
  remedy:
    "Refuse a request whose _meta lacks io.modelcontextprotocol/clientCapabilities with error −32602, over HTTP with status 400.",
  source: "MCP 2026-07-28, Overview: _meta, Per-request protocol fields",
  async run(probe) {
    if (probe.facts.modern === undefined) return skipped(noModern);
    const session = await probe.open({ revision: modernRevision });
    const answer = await session.request("server/discover", {}, { meta: { [metaKeys.clientCapabilities]: undefined } });
    const evidence = [probe.sent("server/discover without clientCapabilities in _meta"), cameBack(probe, answer)];
    const one = (title: string, severity: Fault["severity"] = "minor") => verdictOf([{ title, severity, evidence }]);
    const error = errorOf(answer.message);
    if (answer.result !== undefined) return one("A request without clientCapabilities is answered as if it had them");
    if (error === undefined) return one("A request without clientCapabilities is not answered", "major");
    if (error.code !== -32602)
      return one("A request without clientCapabilities is refused with another error than −32602");
    if (answer.http !== undefined && answer.http.status !== 400)
      return one("The refusal of a request without clientCapabilities has another HTTP status than 400");
    return passed();
  },
};
