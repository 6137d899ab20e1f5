import { type CharSet, hasChar, typicalChars } from "./char-set.ts";
import { type Allowance, clearSlots } from "./pattern-match.ts";
import { charsOf, type Instruction, type Program } from "./pattern-program.ts";

export interface MakeRequest {
  readonly partial: string;
  readonly minLength: number;
  readonly maxLength: number;
  /** Texts in this number are few; more are only sampled. */
  readonly few: number;
}

export interface MadeTexts {
  readonly texts: readonly string[];
  readonly isAll: boolean;
}

/** What texts are made from. */
export interface Maker {
  readonly program: Program;
  /** The fewest characters from each instruction to the end. */
  readonly distances: readonly (number | undefined)[];
  readonly matches: (text: string, allowance: Allowance) => boolean | undefined;
}

/** How many texts stand for a pattern that has more than a few. */
export const sampleCount = 5;

const MAX_MADE_CHARACTERS = 1024;
/** A place of the search, against a step of a match. */
const PLACE_COST = 10;

/** A place in the search: how far in the program, and the text made on the way. */
interface Place {
  readonly step: number;
  readonly text: string;
  /** The same number for the same text: long texts are dear to compare. */
  readonly textId: number;
  /** Characters of `text`. */
  readonly length: number;
  /** `$` was passed: nothing may follow. */
  readonly isEnded: boolean;
  /** Where the groups began and ended, for a pattern that asks. */
  readonly slots: readonly number[];
  /** How many of the characters possible here have been taken. */
  readonly taken: number;
}

interface Search {
  readonly maker: Maker;
  readonly request: MakeRequest;
  readonly allowance: Allowance;
  /** The characters of what was typed. */
  readonly typed: readonly string[];
  readonly maxLength: number;
  /** By the length of the shortest text each place can end in. */
  readonly queue: Place[][];
  shortest: number;
  readonly seen: Set<string>;
  readonly texts: Set<string>;
  readonly textIds: Map<string, number>;
  isAll: boolean;
}

/**
 * Walks the program with texts it makes itself, always going on with the one that can end soonest, so that short texts
 * come first and a long fixed shape is reached without trying all of its beginnings. Looks and word edges are passed
 * unasked; each text that comes out is matched against the pattern before it counts.
 */
export function searchTexts(maker: Maker, request: MakeRequest, allowance: Allowance): MadeTexts {
  const { program } = maker;
  const typed = charsOf(request.partial, program.isUnicode);
  const texts = new Set<string>();
  const search: Search = {
    maker,
    request,
    allowance,
    typed,
    maxLength: Math.min(request.maxLength, typed.length + MAX_MADE_CHARACTERS),
    queue: [],
    shortest: 0,
    seen: new Set(),
    texts,
    textIds: new Map(),
    isAll: true,
  };
  const wanted = program.hasLoop && request.maxLength > MAX_MADE_CHARACTERS ? sampleCount : request.few + 1;
  const slots = program.hasSame ? Array.from({ length: program.slotCount }, () => -1) : [];
  push(search, { step: 0, text: "", textId: 0, length: 0, isEnded: false, slots, taken: 0 });
  while (search.shortest < search.queue.length && texts.size < wanted) {
    const place = search.queue[search.shortest]?.pop();
    if (place === undefined) {
      search.shortest++;
      continue;
    }
    allowance.left -= PLACE_COST + place.slots.length;
    if (allowance.left <= 0) return { texts: [...texts].slice(0, request.few), isAll: false };
    visit(search, place);
  }
  const isAll = search.isAll && texts.size <= request.few && texts.size < wanted;
  return { texts: [...texts].slice(0, request.few), isAll };
}

function visit(search: Search, place: Place): void {
  const { steps, hasSame } = search.maker.program;
  const current = steps[place.step] as Instruction;
  const next = { ...place, step: place.step + 1, taken: 0 };
  if (current.op === "found") offer(search, place);
  else if (current.op === "set") visitSet(search, place, current.set);
  else if (current.op === "fork") {
    push(search, { ...place, step: current.second });
    push(search, { ...place, step: current.first });
  } else if (current.op === "jump") push(search, { ...place, step: current.to });
  else if (current.op === "look") push(search, { ...place, step: current.next });
  else if (current.op === "edge") {
    if (current.edge !== "start" || place.length === 0)
      push(search, { ...next, isEnded: place.isEnded || current.edge === "end" });
  } else if (current.op === "same") pushSame(search, next, current.group);
  else if (!hasSame) push(search, next);
  else if (current.op === "save") push(search, { ...next, slots: place.slots.with(current.slot, place.text.length) });
  else if (current.op === "clear") push(search, { ...next, slots: clearSlots(place.slots, current) });
  else if (place.slots[current.slot] !== place.text.length) push(search, next);
}

function offer(search: Search, { text, length }: Place): void {
  const { maker, request, allowance, texts } = search;
  if (length < search.typed.length || length < request.minLength || texts.has(text)) return;
  const fits = maker.matches(text, allowance);
  if (fits === true) texts.add(text);
  if (fits === undefined) search.isAll = false;
}

/** Goes on with one character of a class, and leaves itself in the queue for the others. */
function visitSet(search: Search, place: Place, set: CharSet): void {
  if (place.isEnded) return;
  const next = { ...place, step: place.step + 1, taken: 0 };
  const forced = search.typed[place.length];
  if (forced !== undefined) {
    if (hasChar(set, forced.codePointAt(0) as number)) push(search, withChar(search, next, forced));
    return;
  }
  const typical = typicalChars(set);
  search.isAll &&= typical.isAll;
  const code = typical.codes[place.taken];
  if (code === undefined) return;
  push(search, { ...place, taken: place.taken + 1 });
  push(search, withChar(search, next, String.fromCodePoint(code)));
}

function withChar({ textIds }: Search, place: Place, char: string): Place {
  const key = `${place.textId},${char}`;
  const textId = textIds.get(key) ?? textIds.size + 1;
  textIds.set(key, textId);
  return { ...place, text: place.text + char, textId, length: place.length + 1 };
}

function pushSame(search: Search, place: Place, group: number): void {
  const [from = -1, to = -1] = place.slots.slice(2 * group, 2 * group + 2);
  const same = from < 0 || to < 0 ? "" : place.text.slice(from, to);
  const chars = charsOf(same, search.maker.program.isUnicode);
  if (place.isEnded && chars.length > 0) return;
  if (chars.some((char, index) => (search.typed[place.length + index] ?? char) !== char)) return;
  search.allowance.left -= chars.length;
  push(
    search,
    chars.reduce((longer, char) => withChar(search, longer, char), place),
  );
}

function push(search: Search, place: Place): void {
  const { request, queue, seen } = search;
  const distance = search.maker.distances[place.step];
  if (distance === undefined) return;
  const atLeast = Math.max(place.length + distance, request.minLength, search.typed.length);
  if (atLeast > search.maxLength) {
    if (atLeast <= request.maxLength) search.isAll = false;
    return;
  }
  const key = `${place.step},${place.taken},${place.textId},${place.isEnded ? 1 : 0},${place.slots.join()}`;
  if (seen.has(key)) return;
  seen.add(key);
  // The text of an earlier group is guessed at one character; an empty one comes out nearer than it looked.
  const length = Math.max(atLeast, search.shortest);
  queue[length] ??= [];
  queue[length].push(place);
}

/** The fewest characters from each instruction to the end; undefined from where there is no way. */
export function distancesToEnd(steps: readonly Instruction[]): (number | undefined)[] {
  const distances: number[] = Array.from({ length: steps.length }, () => Number.POSITIVE_INFINITY);
  for (let isSettled = false; !isSettled; ) {
    isSettled = true;
    for (let index = steps.length - 1; index >= 0; index--) {
      const distance = distanceFrom(steps[index] as Instruction, index);
      if (distance >= (distances[index] as number)) continue;
      distances[index] = distance;
      isSettled = false;
    }
  }
  return distances.map((distance) => (distance === Number.POSITIVE_INFINITY ? undefined : distance));

  function distanceFrom(step: Instruction, index: number): number {
    if (step.op === "found") return 0;
    if (step.op === "fork") return Math.min(distances[step.first] as number, distances[step.second] as number);
    const next = step.op === "jump" ? step.to : step.op === "look" ? step.next : index + 1;
    return (distances[next] as number) + (step.op === "set" || step.op === "same" ? 1 : 0);
  }
}
