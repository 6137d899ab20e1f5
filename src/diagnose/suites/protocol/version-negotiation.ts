import { fieldsOf, textOf } from "../../../wire/json.ts";
import { cameBack, errorOf, firstWords, initialize, noLegacy } from "../../asking/protocol/raw-requests.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

const asked = "2099-01-01";

export const check: Check = {
  id: "protocol/version-negotiation",
  question: "Does the server offer a revision of its own when a client asks for one it cannot know?",
  severity: "major",
  why: "A server that repeats whatever it is asked for promises rules it does not follow: a newer client believes it and fails later, where nobody looks for the cause.",
  remedy:
    "Compare protocolVersion with the revisions you implement, and answer with the newest of yours when it is none of them.",
  source: "MCP 2025-11-25, Lifecycle: Version Negotiation",
  limitMs: 25_000,
  async run(probe) {
    if (probe.facts.legacy === undefined) return skipped(noLegacy);
    const send = await firstWords(probe);
    const answer = await send(initialize(asked), { timeoutMs: probe.requestMs + probe.facts.legacy.startMs });
    const evidence = [probe.sent(`initialize with protocolVersion ${asked}`), cameBack(probe, answer)];
    // The page on the lifecycle shows a refusal too, so that is allowed.
    if (errorOf(answer.message) !== undefined) return passed("It refuses the revision with an error.");
    const offered = textOf(fieldsOf(answer.message?.result).protocolVersion);
    if (offered === asked)
      return failed({ title: "The server claims to speak a revision that does not exist", evidence });
    if (answer.message === undefined)
      return failed({ title: "initialize with a newer revision is not answered", evidence });
    return passed(`It offers ${probe.show(offered ?? "nothing", 20)} instead.`);
  },
};
