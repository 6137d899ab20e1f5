import { toMinute } from "../../clock.ts";
import type { Terminal } from "../terminal.ts";

/** Says that a question was not answered, until when it stays open, and which words answer or decline it. */
export function sayStillOpen(
  { terminal }: { readonly terminal: Pick<Terminal, "say" | "colors"> },
  { until, answerWords }: { readonly until: number | undefined; readonly answerWords: string },
): void {
  const end = until === undefined ? "" : ` until ${toMinute(until)}`;
  terminal.say(
    `${terminal.colors.yellow("!")} Not answered: the question stays open${end}\n` +
      `  Answer it:  ${answerWords}\n  Decline it: the same with --decline\n`,
  );
}
