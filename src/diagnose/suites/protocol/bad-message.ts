import { isObject } from "../../../wire/json.ts";
import type { Probe } from "../../asking/probe.ts";
import { bodyOf, harmless, headersOf, isAlive, isMessage, verdictOf } from "../../asking/protocol/raw-requests.ts";
import type { Check, Fault, Severity } from "../../check.ts";
import type { HttpAnswer } from "../../wire/probe-http.ts";
import type { ProbeSession } from "../../wire/probe-session.ts";

/**
 * JSON-RPC has an answer for each; MCP has no batches since 2025-06-18, so refusing one is as right as answering it.
 */
const cases: readonly {
  readonly subject: string;
  readonly what: string;
  readonly text: (session: ProbeSession) => string;
}[] = [
  { subject: "broken JSON", what: "Broken JSON", text: () => '{"jsonrpc":"2.0","id":"broken","method":' },
  { subject: "no request", what: "JSON that is no request", text: () => '{"hello":"world"}' },
  { subject: "text", what: "A text instead of a request", text: () => '"hello"' },
  {
    subject: "batch",
    what: "A batch of requests",
    text: (session) => `[${bodyOf(session, harmless(session), "in-a-batch")}]`,
  },
];

export const check: Check = {
  id: "protocol/bad-message",
  question:
    "Does the server survive broken JSON, messages that are no requests, and batches, and say nothing but messages to them?",
  severity: "major",
  why: "One bad message of one client must not end the work of all others, and a client that gets no answer over HTTP waits until its time is over.",
  remedy:
    "Catch what your parser throws. Over HTTP answer with status 400 and error −32700 (no JSON) or −32600 (no request); over stdio ignore the line or answer with that error, and read on.",
  source: "JSON-RPC 2.0, section 5.1; MCP 2025-11-25, Transports; MCP 2026-07-28, Streamable HTTP: Sending Messages",
  async run(probe) {
    const session = await probe.open();
    const faults: Fault[] = [];
    for (const { subject, what, text } of cases) {
      const body = text(session);
      const answer = session.pipe === undefined ? await post(probe, session, body) : undefined;
      const since = session.pipe?.lines.length ?? 0;
      session.pipe?.write(`${body}\n`);
      const trouble = answer === undefined ? undefined : troubleOf(subject, answer);
      const evidence = [
        probe.sent(body),
        ...(answer === undefined ? [] : [probe.received(`HTTP ${answer.status}: ${answer.text || answer.ended}`)]),
      ];
      if (trouble !== undefined)
        faults.push({ subject, title: `${what} ${trouble.title}`, severity: trouble.severity, evidence });
      const isThere = await isAlive(session);
      // What stands before the answer to the next request was printed for this message.
      const noise = (session.pipe?.lines.slice(since) ?? []).filter(
        (line) => line.text.trim() !== "" && !isMessage(line),
      );
      if (noise.length > 0)
        faults.push({
          subject: `${subject}, printed`,
          title: `${what} makes the server print what is no message on its standard output`,
          remedy:
            "Catch what your parser throws, and write it to the standard error; on the standard output answer with error −32700 or nothing.",
          evidence: [probe.sent(body), ...noise.slice(0, 3).map(({ text: line }) => probe.printed(line))],
        });
      if (isThere) continue;
      // Whoever is gone cannot be asked about the rest.
      const words = session.pipe?.stderr.slice(-400) ?? "";
      const more = words.trim() === "" ? [] : [probe.printed(words)];
      return verdictOf([
        ...faults.filter((fault) => fault.subject !== subject),
        { subject, title: `${what} ends the conversation`, evidence: [...evidence, ...more] },
      ]);
    }
    return verdictOf(faults);
  },
};

function post(probe: Probe, session: ProbeSession, body: string): Promise<HttpAnswer> {
  return probe.http({
    body,
    headers: headersOf(session, harmless(session)),
    timeoutMs: Math.min(probe.requestMs, 2_000),
  });
}

function troubleOf(
  subject: string,
  { status, ended, messages }: HttpAnswer,
): { title: string; severity: Severity } | undefined {
  if (status === 0)
    return { title: ended === "timeout" ? "is not answered" : "breaks the connection", severity: "major" };
  if (status >= 500) return { title: `is answered with HTTP status ${status}`, severity: "minor" };
  const isRefused = status >= 400 || messages.some((message) => isObject(message) && message.error !== undefined);
  return subject === "broken JSON" && !isRefused ? { title: "is accepted", severity: "minor" } : undefined;
}
