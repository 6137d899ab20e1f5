import { cameBack, errorOf, revisionsToAsk, verdictOf } from "../../asking/protocol/raw-requests.ts";
import type { Check, Fault, Severity } from "../../check.ts";
import type { ProbeAnswer } from "../../wire/probe-session.ts";

const method = "meanwhile/unknown";

export const check: Check = {
  id: "protocol/unknown-method",
  question: "Is a method that does not exist refused with −32601?",
  severity: "major",
  why: "Clients try methods that a server may not have and go on when it says so. Without this error they wait until their time is over, or believe that it worked.",
  remedy:
    "Answer requests of unknown methods with error −32601 (method not found); in 2026-07-28 over HTTP with status 404.",
  source: "JSON-RPC 2.0, section 5.1; MCP 2026-07-28, Streamable HTTP: Protocol Version Header",
  isGentle: true,
  async run(probe) {
    const faults: Fault[] = [];
    for (const revision of revisionsToAsk(probe.facts)) {
      const session = await probe.open({ revision });
      const answer = await session.request(method, {}, { timeoutMs: Math.min(probe.requestMs, 3_000) });
      const problem = problemOf(answer, session.isModern);
      if (problem === undefined) continue;
      const [title, severity] = problem;
      faults.push({
        subject: revision,
        title: `${title} (${revision})`,
        severity,
        evidence: [probe.sent(method), cameBack(probe, answer)],
      });
    }
    return verdictOf(faults);
  },
};

function problemOf(answer: ProbeAnswer, isModern: boolean): [string, Severity] | undefined {
  const error = errorOf(answer.message);
  if (answer.message === undefined) return ["An unknown method is not answered", "major"];
  if (error === undefined) return ["An unknown method is answered with a result", "major"];
  if (error.code !== -32601) return ["An unknown method is refused with another error than −32601", "minor"];
  if (isModern && answer.http !== undefined && answer.http.status !== 404)
    return ["The error −32601 comes with another HTTP status than 404", "minor"];
  return undefined;
}
