import { askCompletions, complete, nothingToComplete, sentFor, valuesOf } from "../../asking/completion/completable.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

const beginnings = ["a", "b", "c", "d", "e", "m", "p", "s", "t", "1"];

export const check: Check = {
  id: "completion/empty-prefix",
  question: "Does an empty value bring suggestions where a first letter does?",
  severity: "info",
  why: "Hosts open the list before the first keystroke, with an empty value. Where that brings nothing, users take it that there is nothing to choose from.",
  remedy: "Answer an empty value with the first 100 of all values.",
  source: "MCP 2025-11-25 and 2026-07-28, Completion: suggestions for the current value",
  isGentle: true,
  run: (probe) =>
    askCompletions(probe, async (session, completables) => {
      if (completables.length === 0) return skipped(nothingToComplete);
      let seen = 0;
      for (const completable of completables) {
        const empty = await complete(session, completable, "");
        if ((valuesOf(empty)?.length ?? 0) > 0) seen++;
        if (empty.result === undefined || valuesOf(empty)?.length !== 0) continue;
        const answers = await Promise.all(beginnings.map((letter) => complete(session, completable, letter)));
        const found = answers.findIndex((answer) => (valuesOf(answer)?.length ?? 0) > 0);
        if (found === -1) continue;
        return failed({
          title: "A first letter brings suggestions, an empty value brings none",
          evidence: [
            sentFor(probe, completable, ""),
            probe.received(empty.result),
            sentFor(probe, completable, beginnings[found] ?? ""),
            probe.received(answers[found]?.result),
          ],
        });
      }
      return seen === 0 ? skipped("No argument was seen to have a suggestion at all.") : passed();
    }),
};
