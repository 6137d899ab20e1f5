/** JSON that nobody vouches for: weighed before it is parsed, and looked at before it is believed. */

export type Json = Readonly<Record<string, unknown>>;

export interface JsonLimits {
  /** Deeper nesting could not be written again, nor compared, without running out of stack. */
  readonly depth: number;
  /** A value of three bytes takes sixty when it is parsed. */
  readonly values: number;
  /** Of one object. */
  readonly members?: number;
}

/** What a text of JSON would cost. */
export interface JsonWeight {
  readonly depth: number;
  readonly values: number;
  /** Which limit it passes; what comes after that is not counted. */
  readonly excess: keyof JsonLimits | undefined;
}

const [quote, backslash, comma, colon, openList, closeList, openObject, closeObject] = Array.from(
  '"\\,:[]{}',
  (letter) => letter.charCodeAt(0),
);

/** Weighs a text in one pass, outside its strings; it need not be JSON. */
export function weighJson(
  text: string,
  { depth: maxDepth, values: maxValues, members: maxMembers = Number.POSITIVE_INFINITY }: JsonLimits,
): JsonWeight {
  /** Of the objects that are open, by level. */
  const members: number[] = [0];
  let depth = 0;
  let deepest = 0;
  let values = 1;
  const weight = (excess?: keyof JsonLimits): JsonWeight => ({ depth: deepest, values, excess });
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === comma) {
      if (++values > maxValues) return weight("values");
    } else if (code === colon) {
      if (++(members[depth] as number) > maxMembers) return weight("members");
    } else if (code === openList || code === openObject) {
      if (++depth > deepest) deepest = depth;
      if (depth > maxDepth) return weight("depth");
      if (++values > maxValues) return weight("values");
      members[depth] = 0;
    } else if ((code === closeList || code === closeObject) && depth > 0) depth--;
  }
  return weight();
}

/** What a value costs that somebody else has parsed. */
export interface ValueWeight extends JsonWeight {
  /** About as many as its text has. */
  readonly bytes: number;
}

/** Weighs a value as `weighJson` does its text. */
export function weighValue(
  value: unknown,
  { depth: maxDepth, values: maxValues, members: maxMembers = Number.POSITIVE_INFINITY }: JsonLimits,
): ValueWeight {
  let deepest = 0;
  let values = 0;
  let bytes = 0;
  const visit = (part: unknown, depth: number): keyof JsonLimits | undefined => {
    if (++values > maxValues) return "values";
    bytes += typeof part === "string" ? 3 + Buffer.byteLength(part) : 2;
    if (typeof part !== "object" || part === null) return undefined;
    if (depth >= maxDepth) return "depth";
    deepest = Math.max(deepest, depth + 1);
    const names = Array.isArray(part) ? undefined : Object.keys(part);
    if (names !== undefined && names.length > maxMembers) return "members";
    for (const name of names ?? []) bytes += 3 + Buffer.byteLength(name);
    for (const inner of Array.isArray(part) ? part : Object.values(part)) {
      const excess = visit(inner, depth + 1);
      if (excess !== undefined) return excess;
    }
    return undefined;
  };
  const excess = visit(value, 0);
  return { depth: deepest, values, bytes, excess };
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (before > start && text.charCodeAt(before) === backslash) before--;
    const isEscaped = (at - before) % 2 === 0;
    if (!isEscaped) return at;
  }
  return text.length;
}

/** The value and how many it holds; undefined for what is no JSON, or more than the limits allow. */
export function parseWeighed(
  text: string,
  limits: JsonLimits,
): { readonly value: unknown; readonly values: number } | undefined {
  const { values, excess } = weighJson(text, limits);
  if (excess !== undefined) return undefined;
  try {
    return { value: JSON.parse(text) as unknown, values };
  } catch {
    return undefined;
  }
}

/** Why a message of this weight is not taken, to follow "the message …". */
export function describeExcess(excess: keyof JsonLimits, limits: JsonLimits): string {
  if (excess === "depth") return `is nested more than ${limits.depth} levels deep`;
  const most = (limits[excess] ?? 0).toLocaleString("en");
  return excess === "values" ? `holds more than ${most} values` : `has an object with more than ${most} members`;
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields of an object; none of anything else. */
export function fieldsOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** A list; empty for anything else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** As much of a client's own words as a sentence about them repeats. */
const maxEcho = 200;

/** Megabytes that a client sent as a name are not sent back to it in the error that nobody knows the name. */
export function excerptOf(words: string): string {
  return words.length <= maxEcho ? words : `${words.slice(0, maxEcho)}…`;
}
