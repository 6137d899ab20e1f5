import type { SurveyedTool } from "./facts.ts";
import { maxLooked, mayBeTask, wordsOf } from "./likely-slow.ts";

/** What a tool says about how long its calls take. */
export interface StatedDuration {
  /** The longest time that it names; Infinity where it says only that it is slow, or that it can be a task. */
  readonly seconds: number;
  /** Its own words, as they were sent. */
  readonly words: string;
}

/** Returns what the tool's name, description or `taskSupport` says about long calls; undefined where they say nothing. */
export function findStatedDuration(
  tool: Pick<SurveyedTool, "name" | "description" | "taskSupport">,
): StatedDuration | undefined {
  const text = tool.description.slice(0, maxLooked);
  const [longest] = findTimes(text).toSorted((a, b) => b.seconds - a.seconds);
  if (longest !== undefined) return longest;
  const phrase = findSlowPhrase(text);
  if (phrase !== undefined) return { seconds: Infinity, words: phrase };
  if (slowName.test(wordsOf(tool.name))) return { seconds: Infinity, words: tool.name };
  return mayBeTask({ tool }) ? { seconds: Infinity, words: `taskSupport: ${tool.taskSupport}` } : undefined;
}

const slowName = /^(?:slow|slowly)\b|\b(?:slow|slowly)$|\blong running\b/i;

const denied = /\b(?:not|never|no|without|avoids?|instead of|\w+n't)\b[^.;!?]{0,30}$/i;
const numberWords: Readonly<Record<string, number>> = {
  ...{ a: 1, an: 1, one: 1, two: 2, three: 3, four: 4, five: 5, six: 6, seven: 7, eight: 8, nine: 9, ten: 10 },
  ...{ twelve: 12, fifteen: 15, twenty: 20, thirty: 30, forty: 40, fifty: 50, sixty: 60, ninety: 90 },
  ...{ "couple of": 2, several: 3, few: 3, some: 3, many: 10 },
};
const number = String.raw`\d+(?:\.\d+)?|${Object.keys(numberWords).join("|")}`;
const unit = "seconds?|secs?|s|minutes?|mins?|hours?|hrs?|h";
/** What may stand between the verb and the number: `takes up to 5 or 10 minutes`, not `takes a photo 5 minutes`. */
const approximation =
  "about|around|roughly|approximately|approx\\.?|nearly|almost|over|under|up to|at (?:least|most)|(?:more|less|longer) than|well|easily|usually|often|typically|normally|sometimes|anywhere|from|between|the|first|even|as long as|on average|\\(on average\\)";
const timedPhrase = new RegExp(
  String.raw`\b(?<verb>takes?|taking|lasts?|needs?|(?:runs?|running|waits?|sleeps?) (?:for|up to)|(?:finish|complet)es (?:in|after))` +
    String.raw` (?:(?:${approximation}|~) ?|(?:${number}) ?(?:to|or|and|-|–) ?)*(?:(?:a|some) (?=few|couple of))?(?<amount>${number})[ -]?(?<unit>${unit})\b`,
  "gi",
);

/** The times that a description names for a call of its own, not for what the tool is given, makes or looks for. */
function findTimes(text: string): readonly StatedDuration[] {
  return [...text.matchAll(timedPhrase)].flatMap((match) => {
    const { verb = "", amount = "", unit = "" } = match.groups ?? {};
    const [words] = match;
    const before = text.slice(0, match.index);
    const after = text.slice(match.index + words.length);
    if (denied.test(before) || !isOfCall(verb.toLowerCase(), before, words) || !isWhole(verb, amount, after)) return [];
    return [{ words, seconds: (numberWords[amount.toLowerCase()] ?? Number(amount)) * secondsIn(unit) }];
  });
}

const callNouns = "call|run|operation|job|task|execution|build|process|tool|command|request|query";
/** The subject of the verb is something that lives on after the call, or that the tool only works on. */
const otherSubject =
  /\b(?:tokens?|keys?|links?|urls?|codes?|sessions?|cookies?|locks?|leases?|caches?|bans?|meetings?|events?|appointments?|reminders?|timers?|changes?|updates?|propagation|deliver(?:y|ies)|shipping|refunds?|payments?|approvals?|trips?|flights?|rides?|drives?|walks?|routes?|recipes?|songs?|videos?)(?: \w+)? $/i;
/** `queries that take more than 5 s`: what it looks for, or a limit. */
const otherClause = /\b(?:that|which|who|if|when|whose|how many) (?:[\w']+ ){0,3}$/i;

function isOfCall(verb: string, before: string, words: string): boolean {
  if (otherSubject.test(before)) return false;
  if (/(?:more|longer|less) than|\bover\b/i.test(words) && otherClause.test(before)) return false;
  if (verb.startsWith("last")) return new RegExp(String.raw`\b(?:${callNouns})s?(?: \w+)? $`, "i").test(before);
  if (verb.startsWith("run")) return !/\b(?:that|which) $/i.test(before);
  // `queries taking 5 s` says which queries.
  return verb !== "taking" || /(?:^|[,;.(–—-]|\bwhile|\bby) ?$/i.test(before);
}

const clauseEnd = String.raw`\s*$|\s*[.;!?:)\]"'»–—]|,|\s+-\s|\s*\((?!\d)`;
const purpose = String.raw`\s+to (?!appear|propagate|expire|arrive|become|be (?:visible|delivered)|take effect|show up)`;
const laterWords = "for|on|or|when|while|if|per|depending|until|because|but|so|even|each|unless|longer|on average";
const moreWords =
  "and|in|at|with|without|every|total|max|maximum|minimum|before|by|as (?:it|they)|of (?:\\w+ )?(?:time|work)|\\w+ly";
const afterTime = new RegExp(String.raw`^(?:${clauseEnd}|${purpose}|\s+(?:${laterWords}|${moreWords})\b)`, "i");
/** `takes an hour and a city` and `takes an hour (0-23)` name arguments. */
const afterOne = new RegExp(String.raw`^(?:${clauseEnd}|${purpose}|\s+(?:${laterWords})\b)`, "i");
const afterNeed = new RegExp(`^(?:${clauseEnd}|${purpose})`, "i");
const anotherArgument =
  /^(?:,? (?:and|or)|,) (?:an?|the|optionally|seconds?|minutes?|hours?|days?|date|month|year|time ?zone)\b/i;

/** Whether the phrase ends with the unit: `takes 10 minutes of audio` and `needs 24 hours notice` go on. */
function isWhole(verb: string, amount: string, after: string): boolean {
  if (/^needs?$/i.test(verb)) return afterNeed.test(after);
  if (!/^an?$/i.test(amount)) return afterTime.test(after);
  return afterOne.test(after) && !anotherArgument.test(after);
}

function secondsIn(unit: string): number {
  return { s: 1, m: 60, h: 3600 }[unit.toLowerCase().charAt(0)] ?? 1;
}

const degree = "a|very|quite|rather|so|too|really|up to|several|many|some|a few|even|you|usually|often";
const longTime = new RegExp(
  String.raw`\b(?:takes?|taking) (?:(?:${degree}) ){0,3}(?<length>long(?=$|[^\w-]|-?er\b)(?! (?!time|while|to|for|on|when|if|because|with|in|and|or)\w)|a while|ages|hours|minutes)`,
  "gi",
);
const slowWord =
  /\b(?:slowly|long[- ]running|time[- ]consuming)\b|\b(?:it|this|(?:tool|call|command|operation|request)s?)(?: is|'s| are| can be| may be) (?:(?:very|quite|rather|often|usually) )?slow\b|(?<=^|[.!?] |\n)(?:(?:very|quite|rather) )?slow(?=[.,:;!(]|$| (?:for|on|when|if|with)\b)/gi;
/** `Cancels a long-running operation` itself is quick. */
const worksOnSlow =
  /\b(?:lists?|finds?|shows?|gets?|fetches|fetch|checks?|cancels?|stops?|kills?|aborts?|monitors?|polls?|tracks?|status|progress|results?|returns?|says?|whether|which|about)\b[^.;!?]{0,60}$/i;

function findSlowPhrase(text: string): string | undefined {
  const long = [...text.matchAll(longTime)].find((match) => {
    const before = text.slice(0, match.index);
    const after = text.slice(match.index + match[0].length);
    if (denied.test(before) || otherSubject.test(before) || otherClause.test(before)) return false;
    return (
      !/^(?:hours|minutes)$/i.test(match.groups?.length ?? "") || (afterOne.test(after) && !anotherArgument.test(after))
    );
  });
  const word = [...text.matchAll(slowWord)].find((match) => {
    const before = text.slice(0, match.index);
    return !denied.test(before) && !worksOnSlow.test(before);
  });
  return (long ?? word)?.[0];
}
