import { anyCharacter, type CharSet, hasChar, typicalChars } from "./char-set.ts";
import { CompletionFailed } from "./completion-failed.ts";
import { charsOf, type ParsedPattern, type PatternNode, parsePattern, UnreadablePattern } from "./pattern-parse.ts";
import { type Allowance, compileProgram, matchProgram, type Program, type Step } from "./pattern-program.ts";

/** A pattern of a schema: what fits it, and texts that do. */
export interface Pattern {
  /**
   * Whether a text matches; undefined when the pattern is unreadable. A text that takes too many steps counts as none.
   * What it took is taken from `work`.
   */
  matches(text: string, work?: Allowance): boolean | undefined;
  /**
   * Texts that match and begin with `partial`, the shortest first: all of them when they are few. What it took is taken
   * from `work`.
   */
  make(request: MakeRequest, work?: Allowance): Made;
}

export interface MakeRequest {
  readonly partial: string;
  readonly minLength: number;
  readonly maxLength: number;
  /** Texts in this number are few; more are only sampled. */
  readonly few: number;
}

export interface Made {
  readonly texts: readonly string[];
  readonly isAll: boolean;
}

/** How many texts stand for a pattern that has more than a few. */
export const sampleCount = 5;

const MAX_PATTERN_CHARACTERS = 4096;
const MAX_MADE_CHARACTERS = 1024;
/** What one match and one search may cost: under 20 ms each, whatever the pattern. */
const MATCH_STEPS = 50_000;
const SEARCH_STEPS = 60_000;
/** A step of a pattern, against one of a schema. */
const STEP_WEIGHT = 3;
/** A place of the search, against a step of a match. */
const NODE_COST = 10;

// Tried before anything is made up: nobody calls a thing `aab`.
const familiar = [
  ..."example|example_name|snake_case|example-name|kebab-case|Example|exampleName|ExampleName|EXAMPLE|EXAMPLE_NAME|example1|example name|example.txt".split(
    "|",
  ),
  ..."1|10|100|1.0|1.0.0|v1.0.0|abc|ABC|abc123|ABC-123|#336699|en|en-US|/example|example/name".split("|"),
];

const cache = new Map<string, Pattern>();
const MAX_CACHED = 200;
const MAX_CACHED_STEPS = 2000;

/** Reads a pattern. Throws when it is none; one that is valid but unreadable here tells nothing and makes nothing. */
export function readPattern(source: string): Pattern {
  const cached = cache.get(source);
  if (cached !== undefined) return cached;
  if (source.length > MAX_PATTERN_CHARACTERS) return unreadable;
  try {
    const parsed = parsePattern(source, isValidUnicode(source));
    const program = compileProgram(parsed);
    const pattern = createPattern(source, parsed, program);
    if (program.steps.length <= MAX_CACHED_STEPS) remember(source, pattern);
    return pattern;
  } catch (error) {
    if (error instanceof UnreadablePattern) return unreadable;
    throw error;
  }
}

const unreadable: Pattern = { matches: () => undefined, make: () => ({ texts: [], isAll: false }) };

/** JSON Schema's patterns have the flag `u`. Many in use do without it, so those count too. */
function isValidUnicode(source: string): boolean {
  for (const flags of ["u", ""]) {
    try {
      new RegExp(source, flags);
      return flags === "u";
    } catch (cause) {
      if (flags === "")
        throw new CompletionFailed("schema", `the pattern ${JSON.stringify(source)} is not a regular expression.`, {
          cause,
        });
    }
  }
  return false;
}

function remember(source: string, pattern: Pattern): void {
  if (cache.size >= MAX_CACHED)
    for (const oldest of cache.keys()) {
      cache.delete(oldest);
      break;
    }
  cache.set(source, pattern);
}

function createPattern(source: string, parsed: ParsedPattern, program: Program): Pattern {
  // A pattern may match anywhere in a text, so what it does not tie to an end may stand on that side.
  const anything: PatternNode = {
    kind: "repeat",
    node: { kind: "set", set: anyCharacter(source) },
    min: 0,
    max: Number.POSITIVE_INFINITY,
    isLazy: true,
    groups: [0, 0],
  };
  const items = [
    ...(isTied(parsed.node, "start") ? [] : [anything]),
    parsed.node,
    ...(isTied(parsed.node, "end") ? [] : [anything]),
  ];
  const matches = (text: string, allowance: Allowance) => matchProgram(program, text, allowance);
  let maker: Maker | undefined;
  // Every answer begins with what the pattern has when nothing is typed.
  let kept: { key: string; made: Made; cost: number } | undefined;

  return {
    matches(text, work) {
      const allowance = { left: MATCH_STEPS };
      const isMatch = matches(text, allowance) === true;
      if (work !== undefined) work.left -= STEP_WEIGHT * (MATCH_STEPS - allowance.left);
      return isMatch;
    },
    make(request, work) {
      const { made, cost } = request.partial === "" ? makeOnce(request) : makeNow(request);
      // What was kept costs as much as it did, so that the same request always ends with the same amount of work left.
      if (work !== undefined) work.left -= cost;
      return made;
    },
  };

  function makeOnce(request: MakeRequest): { made: Made; cost: number } {
    const key = `${request.minLength},${request.maxLength},${request.few}`;
    if (kept?.key !== key) kept = { key, ...makeNow(request) };
    return kept;
  }

  function makeNow(request: MakeRequest): { made: Made; cost: number } {
    const allowance = { left: SEARCH_STEPS };
    maker ??= createMaker();
    const made = makeTexts(maker, request, allowance);
    return { made, cost: STEP_WEIGHT * (SEARCH_STEPS - allowance.left) };
  }

  function createMaker(): Maker {
    const whole = items.length === 1 ? program : compileProgram(parsed, { kind: "sequence", items });
    return { program: whole, distances: distancesToEnd(whole.steps), matches };
  }
}

interface Maker {
  readonly program: Program;
  /** The fewest characters from each step to the end. */
  readonly distances: readonly (number | undefined)[];
  readonly matches: (text: string, allowance: Allowance) => boolean | undefined;
}

/** True when every way through the pattern passes this edge first (or last). */
function isTied(node: PatternNode, edge: "start" | "end"): boolean {
  if (node.kind === "edge") return node.edge === edge;
  if (node.kind === "group") return isTied(node.node, edge);
  if (node.kind === "choice") return node.options.every((option) => isTied(option, edge));
  if (node.kind !== "sequence") return false;
  const items = node.items.filter((item) => item.kind !== "look");
  const outer = edge === "start" ? items[0] : items.at(-1);
  return outer !== undefined && isTied(outer, edge);
}

function makeTexts(maker: Maker, request: MakeRequest, allowance: Allowance): Made {
  const isFamiliarFit = (text: string) =>
    text.startsWith(request.partial) &&
    text.length >= request.minLength &&
    text.length <= request.maxLength &&
    maker.matches(text, allowance) === true;
  const found = search(maker, request, allowance);
  if (found.isAll) return found;
  const texts = new Set([...familiar.filter(isFamiliarFit).slice(0, sampleCount - 2), ...found.texts]);
  return { texts: [...texts].slice(0, sampleCount), isAll: false };
}

/** A place in the search: how far in the program, and the text made on the way. */
interface Node {
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

/**
 * Walks the program with texts it makes itself, always going on with the one that can end soonest, so that short texts
 * come first and a long fixed shape is reached without trying all of its beginnings. Looks and word edges are passed
 * unasked; each text that comes out is matched against the pattern before it counts.
 */
function search({ program, distances, matches }: Maker, request: MakeRequest, allowance: Allowance): Made {
  const { steps, hasSame, isUnicode } = program;
  const typed = charsOf(request.partial, isUnicode);
  const maxLength = Math.min(request.maxLength, typed.length + MAX_MADE_CHARACTERS);
  const wanted = program.hasLoop && request.maxLength > MAX_MADE_CHARACTERS ? sampleCount : request.few + 1;
  const queue: Node[][] = [];
  const seen = new Set<string>();
  const texts = new Set<string>();
  const textIds = new Map<string, number>();
  let isAll = true;
  let shortest = 0;

  push({
    step: 0,
    text: "",
    textId: 0,
    length: 0,
    isEnded: false,
    slots: hasSame ? Array.from({ length: program.slotCount }, () => -1) : [],
    taken: 0,
  });
  while (shortest < queue.length && texts.size < wanted) {
    const node = queue[shortest]?.pop();
    if (node === undefined) {
      shortest++;
      continue;
    }
    allowance.left -= NODE_COST + node.slots.length;
    if (allowance.left <= 0) return { texts: [...texts].slice(0, request.few), isAll: false };
    visit(node);
  }
  return { texts: [...texts].slice(0, request.few), isAll: isAll && texts.size <= request.few && texts.size < wanted };

  function visit(node: Node): void {
    const current = steps[node.step] as Step;
    const next = { ...node, step: node.step + 1, taken: 0 };
    if (current.op === "found") offer(node);
    else if (current.op === "set") visitSet(node, current.set);
    else if (current.op === "fork") {
      push({ ...node, step: current.second });
      push({ ...node, step: current.first });
    } else if (current.op === "jump") push({ ...node, step: current.to });
    else if (current.op === "look") push({ ...node, step: current.next });
    else if (current.op === "edge") {
      if (current.edge !== "start" || node.length === 0)
        push({ ...next, isEnded: node.isEnded || current.edge === "end" });
    } else if (current.op === "same") pushSame(next, current.group);
    else if (!hasSame) push(next);
    else if (current.op === "save") push({ ...next, slots: node.slots.with(current.slot, node.text.length) });
    else if (current.op === "clear")
      push({
        ...next,
        slots: node.slots.map((value, slot) => (slot >= current.from && slot < current.to ? -1 : value)),
      });
    else if (node.slots[current.slot] !== node.text.length) push(next);
  }

  function offer(node: Node): void {
    if (node.length < typed.length || node.length < request.minLength || texts.has(node.text)) return;
    const fits = matches(node.text, allowance);
    if (fits === true) texts.add(node.text);
    if (fits === undefined) isAll = false;
  }

  /** Goes on with one character of a class, and leaves itself in the queue for the others. */
  function visitSet(node: Node, set: CharSet): void {
    if (node.isEnded) return;
    const forced = typed[node.length];
    if (forced !== undefined) {
      if (hasChar(set, forced.codePointAt(0) as number))
        push(withChar({ ...node, step: node.step + 1, taken: 0 }, forced));
      return;
    }
    const typical = typicalChars(set);
    isAll &&= typical.isAll;
    const code = typical.codes[node.taken];
    if (code === undefined) return;
    push({ ...node, taken: node.taken + 1 });
    push(withChar({ ...node, step: node.step + 1, taken: 0 }, String.fromCodePoint(code)));
  }

  function withChar(node: Node, char: string): Node {
    const key = `${node.textId},${char}`;
    const textId = textIds.get(key) ?? textIds.size + 1;
    textIds.set(key, textId);
    return { ...node, text: node.text + char, textId, length: node.length + 1 };
  }

  function pushSame(node: Node, group: number): void {
    const [from = -1, to = -1] = node.slots.slice(2 * group, 2 * group + 2);
    const chars = from < 0 || to < 0 ? [] : charsOf(node.text.slice(from, to), isUnicode);
    if (node.isEnded && chars.length > 0) return;
    if (chars.some((char, index) => (typed[node.length + index] ?? char) !== char)) return;
    allowance.left -= chars.length;
    push(chars.reduce(withChar, node));
  }

  function push(node: Node): void {
    const distance = distances[node.step];
    if (distance === undefined) return;
    const atLeast = Math.max(node.length + distance, request.minLength, typed.length);
    if (atLeast > maxLength) {
      if (atLeast <= request.maxLength) isAll = false;
      return;
    }
    const key = `${node.step},${node.taken},${node.textId},${node.isEnded ? 1 : 0},${node.slots.join()}`;
    if (seen.has(key)) return;
    seen.add(key);
    // The text of an earlier group is guessed at one character; an empty one comes out nearer than it looked.
    const place = Math.max(atLeast, shortest);
    queue[place] ??= [];
    queue[place].push(node);
  }
}

/** The fewest characters from each step to the end; undefined from where there is no way. */
function distancesToEnd(steps: readonly Step[]): (number | undefined)[] {
  const distances: number[] = Array.from({ length: steps.length }, () => Number.POSITIVE_INFINITY);
  for (let isSettled = false; !isSettled; ) {
    isSettled = true;
    for (let index = steps.length - 1; index >= 0; index--) {
      const distance = distanceFrom(steps[index] as Step, index);
      if (distance >= (distances[index] as number)) continue;
      distances[index] = distance;
      isSettled = false;
    }
  }
  return distances.map((distance) => (distance === Number.POSITIVE_INFINITY ? undefined : distance));

  function distanceFrom(step: Step, index: number): number {
    if (step.op === "found") return 0;
    if (step.op === "fork") return Math.min(distances[step.first] as number, distances[step.second] as number);
    const next = step.op === "jump" ? step.to : step.op === "look" ? step.next : index + 1;
    return (distances[next] as number) + (step.op === "set" || step.op === "same" ? 1 : 0);
  }
}
