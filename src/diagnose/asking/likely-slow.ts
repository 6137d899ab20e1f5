import type { Callable } from "./callables.ts";

/** Words that authors use for tools that take their time. */
const slowWords =
  /\b(?:long|slow\w*|progress|steps?|durations?|seconds|minutes|wait\w*|sleep\w*|background|batch|crawl\w*|index\w*|sync\w*|scan\w*|research)\b/i;

/**
 * The callables with the slowest first, as far as it can be told without calling them: the user's own, those that may
 * be tasks, those that say so.
 */
export function likelySlowFirst(callables: readonly Callable[]): readonly Callable[] {
  return callables
    .map((callable, place) => ({ callable, place, likelihood: likelihoodOf(callable) }))
    .sort((a, b) => b.likelihood - a.likelihood || a.place - b.place)
    .map(({ callable }) => callable);
}

/** Whether the tool says that it can run as a task of 2025-11-25. */
export function mayBeTask({ tool }: Pick<Callable, "tool">): boolean {
  return tool.taskSupport === "optional" || tool.taskSupport === "required";
}

function likelihoodOf(callable: Callable): number {
  const { tool, isNamed } = callable;
  const text = `${tool.name.replaceAll(/[-_./]|(?<=[a-z])(?=[A-Z])/g, " ")} ${tool.description.slice(0, 2_000)}`;
  return (isNamed ? 4 : 0) + (mayBeTask(callable) ? 2 : 0) + (slowWords.test(text) ? 1 : 0);
}
