import type { AST } from "@eslint-community/regexpp";
import { anyCharacter, type CharNode, type CharSet, charSetOf } from "./char-set.ts";

/** One instruction of a program; it goes on to the one behind it unless it says otherwise. */
export type Instruction =
  | { readonly op: "set"; readonly set: CharSet; readonly isBackward: boolean }
  /** Two ways on, the first preferred. */
  | { readonly op: "fork"; first: number; second: number }
  | { readonly op: "jump"; to: number }
  | { readonly op: "edge"; readonly edge: Edge }
  /** Its body is what follows, up to a `found`; `next` is where the pattern goes on. */
  | { readonly op: "look"; readonly isNegated: boolean; next: number }
  | { readonly op: "save"; readonly slot: number }
  | { readonly op: "clear"; readonly from: number; readonly to: number }
  | { readonly op: "moved"; readonly slot: number }
  | { readonly op: "same"; readonly group: number; readonly isBackward: boolean }
  | { readonly op: "found" };

export type Edge = "start" | "end" | "word" | "notWord";

export interface Program {
  readonly steps: readonly Instruction[];
  /** Two for each group, and one for each loop that must notice an empty round. */
  readonly slotCount: number;
  /** It asks for the text of an earlier group, so what happens next depends on how it came here. */
  readonly hasSame: boolean;
  /** It repeats something without end. */
  readonly hasLoop: boolean;
  /**
   * Whole characters (flag `u`, what JSON Schema asks for), or UTF-16 units for a pattern that is not valid with it.
   */
  readonly isUnicode: boolean;
}

export interface ParsedPattern {
  readonly tree: AST.Pattern;
  /** The numbers of the capturing groups, from 1; group 0 is the whole. */
  readonly groups: ReadonlyMap<AST.CapturingGroup, number>;
  readonly hasSame: boolean;
  readonly isUnicode: boolean;
}

const MAX_STEPS = 20_000;
const MAX_LOOKS = 100;

/** The pattern is valid, but not one that completion works with. */
export class UnreadablePattern extends Error {
  override readonly name = "UnreadablePattern";
}

/** A text as what a pattern counts: whole characters with the flag, UTF-16 units without. */
export function charsOf(text: string, isUnicode: boolean): string[] {
  return isUnicode ? Array.from(text) : text.split("");
}

/** Loaded with the first pattern, for some 15 ms: few schemas have any. */
let parser: typeof import("@eslint-community/regexpp") | undefined;

/** Thrown while the parser is not loaded. See `withParser`. */
class ParserNotLoaded extends Error {
  override readonly name = "ParserNotLoaded";
}

/** Returns what `act` returns. Where `act` needs the parser of patterns, it is loaded and `act` is called once more. */
export function withParser<T>(act: () => T): T | Promise<T> {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof ParserNotLoaded)) throw error;
    return loadParser().then(act);
  }
}

/** Loads the parser of patterns. */
export async function loadParser(): Promise<void> {
  parser ??= await import("@eslint-community/regexpp");
}

/** Reads a pattern that `new RegExp` has accepted. Throws while the parser is not loaded. */
export function parsePattern(source: string, isUnicode: boolean): ParsedPattern {
  if (parser === undefined) throw new ParserNotLoaded();
  const { RegExpParser, visitRegExpAST } = parser;
  const tree = new RegExpParser().parsePattern(source, 0, source.length, { unicode: isUnicode });
  const groups = new Map<AST.CapturingGroup, number>();
  let hasSame = false;
  let depth = 0;
  visitRegExpAST(tree, {
    // A look inside a look is a call inside a call when a text is matched.
    onAssertionEnter: () => void (++depth > MAX_LOOKS && unreadable("looks nested so deep")),
    onAssertionLeave: () => void depth--,
    onCapturingGroupEnter: (group) => void groups.set(group, groups.size + 1),
    onModifiersEnter: () => unreadable("flags inside a group"),
    onBackreferenceEnter({ ambiguous, raw }) {
      if (ambiguous) unreadable(`${raw} for two groups`);
      hasSame = true;
    },
  });
  return { tree, groups, hasSame, isUnicode };
}

function unreadable(what: string): never {
  throw new UnreadablePattern(`${what} cannot be read`);
}

/** A program that is being written, one way (or, in a look behind, the other) through the text. */
interface Draft {
  readonly pattern: ParsedPattern;
  readonly steps: Instruction[];
  slotCount: number;
  hasLoop: boolean;
  isBackward: boolean;
}

/**
 * Turns a pattern into instructions; counted repeats are written out, so a pattern whose counts multiply beyond the
 * limit is unreadable. `isWhole`: for the whole of a text, where what the pattern does not tie to an end may stand on
 * that side.
 */
export function compileProgram(pattern: ParsedPattern, { isWhole = false } = {}): Program {
  const draft: Draft = {
    pattern,
    steps: [],
    slotCount: 2 * (pattern.groups.size + 1),
    hasLoop: false,
    isBackward: false,
  };
  if (isWhole && !isTied(pattern.tree, "start")) compileAnything(draft);
  compileChoice(draft, pattern.tree.alternatives);
  if (isWhole && !isTied(pattern.tree, "end")) compileAnything(draft);
  draft.steps.push({ op: "found" });
  const { steps, slotCount, hasLoop } = draft;
  return { steps, slotCount, hasLoop, hasSame: pattern.hasSame, isUnicode: pattern.isUnicode };
}

/** True when every way through the pattern passes this edge first (or last). */
function isTied(node: AST.Pattern | AST.Element, edge: "start" | "end"): boolean {
  if (node.type === "Assertion") return node.kind === edge;
  if (node.type !== "Pattern" && node.type !== "Group" && node.type !== "CapturingGroup") return false;
  return node.alternatives.every(({ elements }) => {
    const items = elements.filter((element) => element.type !== "Assertion" || !("alternatives" in element));
    const outer = edge === "start" ? items[0] : items.at(-1);
    return outer !== undefined && isTied(outer, edge);
  });
}

function compileAnything(draft: Draft): void {
  const start = draft.steps.length;
  draft.hasLoop = true;
  draft.steps.push(
    { op: "fork", first: start + 3, second: start + 1 },
    { op: "set", set: anyCharacter(draft.pattern.tree.raw), isBackward: false },
    { op: "jump", to: start },
  );
}

function add<T extends Instruction>({ steps }: Draft, instruction: T): T {
  if (steps.length >= MAX_STEPS) unreadable("a pattern with counts as large as these");
  steps.push(instruction);
  return instruction;
}

function compileElement(draft: Draft, node: AST.Element): void {
  const { isBackward } = draft;
  if (node.type === "Group") compileChoice(draft, node.alternatives);
  else if (node.type === "Quantifier") compileRepeat(draft, node);
  else if (node.type === "Assertion") compileAssertion(draft, node);
  else if (node.type === "CapturingGroup") {
    const slot = 2 * numberOf(draft, node);
    add(draft, { op: "save", slot: isBackward ? slot + 1 : slot });
    compileChoice(draft, node.alternatives);
    add(draft, { op: "save", slot: isBackward ? slot : slot + 1 });
  } else if (node.type === "Backreference")
    add(draft, { op: "same", group: numberOf(draft, node.resolved as AST.CapturingGroup), isBackward });
  else add(draft, { op: "set", set: charSetOf(node as CharNode), isBackward });
}

function numberOf({ pattern }: Draft, group: AST.CapturingGroup): number {
  return pattern.groups.get(group) as number;
}

function compileAssertion(draft: Draft, node: AST.Assertion): void {
  if (!("alternatives" in node)) {
    const edge = node.kind === "word" && node.negate ? "notWord" : node.kind;
    add(draft, { op: "edge", edge });
    return;
  }
  const { isBackward } = draft;
  const look = add(draft, { op: "look", isNegated: node.negate, next: 0 });
  draft.isBackward = node.kind === "lookbehind";
  compileChoice(draft, node.alternatives);
  draft.isBackward = isBackward;
  add(draft, { op: "found" });
  look.next = draft.steps.length;
}

function compileChoice(draft: Draft, alternatives: readonly AST.Alternative[]): void {
  const { steps, isBackward } = draft;
  const jumps: { to: number }[] = [];
  for (const [index, { elements }] of alternatives.entries()) {
    const isLast = index === alternatives.length - 1;
    const fork = isLast ? undefined : add(draft, { op: "fork", first: steps.length + 1, second: 0 });
    for (const element of isBackward ? elements.toReversed() : elements) compileElement(draft, element);
    if (fork === undefined) continue;
    jumps.push(add(draft, { op: "jump", to: 0 }));
    fork.second = steps.length;
  }
  for (const jump of jumps) jump.to = steps.length;
}

function compileRepeat(draft: Draft, repeat: AST.Quantifier): void {
  const { steps } = draft;
  const { min, max } = repeat;
  const round = { element: repeat.element, ...groupsIn(draft, repeat) };
  const isEndless = max === Number.POSITIVE_INFINITY;
  draft.hasLoop ||= isEndless;
  // `x+` goes back into its own last round, or nested ones would double at each level; not where a group's text is
  // asked for.
  const isCompact = isEndless && min > 0 && !draft.pattern.hasSame;
  for (let count = 1; count < min + (isCompact ? 0 : 1); count++) compileRound(draft, round);
  if (isCompact) {
    const start = steps.length;
    compileRound(draft, round);
    addFork(draft, repeat, start)(steps.length);
  } else if (isEndless) {
    const start = steps.length;
    const leaveAt = addFork(draft, repeat, start + 1);
    compileOptionalRound(draft, round);
    add(draft, { op: "jump", to: start });
    leaveAt(steps.length);
  } else {
    const forks: ((step: number) => void)[] = [];
    for (let count = min; count < max; count++) {
      forks.push(addFork(draft, repeat, steps.length + 1));
      compileOptionalRound(draft, round);
    }
    for (const leaveAt of forks) leaveAt(steps.length);
  }
}

/** A fork into another round or out of the loop; where that is, is said when it is known. */
function addFork(draft: Draft, { greedy }: AST.Quantifier, enter: number): (leaveAt: number) => void {
  const fork = add(draft, { op: "fork", first: enter, second: enter });
  return (leaveAt) => {
    if (greedy) fork.second = leaveAt;
    else fork.first = leaveAt;
  };
}

/** What is repeated, and the slots of the groups in it: each round forgets them. */
interface Round {
  readonly element: AST.QuantifiableElement;
  readonly from: number;
  readonly to: number;
}

function groupsIn({ pattern }: Draft, { start, end }: AST.Quantifier): Pick<Round, "from" | "to"> {
  const inside = [...pattern.groups].filter(([group]) => group.start >= start && group.end <= end);
  const from = 2 * (inside[0]?.[1] ?? 0);
  return { from, to: from + 2 * inside.length };
}

/**
 * A round that need not be: RegExp does not count an empty one, which shows only in what its groups hold afterwards.
 */
function compileOptionalRound(draft: Draft, round: Round): void {
  const { hasSame } = draft.pattern;
  const slot = hasSame ? draft.slotCount++ : 0;
  if (hasSame) add(draft, { op: "save", slot });
  compileRound(draft, round);
  if (hasSame) add(draft, { op: "moved", slot });
}

function compileRound(draft: Draft, { element, from, to }: Round): void {
  if (draft.pattern.hasSame && to > from) add(draft, { op: "clear", from, to });
  compileElement(draft, element);
}
