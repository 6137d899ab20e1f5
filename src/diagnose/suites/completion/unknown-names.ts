import { askCompletions, type Completable, complete, sentFor, valuesOf } from "../../asking/completion/completable.ts";
import { type Check, type Fault, failed, passed } from "../../check.ts";
import type { ProbeAnswer } from "../../wire/probe-session.ts";

/** Invalid params; not supported; and what resources that are not found were answered with before 2026-07-28. */
const fittingCodes: readonly unknown[] = [-32602, -32601, -32002];
const noName = "meanwhile-diagnose-no-such-name";

export const check: Check = {
  id: "completion/unknown-names",
  question: "Is an unknown prompt, template or argument refused without harm?",
  severity: "minor",
  why: "A host that completes for a prompt that was just removed gets an internal error, or nothing until its time is over, and shows the server as broken.",
  remedy: "Look the prompt, template and argument up before anything else, and answer with −32602 when there is none.",
  source: "MCP 2025-11-25 and 2026-07-28, Completion: invalid prompt name SHOULD be answered with −32602",
  isGentle: true,
  run: (probe) =>
    askCompletions(probe, async (session, [known]) => {
      const questions: readonly (Completable & { readonly what: string })[] = [
        { what: "prompt", ref: { type: "ref/prompt", name: noName }, argument: "value" },
        { what: "resource template", ref: { type: "ref/resource", uri: `${noName}://{value}` }, argument: "value" },
        ...(known === undefined ? [] : [{ what: "argument", ref: known.ref, argument: noName }]),
      ];
      for (const { what, ...completable } of questions) {
        const answer = await complete(session, completable, "a");
        const problem = findProblem(what, answer);
        if (problem === undefined) continue;
        const sent = sentFor(probe, completable, "a");
        return failed({ ...problem, evidence: [sent, probe.received(answer.message ?? answer.problem)] });
      }
      return passed();
    }),
};

function findProblem(what: string, answer: ProbeAnswer): Pick<Fault, "title" | "severity"> | undefined {
  const values = valuesOf(answer);
  // No suggestion is no harm: the SDKs answer so for an unknown argument.
  if (values !== undefined && values.length > 0)
    return { title: `An unknown ${what} is completed as if there were one` };
  if (answer.message === undefined)
    return { severity: "major", title: `Completing an unknown ${what} is never answered` };
  if (answer.error !== undefined && !fittingCodes.includes(answer.error.code))
    return { title: `Completing an unknown ${what} is answered with an error other than −32602` };
  return undefined;
}
