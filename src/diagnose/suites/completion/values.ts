import { fieldsOf } from "../../../wire/json.ts";
import { askCompletions, complete, nothingToComplete, sentFor, valuesOf } from "../../asking/completion/completable.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";
import type { ProbeAnswer } from "../../wire/probe-session.ts";

const maxValues = 100;

export const check: Check = {
  id: "completion/values",
  question: "Are suggestions at most 100 strings, with a total and a hasMore that fit them?",
  severity: "major",
  why: "The SDKs' clients throw an answer away whole when it has more than 100 values or one that is no string: the user sees no suggestion at all.",
  remedy:
    "Cut `values` to 100 strings, give the number of all matches in `total`, and say `hasMore: true` when there are more than were sent.",
  source: "MCP 2025-11-25 and 2026-07-28, Completion: maximum 100 items per response",
  isGentle: true,
  run: (probe) =>
    askCompletions(probe, async (session, completables) => {
      if (completables.length === 0) return skipped(nothingToComplete);
      let answered = 0;
      for (const completable of completables) {
        const answer = await complete(session, completable, "");
        if (answer.result === undefined) continue;
        answered++;
        const problem = findProblem(answer);
        if (problem === undefined) continue;
        const sent = sentFor(probe, completable, "");
        return failed({
          ...problem,
          evidence: [sent, probe.measured(countsOf(answer)), probe.received(answer.result)],
        } satisfies Fault);
      }
      return answered === 0 ? skipped("No argument could be completed.") : passed();
    }),
};

function findProblem(answer: ProbeAnswer): Pick<Fault, "title" | "severity"> | undefined {
  const values = valuesOf(answer);
  if (values === undefined) return { title: "The answer to completion/complete has no list `completion.values`" };
  if (!values.every((value) => typeof value === "string")) return { title: "Some suggestions are no strings" };
  if (values.length > maxValues) return { title: "More than 100 suggestions are sent at once" };
  const { total, hasMore } = fieldsOf(answer.result?.completion);
  if (total !== undefined && !(Number.isInteger(total) && (total as number) >= 0))
    return { title: "`total` is no whole number" };
  if (hasMore !== undefined && typeof hasMore !== "boolean") return { title: "`hasMore` is neither true nor false" };
  if (typeof total !== "number") return undefined;
  if (total < values.length)
    return { severity: "minor", title: "`total` is smaller than the number of suggestions sent" };
  if (total > values.length && hasMore === false)
    return { severity: "minor", title: "`hasMore` is false, though `total` counts more than were sent" };
  if (total === values.length && hasMore === true)
    return { severity: "minor", title: "`hasMore` is true, though all that `total` counts was sent" };
  return undefined;
}

function countsOf(answer: ProbeAnswer): string {
  const { total, hasMore } = fieldsOf(answer.result?.completion);
  return `${valuesOf(answer)?.length ?? "no"} values, total ${JSON.stringify(total) ?? "not given"}, hasMore ${JSON.stringify(hasMore) ?? "not given"}`;
}
