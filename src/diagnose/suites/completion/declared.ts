import { hasCompletionsCapability } from "../../../wire/revisions.ts";
import {
  type Completable,
  complete,
  declaresCompletions,
  findCompletables,
  nothingToComplete,
  sentFor,
  valuesOf,
} from "../../asking/completion/completable.ts";
import type { Probe } from "../../asking/probe.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import type { ProbeSession } from "../../wire/probe-session.ts";

export const check: Check = {
  id: "completion/declared",
  question: "Does the server declare completions if, and only if, it completes?",
  severity: "major",
  why: "A host asks for suggestions at every keystroke where they are declared, and never where they are not: a false promise is an error each time, an unspoken one is never used.",
  remedy: "Declare `completions: {}` exactly when completion/complete has a handler.",
  source: "MCP 2025-11-25 and 2026-07-28, Completion: servers that support completions MUST declare the capability",
  isGentle: true,
  run: async (probe) => {
    const session = await probe.open();
    const completables = await findCompletables(session);
    if (!hasCompletionsCapability(session.revision))
      return skipped("The server speaks a revision that has no such capability.");
    return declaresCompletions(probe.facts)
      ? await askDeclared(probe, session, completables)
      : await askUndeclared(probe, session, completables);
  },
};

async function askDeclared(probe: Probe, session: ProbeSession, completables: readonly Completable[]) {
  const [first] = completables;
  if (first === undefined) return skipped(nothingToComplete);
  const answers = await Promise.all(completables.map((completable) => complete(session, completable, "")));
  if (answers.some(({ result }) => result !== undefined)) return passed();
  // It may want other arguments first, and says so.
  if (answers.every(({ error }) => error?.code === -32602))
    return passed("Every argument was answered with −32602: it may need other arguments first.");
  return failed({
    title: "Completions are declared, but nothing can be completed",
    evidence: [
      probe.received({ capabilities: { completions: session.capabilities.completions } }),
      sentFor(probe, first, ""),
      probe.received(answers[0]?.error ?? answers[0]?.problem),
    ],
  });
}

async function askUndeclared(probe: Probe, session: ProbeSession, completables: readonly Completable[]) {
  const asked = completables[0] ?? { ref: { type: "ref/prompt", name: "meanwhile-diagnose" }, argument: "value" };
  const answer = await complete(session, asked, "");
  if (valuesOf(answer) === undefined) return passed("The server neither declares completions nor completes.");
  return failed({
    severity: "info",
    title: "completion/complete works, but the capability is not declared, so no host asks for it",
    evidence: [sentFor(probe, asked, ""), probe.received(answer.result)],
  });
}
