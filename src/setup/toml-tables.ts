import { parse } from "@decimalturn/toml-patch";
import { Nesting } from "./nesting.ts";

/**
 * The lines of one [table], from its header to its last line; what stands above the next header belongs to that one.
 */
interface TableLines {
  readonly keys: readonly string[];
  /** [[…]]: one of several. */
  readonly isList: boolean;
  readonly from: number;
  readonly to: number;
}

/** Where the tables of a text are. The text is known to be TOML. */
export function tablesOf(text: string): TableLines[] {
  const headers = headersOf(text);
  return headers.map((from, index) => {
    const end = headers[index + 1] ?? text.length;
    const lineEnd = text.indexOf("\n", from);
    const header = text.slice(from, lineEnd < 0 ? text.length : lineEnd).trimEnd();
    return { ...readHeader(header), from, to: endOfContent(text, end) };
  });
}

/** Texts, comments, brackets, line ends, and runs of everything else. */
const token =
  /"""[\s\S]*?(?<!\\)(?:\\\\)*"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|#[^\n]*|[[\]{}\n]|[^\s"'#[\]{}]+|[^\S\n]+/g;

/** Brackets, and keys such as a.b.c, may not nest without end. */
export function checkNesting(text: string): void {
  const nesting = new Nesting();
  for (const { 0: part } of text.matchAll(token)) {
    if (part === "[" || part === "{") nesting.enter();
    else if (part === "]" || part === "}") nesting.leave();
    else if (part === "\n") nesting.endKey();
    else if (!/^["'#]/.test(part)) for (const sign of part) stepOver(sign, nesting);
  }
}

function stepOver(sign: string, nesting: Nesting): void {
  if (sign === ".") nesting.step();
  if (sign === ",") nesting.endKey();
}

/** Where a line begins with a header: [ is one only outside of texts and lists. */
function headersOf(text: string): number[] {
  const found: number[] = [];
  let depth = 0;
  let isLineStart = true;
  for (const { 0: part, index } of text.matchAll(token)) {
    if (part === "\n") isLineStart = true;
    else if (/^[^\S\n]+$/.test(part)) continue;
    else {
      if (part === "[" && isLineStart && depth === 0) found.push(index);
      if (part === "[" || part === "{") depth++;
      if (part === "]" || part === "}") depth--;
      isLineStart = false;
    }
  }
  return found;
}

/** Before the blank lines and comments that lead up to `end`. */
function endOfContent(text: string, end: number): number {
  let at = end;
  for (;;) {
    const lineStart = text.lastIndexOf("\n", at - 2) + 1;
    if (lineStart === 0 || !/^\s*(?:#.*)?$/.test(text.slice(lineStart, at).trimEnd())) return at;
    at = lineStart;
  }
}

function readHeader(header: string): { keys: string[]; isList: boolean } {
  const keys: string[] = [];
  let value: unknown = parse(header);
  let isList = false;
  while (typeof value === "object" && value !== null) {
    if (Array.isArray(value)) {
      isList = true;
      [value] = value;
      continue;
    }
    const [pair] = Object.entries(value);
    if (pair === undefined) break;
    keys.push(pair[0]);
    value = pair[1];
  }
  return { keys, isList };
}
