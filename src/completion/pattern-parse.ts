import { anyButLineEnd, type CharSet, letterClasses, setOf } from "./char-set.ts";

/** A pattern as a tree. */
export type PatternNode =
  | { readonly kind: "set"; readonly set: CharSet }
  | { readonly kind: "sequence"; readonly items: readonly PatternNode[] }
  | { readonly kind: "choice"; readonly options: readonly PatternNode[] }
  /** `groups` are the capturing groups inside, first and one past the last: each round forgets them. */
  | {
      readonly kind: "repeat";
      readonly node: PatternNode;
      readonly min: number;
      readonly max: number;
      readonly isLazy: boolean;
      readonly groups: Groups;
    }
  | { readonly kind: "group"; readonly group: number; readonly node: PatternNode }
  | { readonly kind: "edge"; readonly edge: Edge }
  | { readonly kind: "look"; readonly isBehind: boolean; readonly isNegated: boolean; readonly node: PatternNode }
  /** The same text as a group had. */
  | { readonly kind: "same"; readonly group: number };

export type Edge = "start" | "end" | "word" | "notWord";
export type Groups = readonly [from: number, to: number];

export interface ParsedPattern {
  readonly node: PatternNode;
  /** Capturing groups, counted from 1; group 0 is the whole. */
  readonly groupCount: number;
  readonly hasSame: boolean;
  /**
   * Whole characters (flag `u`, what JSON Schema asks for), or UTF-16 units for a pattern that is not valid with it.
   */
  readonly isUnicode: boolean;
}

/** The pattern is valid, but not one that completion works with. */
export class UnreadablePattern extends Error {
  override readonly name = "UnreadablePattern";
}

/** A text as what a pattern counts: whole characters with the flag, UTF-16 units without. */
export function charsOf(text: string, isUnicode: boolean): string[] {
  return isUnicode ? Array.from(text) : text.split("");
}

const MAX_NESTING = 100;
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 };

/** Reads a pattern that `new RegExp` has accepted. */
export function parsePattern(source: string, isUnicode: boolean): ParsedPattern {
  const chars = charsOf(source, isUnicode);
  // Without the flag and without a named group, \k is the letter.
  const hasNames = isUnicode || /\(\?<[^=!]/.test(source);
  const groupNames = new Map<string, number>();
  const namedUses: { use: { kind: "same"; group: number }; name: string }[] = [];
  let at = 0;
  let groupCount = 0;
  let depth = 0;
  let lastSame = 0;
  let hasSame = false;

  const node = parseChoice();
  for (const { use, name } of namedUses) use.group = groupNames.get(name) ?? unreadable(`\\k<${name}>`);
  if (lastSame > groupCount) unreadable(`\\${lastSame}`);
  return { node, groupCount, hasSame, isUnicode };

  function parseChoice(): PatternNode {
    if (++depth > MAX_NESTING) unreadable("groups nested so deep");
    const options = [parseSequence()];
    while (chars[at] === "|") {
      at++;
      options.push(parseSequence());
    }
    depth--;
    return options.length === 1 ? (options[0] as PatternNode) : { kind: "choice", options };
  }

  function parseSequence(): PatternNode {
    const items: PatternNode[] = [];
    while (at < chars.length && chars[at] !== "|" && chars[at] !== ")") {
      const groupsBefore = groupCount;
      const atom = parseAtom();
      items.push(parseQuantifier(atom, [groupsBefore + 1, groupCount + 1]));
    }
    return items.length === 1 ? (items[0] as PatternNode) : { kind: "sequence", items };
  }

  function parseAtom(): PatternNode {
    const char = chars[at++];
    if (char === "^") return { kind: "edge", edge: "start" };
    if (char === "$") return { kind: "edge", edge: "end" };
    if (char === ".") return { kind: "set", set: anyButLineEnd };
    if (char === "(") return parseGroup();
    if (char === "[") return { kind: "set", set: parseClass() };
    if (char === "\\") return parseEscape();
    return literal(codeOf(char as string));
  }

  function parseGroup(): PatternNode {
    if (take("?:")) return closed(parseChoice());
    if (take("?=")) return look(false, false);
    if (take("?!")) return look(false, true);
    if (take("?<=")) return look(true, false);
    if (take("?<!")) return look(true, true);
    const group = ++groupCount;
    if (take("?<")) {
      const name = takeUntil(">");
      if (groupNames.has(name)) unreadable(`two groups called ${name}`);
      groupNames.set(name, group);
    } else if (chars[at] === "?") unreadable("flags inside a group");
    return { kind: "group", group, node: closed(parseChoice()) };
  }

  function look(isBehind: boolean, isNegated: boolean): PatternNode {
    return { kind: "look", isBehind, isNegated, node: closed(parseChoice()) };
  }

  function closed(inner: PatternNode): PatternNode {
    at++; // the bracket
    return inner;
  }

  function parseQuantifier(atom: PatternNode, groups: Groups): PatternNode {
    const char = chars[at];
    let bounds: [number, number] | undefined;
    if (char === "*") bounds = [0, Number.POSITIVE_INFINITY];
    if (char === "+") bounds = [1, Number.POSITIVE_INFINITY];
    if (char === "?") bounds = [0, 1];
    if (bounds !== undefined) at++;
    else if (char === "{") {
      // Without the flag, a brace that is no quantifier is a brace.
      const counted = /^\{(\d+)(,?)(\d*)\}/.exec(chars.slice(at, at + 40).join(""));
      if (counted === null) return atom;
      const [whole, min, comma, max] = counted;
      bounds = [Number(min), comma === "" ? Number(min) : max === "" ? Number.POSITIVE_INFINITY : Number(max)];
      at += whole.length;
    }
    if (bounds === undefined) return atom;
    return { kind: "repeat", node: atom, min: bounds[0], max: bounds[1], isLazy: take("?"), groups };
  }

  function parseEscape(): PatternNode {
    const char = chars[at] as string;
    if (char === "b" || char === "B") {
      at++;
      return { kind: "edge", edge: char === "b" ? "word" : "notWord" };
    }
    if (/[1-9]/.test(char)) {
      let digits = "";
      while (at < chars.length && /\d/.test(chars[at] as string)) digits += chars[at++];
      hasSame = true;
      lastSame = Math.max(lastSame, Number(digits));
      return { kind: "same", group: Number(digits) };
    }
    if (char === "k" && hasNames) {
      at++;
      if (!take("<")) unreadable("\\k");
      const use = { kind: "same" as const, group: 0 };
      namedUses.push({ use, name: takeUntil(">") });
      hasSame = true;
      return use;
    }
    const escaped = parseClassEscape();
    return typeof escaped === "number" ? literal(escaped) : { kind: "set", set: escaped };
  }

  /** What stands behind a backslash, inside a class or not: one character or a class. */
  function parseClassEscape(): number | CharSet {
    const char = chars[at++] as string;
    if (Object.hasOwn(letterClasses, char)) return setOf(letterClasses[char] ?? []);
    if (Object.hasOwn(controls, char)) return controls[char] as number;
    if ((char === "p" || char === "P") && isUnicode)
      return { ranges: [], escapes: [new RegExp(`^\\${char}${takeUntil("}")}}$`, "u")], negated: false };
    if (char === "c" && /[A-Za-z]/.test(chars[at] ?? "")) return codeOf(chars[at++] as string) % 32;
    if (char === "x") return takeHex(2) ?? codeOf("x");
    if (char === "u") return parseUnicodeEscape();
    if (/\d/.test(char) && !(char === "0" && !/\d/.test(chars[at] ?? ""))) unreadable(`\\${char}`);
    if (char === "c") unreadable("\\c");
    return char === "0" ? 0 : codeOf(char);
  }

  function parseUnicodeEscape(): number {
    if (isUnicode && take("{")) return Number.parseInt(takeUntil("}"), 16);
    const unit = takeHex(4);
    if (unit === undefined) return codeOf("u");
    const isHigh = unit >= 0xd800 && unit <= 0xdbff;
    if (isUnicode && isHigh && chars[at] === "\\" && chars[at + 1] === "u") {
      const start = at;
      at += 2;
      const low = takeHex(4);
      if (low !== undefined && low >= 0xdc00 && low <= 0xdfff)
        return (unit - 0xd800) * 0x400 + (low - 0xdc00) + 0x10000;
      at = start;
    }
    return unit;
  }

  function parseClass(): CharSet {
    const negated = take("^");
    const ranges: [number, number][] = [];
    const escapes: RegExp[] = [];
    while (at < chars.length && chars[at] !== "]") {
      const first = parseClassAtom();
      const isRange = chars[at] === "-" && chars[at + 1] !== "]" && at + 1 < chars.length;
      if (typeof first === "number" && isRange) {
        const dash = at++;
        const last = parseClassAtom();
        if (typeof last === "number") {
          ranges.push([first, last]);
          continue;
        }
        at = dash;
      }
      if (typeof first === "number") ranges.push([first, first]);
      else {
        ranges.push(...first.ranges.map(([from, to]): [number, number] => [from, to]));
        escapes.push(...first.escapes);
      }
    }
    at++;
    return { ranges, escapes, negated };
  }

  function parseClassAtom(): number | CharSet {
    const char = chars[at++] as string;
    if (char !== "\\") return codeOf(char);
    if (chars[at] === "b") {
      at++;
      return 8;
    }
    return parseClassEscape();
  }

  function take(text: string): boolean {
    for (let index = 0; index < text.length; index++) if (chars[at + index] !== text[index]) return false;
    at += text.length;
    return true;
  }

  function takeUntil(end: string): string {
    const start = at;
    while (at < chars.length && chars[at] !== end) at++;
    return chars.slice(start, at++).join("");
  }

  function takeHex(length: number): number | undefined {
    const digits = chars.slice(at, at + length).join("");
    if (digits.length !== length || !/^[\da-f]+$/i.test(digits)) return undefined;
    at += length;
    return Number.parseInt(digits, 16);
  }
}

function literal(code: number): PatternNode {
  return { kind: "set", set: setOf([[code, code]]) };
}

function codeOf(char: string): number {
  return char.codePointAt(0) as number;
}

function unreadable(what: string): never {
  throw new UnreadablePattern(`${what} cannot be read`);
}
