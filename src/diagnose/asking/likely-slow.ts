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

const maxLooked = 2_000;

/** `buildReport` and `build_report` are "build report". */
function wordsOf(name: string): string {
  return name.replaceAll(/[-_./]|(?<=[a-z])(?=[A-Z])/g, " ");
}

/** What a tool says about how long its calls take. */
export interface StatedDuration {
  /** The longest time that it names; Infinity where it says only that it is slow, or that it can be a task. */
  readonly seconds: number;
  /** Its own words, as they were sent. */
  readonly words: string;
}

const slowName = /^(?:slow|slowly)\b|\b(?:slow|slowly)$|\blong running\b/i;
/** Not "finds slow queries": what it works on may be slow without the tool being so. */
const slowPhrase =
  /\b(?:slowly|long[- ]running|time[- ]consuming)\b|\b(?:is|be|very|quite|rather) slow\b|\b(?:takes?|taking|took) (?:\w+ ){0,3}(?:long|a while|ages|hours|minutes)\b/i;
const denied = /\b(?:not|never|no|without|avoids?|instead of|\w+n't)\b[^.;!?]{0,30}$/i;
const numberWords: Readonly<Record<string, number>> = {
  ...{ a: 1, an: 1, one: 1, two: 2, three: 3, four: 4, five: 5, six: 6, seven: 7, eight: 8, nine: 9, ten: 10 },
  ...{ twelve: 12, fifteen: 15, twenty: 20, thirty: 30, forty: 40, fifty: 50, sixty: 60, ninety: 90 },
  ...{ several: 3, few: 3, some: 3, many: 10 },
};
const timeVerb =
  "takes?|taking|took|lasts?|needs?|(?:runs?|running|waits?|sleeps?) (?:for|up to)|(?:finish|complet)es (?:in|after)";
const amount = String.raw`\d+(?:\.\d+)?(?=[ -]?[smh])|(?:${Object.keys(numberWords).join("|")})(?=[ -])`;
const unit = "seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h";
/** `takes ten minutes`, `runs for up to 90 s`. */
const timedPhrase = new RegExp(String.raw`\b(?:${timeVerb})\b[^.,;!?]{0,20}?\b(${amount})[ -]?(${unit})\b`, "gi");

/** Returns what the tool's name, description or `taskSupport` says about long calls; undefined where they say nothing. */
export function findStatedDuration(
  tool: Pick<SurveyedTool, "name" | "description" | "taskSupport">,
): StatedDuration | undefined {
  const text = tool.description.slice(0, maxLooked);
  const timed = [...text.matchAll(timedPhrase)]
    .filter(({ index }) => !denied.test(text.slice(0, index)))
    .map(([words, number = "", unit = ""]) => ({
      words,
      seconds: (numberWords[number.toLowerCase()] ?? Number(number)) * secondsIn(unit),
    }));
  const [longest] = timed.toSorted((a, b) => b.seconds - a.seconds);
  if (longest !== undefined) return longest;
  const phrase = slowPhrase.exec(text);
  if (phrase !== null && !denied.test(text.slice(0, phrase.index))) return { seconds: Infinity, words: phrase[0] };
  if (slowName.test(wordsOf(tool.name))) return { seconds: Infinity, words: tool.name };
  return mayBeTask({ tool }) ? { seconds: Infinity, words: `taskSupport: ${tool.taskSupport}` } : undefined;
}

function secondsIn(unit: string): number {
  return { s: 1, m: 60, h: 3600 }[unit.toLowerCase().charAt(0)] ?? 1;
}
