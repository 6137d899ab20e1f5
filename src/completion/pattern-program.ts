import { type CharSet, hasChar, isWordChar } from "./char-set.ts";
import { charsOf, type Edge, type ParsedPattern, type PatternNode, UnreadablePattern } from "./pattern-parse.ts";

/** A pattern as steps; a step goes on to the one behind it unless it says otherwise. */
export type Step =
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

export interface Program {
  readonly steps: readonly Step[];
  /** Two for each group, and one for each loop that must notice an empty round. */
  readonly slotCount: number;
  /** It asks for the text of an earlier group, so what happens next depends on how it came here. */
  readonly hasSame: boolean;
  /** It repeats something without end. */
  readonly hasLoop: boolean;
  readonly isUnicode: boolean;
}

const MAX_STEPS = 20_000;

/**
 * Turns a tree into steps; counted repeats are written out, so a pattern whose counts multiply beyond the limit is
 * unreadable.
 */
export function compileProgram(parsed: ParsedPattern, node: PatternNode = parsed.node): Program {
  const { hasSame } = parsed;
  const steps: Step[] = [];
  let slotCount = 2 * (parsed.groupCount + 1);
  let hasLoop = false;
  compile(node, false);
  add({ op: "found" });
  return { steps, slotCount, hasSame, hasLoop, isUnicode: parsed.isUnicode };

  function add<T extends Step>(step: T): T {
    if (steps.length >= MAX_STEPS)
      throw new UnreadablePattern("a pattern with counts as large as these cannot be read");
    steps.push(step);
    return step;
  }

  function compile(current: PatternNode, isBackward: boolean): void {
    if (current.kind === "set") add({ op: "set", set: current.set, isBackward });
    else if (current.kind === "sequence")
      for (const item of isBackward ? current.items.toReversed() : current.items) compile(item, isBackward);
    else if (current.kind === "choice") compileChoice(current.options, isBackward);
    else if (current.kind === "repeat") compileRepeat(current, isBackward);
    else if (current.kind === "group") {
      add({ op: "save", slot: 2 * current.group + (isBackward ? 1 : 0) });
      compile(current.node, isBackward);
      add({ op: "save", slot: 2 * current.group + (isBackward ? 0 : 1) });
    } else if (current.kind === "edge") add({ op: "edge", edge: current.edge });
    else if (current.kind === "same") add({ op: "same", group: current.group, isBackward });
    else {
      const look = add({ op: "look", isNegated: current.isNegated, next: 0 });
      compile(current.node, current.isBehind);
      add({ op: "found" });
      look.next = steps.length;
    }
  }

  function compileChoice(options: readonly PatternNode[], isBackward: boolean): void {
    const jumps: { to: number }[] = [];
    for (const [index, option] of options.entries()) {
      const fork = index === options.length - 1 ? undefined : add({ op: "fork", first: steps.length + 1, second: 0 });
      compile(option, isBackward);
      if (fork === undefined) continue;
      jumps.push(add({ op: "jump", to: 0 }));
      fork.second = steps.length;
    }
    for (const jump of jumps) jump.to = steps.length;
  }

  function compileRepeat(repeat: PatternNode & { kind: "repeat" }, isBackward: boolean): void {
    const { min, max } = repeat;
    const isEndless = max === Number.POSITIVE_INFINITY;
    hasLoop ||= isEndless;
    // `x+` goes back into its own last round, or nested ones would double at each level; not where a group's text is
    // asked for.
    const isCompact = isEndless && min > 0 && !hasSame;
    for (let round = 1; round < min + (isCompact ? 0 : 1); round++) compileRound(repeat, isBackward);
    if (isCompact) {
      const start = steps.length;
      compileRound(repeat, isBackward);
      addFork(repeat.isLazy, start, steps.length + 1);
    } else if (isEndless) {
      const start = steps.length;
      const fork = addFork(repeat.isLazy, start + 1, 0);
      compileOptionalRound(repeat, isBackward);
      add({ op: "jump", to: start });
      fork.leaveAt(steps.length);
    } else {
      const forks: { leaveAt(step: number): void }[] = [];
      for (let round = min; round < max; round++) {
        forks.push(addFork(repeat.isLazy, steps.length + 1, 0));
        compileOptionalRound(repeat, isBackward);
      }
      for (const fork of forks) fork.leaveAt(steps.length);
    }
  }

  /**
   * A round that need not be: RegExp does not count an empty one, which shows only in what its groups hold afterwards.
   */
  function compileOptionalRound(repeat: PatternNode & { kind: "repeat" }, isBackward: boolean): void {
    const slot = hasSame ? slotCount++ : 0;
    if (hasSame) add({ op: "save", slot });
    compileRound(repeat, isBackward);
    if (hasSame) add({ op: "moved", slot });
  }

  function compileRound(repeat: PatternNode & { kind: "repeat" }, isBackward: boolean): void {
    const [from, to] = repeat.groups;
    if (hasSame && to > from) add({ op: "clear", from: 2 * from, to: 2 * to });
    compile(repeat.node, isBackward);
  }

  function addFork(isLazy: boolean, enter: number, leave: number) {
    const fork = add({ op: "fork", first: isLazy ? leave : enter, second: isLazy ? enter : leave });
    return {
      leaveAt(step: number) {
        if (isLazy) fork.first = step;
        else fork.second = step;
      },
    };
  }
}

type Slots = readonly number[];

/** Steps that may still be made. Steps, not time, so that a busy machine gives the same answer. */
export interface Allowance {
  left: number;
}

const MAX_TEXT_CHARACTERS = 10_000;

/**
 * Whether a text matches; undefined when that takes more steps than a pattern is given.
 *
 * RegExp tries every way through a pattern, and `^(a+)+$` has 2^n of them. Here no step is tried twice at the same
 * place of the text, so the work is at most steps × characters. Only a pattern that asks for the text of an earlier
 * group (`\1`) must try all ways; there the limit is what ends it.
 */
export function matchProgram(program: Program, text: string, allowance: Allowance): boolean | undefined {
  const { steps, hasSame } = program;
  const units = charsOf(text, program.isUnicode).map((char) => char.codePointAt(0) as number);
  if (units.length > MAX_TEXT_CHARACTERS) return undefined;
  const empty: Slots = hasSame ? Array.from({ length: program.slotCount }, () => -1) : [];
  const stepCost = 1 + (empty.length >> 2);
  const tried = new Set<number>();
  for (let start = 0; start <= units.length; start++) {
    if (walk(0, start, empty, tried) !== undefined) return true;
    if (allowance.left <= 0) return undefined;
  }
  return false;

  /** The groups as they stand at `found`, by the preferred way there; undefined when there is none. */
  function walk(from: number, start: number, slotsBefore: Slots, seen: Set<number>): Slots | undefined {
    const ways: { step: number; at: number; slots: Slots }[] = [{ step: from, at: start, slots: slotsBefore }];
    for (let way = ways.pop(); way !== undefined; way = ways.pop()) {
      let { step, at, slots } = way;
      for (;;) {
        allowance.left -= stepCost;
        if (allowance.left <= 0) return undefined;
        if (!hasSame) {
          const place = step * (units.length + 1) + at;
          if (seen.has(place)) break;
          seen.add(place);
        }
        const current = steps[step] as Step;
        if (current.op === "found") return slots;
        step++;
        if (current.op === "set") {
          const code = units[current.isBackward ? at - 1 : at];
          if (code === undefined || !hasChar(current.set, code)) break;
          at += current.isBackward ? -1 : 1;
        } else if (current.op === "fork") {
          ways.push({ step: current.second, at, slots });
          step = current.first;
        } else if (current.op === "jump") step = current.to;
        else if (current.op === "edge") {
          if (!isAtEdge(current.edge, at)) break;
        } else if (current.op === "look") {
          const found = walk(step, at, slots, new Set());
          if (allowance.left <= 0 || (found === undefined) !== current.isNegated) break;
          if (found !== undefined) slots = found;
          step = current.next;
        } else if (current.op === "same") {
          const moved = skipSame(current, at, slots);
          if (moved === undefined) break;
          at = moved;
        } else if (hasSame) {
          if (current.op === "moved" && slots[current.slot] === at) break;
          if (current.op === "save") slots = slots.with(current.slot, at);
          if (current.op === "clear")
            slots = slots.map((value, slot) => (slot >= current.from && slot < current.to ? -1 : value));
        }
      }
    }
    return undefined;
  }

  function isAtEdge(edge: Edge, at: number): boolean {
    if (edge === "start") return at === 0;
    if (edge === "end") return at === units.length;
    return (isWordChar(units[at - 1]) !== isWordChar(units[at])) === (edge === "word");
  }

  /** The place behind (or before) the same text as the group had; a group that had none is an empty text. */
  function skipSame(same: { group: number; isBackward: boolean }, at: number, slots: Slots): number | undefined {
    const [from = -1, to = -1] = slots.slice(2 * same.group, 2 * same.group + 2);
    if (from < 0 || to < 0) return at;
    const start = same.isBackward ? at - (to - from) : at;
    allowance.left -= to - from;
    for (let index = 0; index < to - from; index++)
      if (units[start + index] === undefined || units[start + index] !== units[from + index]) return undefined;
    return same.isBackward ? start : start + (to - from);
  }
}
