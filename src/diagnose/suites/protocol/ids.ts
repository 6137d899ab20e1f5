import { isObject } from "../../../wire/json.ts";
import { harmless } from "../../asking/protocol/raw-requests.ts";
import { type Check, failed, passed } from "../../check.ts";

/** Official SDKs count from 0; others use texts, also such that look like numbers. */
const ids = [0, "7", "an-id", Number.MAX_SAFE_INTEGER];

export const check: Check = {
  id: "protocol/ids",
  question: "Does every answer carry the id of its request, in value and in type?",
  severity: "blocker",
  why: "A client finds the answer to its request by the id alone. Many count from 0 or send texts; an answer with another id is thrown away and the request times out.",
  remedy:
    "Give the id back as it came: 0 stays 0, a text stays a text. Ask whether id is there, not whether it is truthy.",
  source: "MCP 2025-11-25 and 2026-07-28, Overview: Responses",
  async run(probe) {
    const session = await probe.open();
    const since = session.pipe?.lines.length ?? 0;
    const method = harmless(session);
    const timeoutMs = Math.min(probe.requestMs, 3_000);
    const answers = await Promise.all(
      ids.map(async (id) => ({ id, answer: await session.request(method, {}, { id, timeoutMs }) })),
    );
    const lost = answers.filter(({ id, answer }) => answer.message?.id !== id);
    if (lost.length === 0) return passed();
    const received =
      session.pipe === undefined
        ? lost.flatMap(({ answer }) => answer.http?.messages ?? [])
        : session.pipe.lines.slice(since).map(({ json }) => json);
    const seen = received.filter(isObject).map(({ id }) => JSON.stringify(id) ?? "none");
    // Nobody counts so far; but who loses the others is of no use.
    const isLargeOnly = lost.every(({ id }) => id === Number.MAX_SAFE_INTEGER);
    return failed({
      title: isLargeOnly
        ? "Answers do not carry the id of their request when it is a large number"
        : "Answers do not carry the id of their request",
      ...(isLargeOnly && { severity: "minor" }),
      evidence: [
        probe.sent(`${method} with the ids ${ids.map((id) => JSON.stringify(id)).join(", ")}`),
        probe.received(
          `not answered: ${lost.map(({ id }) => JSON.stringify(id)).join(", ")}; ids that came: ${[...new Set(seen)].sort().join(", ") || "none"}`,
        ),
      ],
    });
  },
};
