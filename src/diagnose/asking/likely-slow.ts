import type { Callable } from "./callables.ts";
import type { SurveyedTool } from "./facts.ts";

/** Words in names and descriptions of tools that may be slow. They decide only which tool is called first. */
const slowWords =
  /\b(?:long|slow\w*|progress|steps?|durations?|seconds|minutes|wait\w*|sleep\w*|background|batch|crawl\w*|index\w*|sync\w*|scan\w*|research)\b/i;

/**
 * Returns the callables in the order in which they are likely to be slow: those that the user named, those that may be
 * tasks, those whose words say so.
 */
export function likelySlowFirst(callables: readonly Callable[]): readonly Callable[] {
  return callables
    .map((callable, place) => ({ callable, place, likelihood: likelihoodOf(callable) }))
    .sort((a, b) => b.likelihood - a.likelihood || a.place - b.place)
    .map(({ callable }) => callable);
}

/** Whether the tool says that it can run as a task of 2025-11-25. */
export function mayBeTask({ tool }: { readonly tool: Pick<SurveyedTool, "taskSupport"> }): boolean {
  return tool.taskSupport === "optional" || tool.taskSupport === "required";
}

function likelihoodOf(callable: Callable): number {
  const { tool, isNamed } = callable;
  const text = `${wordsOf(tool.name)} ${tool.description.slice(0, maxLooked)}`;
  return (isNamed ? 4 : 0) + (mayBeTask(callable) ? 2 : 0) + (slowWords.test(text) ? 1 : 0);
}

/** Characters of a description that are read. */
export const maxLooked = 2_000;

/** `buildReport` and `build_report` are "build report". */
export function wordsOf(name: string): string {
  return name.replaceAll(/[-_./]|(?<=[a-z])(?=[A-Z])/g, " ");
}
