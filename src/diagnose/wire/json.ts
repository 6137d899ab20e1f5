/** Reading JSON that nobody vouches for. */

export type Json = Readonly<Record<string, unknown>>;

/** Deeper nesting could not be written or compared again without running out of stack. */
const maxDepth = 200;
/** A value of three bytes takes sixty when it is parsed: more of them than any list of tools has would fill the memory. */
const maxValues = 200_000;

/** What a text of JSON would cost, seen before it is parsed. */
interface Weight {
  readonly depth: number;
  readonly values: number;
}

const [quote, backslash, comma, openList, closeList, openObject, closeObject] = Array.from('"\\,[]{}', (letter) => letter.charCodeAt(0));

/** Weighs a text in one pass; it need not be JSON. */
export function weigh(text: string): Weight {
  let depth = 0;
  let deepest = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at);
    else if (code === comma) values++;
    else if (code === openList || code === openObject) {
      values++;
      depth++;
      if (depth > deepest) deepest = depth;
    } else if (code === closeList || code === closeObject) depth--;
  }
  return { depth: deepest, values };
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === backslash) at++;
    else if (code === quote) return at;
  }
  return text.length;
}

/** The value, or undefined for what is no JSON, too deep or too much; `onWeight` learns what it costs. */
export function parseJson(text: string, onWeight?: (values: number) => void): unknown {
  const { depth, values } = weigh(text);
  if (depth > maxDepth || values > maxValues) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    onWeight?.(values);
    return value;
  } catch {
    return undefined;
  }
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
