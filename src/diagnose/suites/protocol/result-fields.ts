import type { Json } from "../../../wire/json.ts";
import { modernRevision } from "../../../wire/revisions.ts";
import { listsOf } from "../../asking/protocol/lists-of.ts";
import { noModern, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, type Severity, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/result-fields",
  question: "Do results of 2026-07-28 carry resultType, and lists ttlMs and cacheScope?",
  severity: "blocker",
  why: "Clients built on the official SDK refuse a result without resultType, and a list without ttlMs and cacheScope: the user sees a server without tools.",
  remedy:
    'Add "resultType": "complete" to every result, and "ttlMs" (0 or more) and "cacheScope" ("public" or "private") to server/discover and every list.',
  source: "MCP 2026-07-28, Overview: ResultType; Caching: Cacheable Results",
  isGentle: true,
  async run(probe) {
    if (probe.facts.modern === undefined) return skipped(noModern);
    const session = await probe.open({ revision: modernRevision });
    const faults: Fault[] = [];
    const judge = (method: string, result: Json) => {
      for (const [what, severity] of problemsOf(method, result))
        faults.push({
          subject: `${method} ${what}`,
          title: `The result of ${method} has no valid ${what}`,
          severity,
          evidence: [probe.received(result)],
        });
    };
    judge("server/discover", session.hello);
    for (const { method } of listsOf(session.capabilities)) {
      const { result } = await session.request(method, {});
      if (result !== undefined) judge(method, result);
    }
    return verdictOf(faults);
  },
};

function problemsOf(method: string, { resultType, ttlMs, cacheScope }: Json): [string, Severity][] {
  // Clients fill in what is missing here, and nowhere else.
  const severity = method === "server/discover" ? "minor" : "blocker";
  const problems: [string, Severity][] = [];
  if (resultType !== "complete") problems.push(["resultType", "blocker"]);
  if (!Number.isInteger(ttlMs) || (ttlMs as number) < 0) problems.push(["ttlMs", severity]);
  if (cacheScope !== "public" && cacheScope !== "private") problems.push(["cacheScope", severity]);
  return problems;
}
