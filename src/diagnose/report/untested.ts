import type { Finding } from "./report.ts";

/** Slow tools that no call was made of: what the report says about them in its first line, its last line and its grade. */

type Named = Pick<Finding, "isUntested" | "subject" | "title">;

/** Returns the first line of the report; undefined where there is no such tool. */
export function tellUntested(findings: readonly Named[]): string | undefined {
  const untested = findings.filter(({ isUntested }) => isUntested === true);
  const [first] = untested;
  if (first === undefined) return undefined;
  if (untested.length === 1) return `${first.subject} says that it is slow, and was ${first.title}.`;
  return `${untested.length} tools say that they are slow, and were not tested: ${namesOf(untested)}; name each with \`--tool <tool>\`.`;
}

/** Returns `not tested: build_report` for the last line of the report; undefined where there is no such tool. */
export function countUntested(findings: readonly Named[]): string | undefined {
  const untested = findings.filter(({ isUntested }) => isUntested === true);
  return untested.length === 0 ? undefined : `not tested: ${namesOf(untested)}`;
}

/** Returns why the server gets no grade; undefined where there is no such tool. */
export function explainUntested(findings: readonly Named[]): string | undefined {
  const untested = findings.filter(({ isUntested }) => isUntested === true);
  if (untested.length === 0) return undefined;
  const [who, them] =
    untested.length === 1 ? ["A slow tool was", "it"] : [`${untested.length} slow tools were`, "each"];
  return `${who} not tested, so there is no grade: ${namesOf(untested)}; name ${them} with --tool <name> and --args.`;
}

const maxNames = 3;

function namesOf(findings: readonly Named[]): string {
  const names = findings.slice(0, maxNames).map(({ subject = "" }) => subject);
  const more = findings.length - names.length;
  return more > 0 ? `${names.join(", ")} and ${more} more` : names.join(" and ").replace(/ and (?=.* and )/g, ", ");
}
