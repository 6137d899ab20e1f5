import type { AST } from "@eslint-community/regexpp";

type Range = readonly [first: number, last: number];

/** A class of characters, as code points: in a range or matching an escape, or, when negated, neither. */
export interface CharSet {
  readonly ranges: readonly Range[];
  /** `\p{…}` and its like: a character is asked one at a time, which no pattern makes slow. */
  readonly escapes: readonly RegExp[];
  readonly negated: boolean;
}

const LAST = 0x10ffff;
const few = 64;

const one = (code: number): Range => [code, code];
const digit: readonly Range[] = [[48, 57]];
const word: readonly Range[] = [[97, 122], [65, 90], [48, 57], one(95)];
// biome-ignore format: a table
const space: readonly Range[] = [one(0x20), [9, 13], one(0xa0), one(0x1680), [0x2000, 0x200a], [0x2028, 0x2029], one(0x202f), one(0x205f), one(0x3000), one(0xfeff)];

const letterClasses = { digit, word, space };

/** What a class, an escape, a `.` or a single character of a pattern stands for. */
export function charSetOf(node: CharNode): CharSet {
  if (node.type === "CharacterClass") {
    const parts = node.elements.map(charSetOf);
    return {
      ranges: parts.flatMap(({ ranges }) => ranges),
      escapes: parts.flatMap(({ escapes }) => escapes),
      negated: node.negate,
    };
  }
  if (node.type === "CharacterClassRange") return setOf([[node.min.value, node.max.value]]);
  if (node.type === "Character") return setOf([one(node.value)]);
  if (node.kind === "any") return anyButLineEnd;
  if (node.kind === "property") return { ranges: [], escapes: [new RegExp(`^${node.raw}$`, "u")], negated: false };
  const ranges = letterClasses[node.kind];
  return setOf(node.negate ? complement(ranges) : ranges);
}

/** A part of a pattern that takes one character. */
export type CharNode =
  | AST.ClassRangesCharacterClass
  | AST.ClassRangesCharacterClassElement
  | AST.AnyCharacterSet
  | AST.EscapeCharacterSet;

/** Any character at all; those that `source` mentions are among the typical ones. */
export function anyCharacter(source: string): CharSet {
  const set = setOf([[0, LAST]]);
  const mentioned = Array.from(source, (char) => char.codePointAt(0) as number);
  const codes = [...new Set([...usual.slice(0, 5), ...mentioned, ...usual])].filter(isWhole);
  known.set(set, { codes: codes.slice(0, few), isAll: false });
  return set;
}

/** What `.` stands for. */
const anyButLineEnd: CharSet = {
  ranges: [one(10), one(13), [0x2028, 0x2029]],
  escapes: [],
  negated: true,
};

function setOf(ranges: readonly Range[]): CharSet {
  return { ranges, escapes: [], negated: false };
}

export function hasChar(set: CharSet, code: number): boolean {
  let isIn = false;
  for (const [first, last] of set.ranges) {
    if (code < first || code > last) continue;
    isIn = true;
    break;
  }
  return (isIn || set.escapes.some((matching) => matching.test(String.fromCodePoint(code)))) !== set.negated;
}

export function isWordChar(code: number | undefined): boolean {
  return code !== undefined && word.some(([first, last]) => code >= first && code <= last);
}

// What a person would type first, then letters of other scripts for the classes that want them.
const usual = Array.from(
  "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_./ :@,+#'\"!?()[]{}<>=*&%$\\|;~^`éßñÉΩλяЖאبहあア漢字한😀",
  (char) => char.codePointAt(0) as number,
);

const known = new WeakMap<CharSet, { codes: readonly number[]; isAll: boolean }>();

/** Characters that stand for a class: all of them, as written, when they are few; familiar ones first otherwise. */
export function typicalChars(set: CharSet): { readonly codes: readonly number[]; readonly isAll: boolean } {
  let typical = known.get(set);
  if (typical === undefined) {
    typical = findTypical(set);
    known.set(set, typical);
  }
  return typical;
}

function findTypical(set: CharSet): { codes: readonly number[]; isAll: boolean } {
  const size = set.ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  if (!set.negated && set.escapes.length === 0 && size <= few) {
    const codes = set.ranges.flatMap(([first, last]) =>
      Array.from({ length: last - first + 1 }, (_, at) => first + at),
    );
    return { codes: [...new Set(codes)].filter(isWhole), isAll: true };
  }
  const starts = set.negated
    ? []
    : set.ranges.slice(0, few).flatMap(([first, last]) => [first, first + 1, first + 2].filter((code) => code <= last));
  const codes = [...new Set([...usual, ...starts])].filter((code) => isWhole(code) && hasChar(set, code));
  return { codes: codes.slice(0, few), isAll: false };
}

/** Half of a surrogate pair is no character. */
const isWhole = (code: number) => code < 0xd800 || code > 0xdfff;

function complement(ranges: readonly Range[]): Range[] {
  const result: Range[] = [];
  let from = 0;
  for (const [first, last] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (first > from) result.push([from, first - 1]);
    from = last + 1;
  }
  return [...result, [from, LAST]];
}
