import { failLimits } from "../../diagnose/report/compare-reports.ts";
import { UsageError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { choices, files, flag, operand } from "../completion/grammar.ts";
import type { ComparisonFormat } from "../diagnose/print-comparison.ts";
import type { Verb } from "../verb.ts";

const formats: readonly ComparisonFormat[] = ["terminal", "json", "markdown"];

export const verb: Verb = {
  get description() {
    return `Show what changed between two reports of \`${thisProgram.name} diagnose --format json\`, older one first.
Without any, the last diagnosis is compared with the one before it of the same target.

Findings are compared by their ids. One that vanished because its check came to
no answer is not gone: it was not looked at any more, and is listed as such.

--fail-on makes the exit code 1 when the second report has
  new          a finding that the first has not
  worse        ... or one that weighs more than before
  unjudged     ... or a check that came to an answer only in the first
  any-finding  a finding at all, new or old`;
  },
  usage: "[<before.json> <after.json>] [options]",
  flags: [
    flag("--fail-on <change>", `exit 1 at this change: ${failLimits.join(", ")}`, { values: choices(...failLimits) }),
    flag("--format <format>", `how to print it: ${formats.join(", ")} (default terminal)`, {
      values: choices(...formats),
    }),
  ],
  operands: [operand("[before]", files), operand("[after]", files)],
  async run({ options, operands, terminal, context }) {
    const limit = oneOf("--fail-on", options.failOn, failLimits);
    const format = oneOf("--format", options.format, formats) ?? "terminal";
    if (operands.length === 1)
      throw new UsageError(
        `Give two reports, the older one first: \`${thisProgram.name} compare before.json after.json\`.`,
      );
    const { printComparison } = await import("../diagnose/print-comparison.ts");
    return printComparison(operands, { format, limit, terminal, context });
  },
};

function oneOf<T extends string>(flag: string, given: unknown, words: readonly T[]): T | undefined {
  if (given === undefined) return undefined;
  const word = words.find((item) => item === given);
  if (word === undefined) throw new UsageError(`${flag} is one of ${words.join(", ")}, not ${JSON.stringify(given)}.`);
  return word;
}
