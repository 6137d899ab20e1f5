/*
 * Ours, because no matcher that npm has reads all of JSON Schema's patterns and ends in time: RegExp tries every way
 * through a pattern, and `^(a+)+$` has 2^n of them; re2js (2.10, 916 kB, 22 ms to load) knows neither `(?=` nor `\1`.
 */
import { hasChar, isWordChar } from "./char-set.ts";
import { charsOf, type Edge, type Instruction, type Program } from "./pattern-program.ts";

/** Steps that may still be made. Steps, not time, so that a busy machine gives the same answer. */
export interface Allowance {
  left: number;
}

type Slots = readonly number[];

/** A way through a text: where in the program, where in the text, and what the groups hold. */
interface Way {
  step: number;
  at: number;
  slots: Slots;
}

interface Match {
  readonly program: Program;
  readonly units: readonly number[];
  readonly allowance: Allowance;
  readonly stepCost: number;
}

const MAX_TEXT_CHARACTERS = 10_000;

/**
 * Whether a text matches; undefined when that takes more steps than a pattern is given.
 *
 * No step is tried twice at the same place of the text, so the work is at most steps × characters. Only a pattern that
 * asks for the text of an earlier group (`\1`) must try all ways; there the limit is what ends it.
 */
export function matchProgram(program: Program, text: string, allowance: Allowance): boolean | undefined {
  const units = charsOf(text, program.isUnicode).map((char) => char.codePointAt(0) as number);
  if (units.length > MAX_TEXT_CHARACTERS) return undefined;
  const slots: Slots = program.hasSame ? Array.from({ length: program.slotCount }, () => -1) : [];
  const match: Match = { program, units, allowance, stepCost: 1 + (slots.length >> 2) };
  const tried = new Set<number>();
  for (let at = 0; at <= units.length; at++) {
    if (walk(match, { step: 0, at, slots }, tried) !== undefined) return true;
    if (allowance.left <= 0) return undefined;
  }
  return false;
}

/** The groups as they stand at `found`, by the preferred way there; undefined when there is none. */
function walk(match: Match, from: Way, tried: Set<number>): Slots | undefined {
  const { program, units, allowance, stepCost } = match;
  const ways = [from];
  for (let way = ways.pop(); way !== undefined; way = ways.pop()) {
    for (;;) {
      allowance.left -= stepCost;
      if (allowance.left <= 0) return undefined;
      if (!program.hasSame) {
        const place = way.step * (units.length + 1) + way.at;
        if (tried.has(place)) break;
        tried.add(place);
      }
      const current = program.steps[way.step++] as Instruction;
      if (current.op === "found") return way.slots;
      if (current.op === "fork") {
        ways.push({ ...way, step: current.second });
        way.step = current.first;
      } else if (!follow(match, way, current)) break;
    }
  }
  return undefined;
}

/** Goes on by one instruction; false when it does not hold here. */
function follow(match: Match, way: Way, current: Exclude<Instruction, { op: "found" | "fork" }>): boolean {
  const { units, allowance } = match;
  switch (current.op) {
    case "set": {
      const code = units[current.isBackward ? way.at - 1 : way.at];
      way.at += current.isBackward ? -1 : 1;
      return code !== undefined && hasChar(current.set, code);
    }
    case "jump":
      way.step = current.to;
      return true;
    case "edge":
      return isAtEdge(units, current.edge, way.at);
    case "look": {
      const found = walk(match, { ...way }, new Set());
      way.slots = found ?? way.slots;
      way.step = current.next;
      return allowance.left > 0 && (found === undefined) === current.isNegated;
    }
    case "same":
      return followSame(match, way, current);
    case "save":
      if (match.program.hasSame) way.slots = way.slots.with(current.slot, way.at);
      return true;
    case "clear":
      way.slots = clearSlots(way.slots, current);
      return true;
    case "moved":
      return way.slots[current.slot] !== way.at;
  }
}

export function clearSlots(slots: Slots, { from, to }: { readonly from: number; readonly to: number }): Slots {
  return slots.map((value, slot) => (slot >= from && slot < to ? -1 : value));
}

function isAtEdge(units: readonly number[], edge: Edge, at: number): boolean {
  if (edge === "start") return at === 0;
  if (edge === "end") return at === units.length;
  return (isWordChar(units[at - 1]) !== isWordChar(units[at])) === (edge === "word");
}

/** Goes behind (or before) the same text as the group had; a group that had none is an empty text. */
function followSame({ units, allowance }: Match, way: Way, same: Instruction & { op: "same" }): boolean {
  const [from = -1, to = -1] = way.slots.slice(2 * same.group, 2 * same.group + 2);
  if (from < 0 || to < 0) return true;
  const length = to - from;
  const start = same.isBackward ? way.at - length : way.at;
  allowance.left -= length;
  way.at = same.isBackward ? start : start + length;
  for (let index = 0; index < length; index++)
    if (units[start + index] === undefined || units[start + index] !== units[from + index]) return false;
  return true;
}
