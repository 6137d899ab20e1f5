import { cameBack } from "../../asking/protocol/raw-requests.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/ping",
  question: "Is ping answered with an empty result?",
  severity: "major",
  why: "Clients ping to learn whether a quiet server still lives. One that does not answer is taken for dead and disconnected, in the middle of its work.",
  remedy: 'Answer ping with "result": {} at once, also while a tool runs.',
  source: "MCP 2025-11-25, Ping",
  isGentle: true,
  async run(probe) {
    const { legacy } = probe.facts;
    if (legacy === undefined) return skipped("The server speaks 2026-07-28 only, which has no ping.");
    const session = await probe.open({ revision: legacy.revision });
    const answer = await session.request("ping");
    if (answer.result !== undefined) return passed();
    const title = answer.message === undefined ? "ping is not answered" : "ping is answered with an error";
    return failed({ title, evidence: [probe.sent("ping"), cameBack(probe, answer)] });
  },
};
