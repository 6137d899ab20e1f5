import { bodyOf, harmless, headersOf, revisionsToAsk, verdictOf } from "../../asking/protocol/raw-requests.ts";
import type { Check, Fault, Severity } from "../../check.ts";
import type { HttpAnswer } from "../../wire/probe-http.ts";

export const check: Check = {
  id: "protocol/content-type",
  question: "Are answers sent as application/json or text/event-stream, and do streams end with the answer?",
  severity: "blocker",
  why: "Clients choose by the Content-Type how to read an answer, and refuse any other. A stream that stays open holds a connection for every request.",
  remedy: "Set Content-Type: application/json or text/event-stream, in UTF-8, and end the stream after the answer.",
  source:
    "MCP 2025-11-25, Transports: Sending Messages to the Server; MCP 2026-07-28, Streamable HTTP: Receiving Messages",
  transport: "http",
  async run(probe) {
    const faults: Fault[] = [];
    for (const revision of revisionsToAsk(probe.facts)) {
      const session = await probe.open({ revision });
      const method = harmless(session);
      const timeoutMs = Math.min(probe.requestMs, 2_000);
      const answer = await probe.http({
        body: bodyOf(session, method, "type"),
        headers: headersOf(session, method),
        timeoutMs,
      });
      const problem = problemOf(answer, (text) => probe.show(text, 60));
      if (problem === undefined) continue;
      const [title, severity] = problem;
      const shown = `HTTP ${answer.status}, Content-Type: ${answer.headers["content-type"] ?? "(none)"}`;
      faults.push({
        subject: revision,
        title: `${title} (${revision})`,
        severity,
        evidence: [probe.sent(method), probe.received(shown)],
      });
    }
    return verdictOf(faults);
  },
};

function problemOf(
  { headers, messages, isStream, ended }: HttpAnswer,
  show: (text: string) => string,
): [string, Severity] | undefined {
  const type = headers["content-type"] ?? "";
  // Without an answer there is nothing to say about its form.
  if (messages.length === 0) return undefined;
  if (!isStream && !/^application\/json\s*(;|$)/i.test(type))
    return [type === "" ? "Answers have no Content-Type" : `Answers come as ${show(type)}`, "blocker"];
  const charset = /charset="?([\w-]+)/i.exec(type)?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset))
    return [`Answers are declared as ${show(charset)} instead of UTF-8`, "minor"];
  if (isStream && ended === "timeout") return ["The stream of an answer stays open after the answer", "minor"];
  return undefined;
}
