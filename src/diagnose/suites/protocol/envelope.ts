import { isObject, type Json } from "../../../wire/json.ts";
import { listsOf } from "../../asking/protocol/lists-of.ts";
import { harmless, revisionsToAsk, verdictOf } from "../../asking/protocol/raw-requests.ts";
import type { Check, Fault, Severity } from "../../check.ts";

export const check: Check = {
  id: "protocol/envelope",
  question: "Is every answer one JSON-RPC 2.0 message with either a result or an error?",
  severity: "major",
  why: "Clients throw away messages that are not in this form, and then wait for an answer until their time is over.",
  remedy:
    'Send { "jsonrpc": "2.0", "id": …, "result": {…} } or { "jsonrpc": "2.0", "id": …, "error": { "code": −32601, "message": "…" } }: never both, and no null.',
  source: "MCP 2025-11-25 and 2026-07-28, Overview: Responses; JSON-RPC 2.0, section 5",
  async run(probe) {
    const faults = new Map<string, Fault>();
    for (const revision of revisionsToAsk(probe.facts)) {
      const session = await probe.open({ revision });
      const methods = [
        harmless(session),
        ...listsOf(session.capabilities).map(({ method }) => method),
        "meanwhile/unknown",
      ];
      const timeoutMs = Math.min(probe.requestMs, 3_000);
      const answers = await Promise.all(
        methods.map(async (method) => ({ method, ...(await session.request(method, {}, { timeoutMs })) })),
      );
      for (const { method, message } of answers) {
        if (message === undefined) continue;
        for (const problem of problemsOf(message))
          if (!faults.has(problem.subject))
            faults.set(problem.subject, { ...problem, evidence: [probe.sent(method), probe.received(message)] });
      }
    }
    return verdictOf([...faults.values()]);
  },
};

function problemsOf(message: Json): { subject: string; title: string; severity: Severity }[] {
  const hasResult = Object.hasOwn(message, "result");
  const hasError = Object.hasOwn(message, "error");
  const error = isObject(message.error) ? message.error : {};
  const isError = hasError && !hasResult;
  return [
    {
      subject: "jsonrpc",
      title: 'Answers lack "jsonrpc": "2.0"',
      severity: "blocker" as const,
      is: message.jsonrpc !== "2.0",
    },
    {
      subject: "both",
      title: "Answers have a result and an error at once",
      severity: "blocker" as const,
      is: hasResult && hasError,
    },
    {
      subject: "neither",
      title: "Answers have neither a result nor an error",
      severity: "blocker" as const,
      is: !hasResult && !hasError,
    },
    {
      subject: "result",
      title: "Results are no objects",
      severity: "blocker" as const,
      is: hasResult && !hasError && !isObject(message.result),
    },
    {
      subject: "error.code",
      title: "Errors have no integer code",
      severity: "major" as const,
      is: isError && !Number.isInteger(error.code),
    },
    {
      subject: "error.message",
      title: "Errors have no message",
      severity: "major" as const,
      is: isError && typeof error.message !== "string",
    },
  ].flatMap(({ is, ...problem }) => (is ? [problem] : []));
}
