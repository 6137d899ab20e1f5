import type { Outcome } from "../command/outcome.ts";
import { CommandError } from "../errors.ts";
import type { Logger } from "../log.ts";

/** One line a call for the operator; the stack of what a command threw, and never its arguments. */
export function noteOutcome(outcome: Outcome, log: Logger, about: { readonly tool: string; readonly caller: string }) {
  const facts = { ...about, ms: outcome.durationMs };
  const isBug = outcome.ending === "failed" && outcome.error !== undefined && !(outcome.error instanceof CommandError);
  if (isBug) log.warn("command failed", { ...facts, error: outcome.error });
  else log.debug(`command ${outcome.ending}`, facts);
}
