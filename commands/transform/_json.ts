import path from "node:path";
import { Unreadable } from "../_pack/limits.ts";
import type { EngineInput, Transformed } from "./_engines.ts";
import { Lines } from "./_lines.ts";
import { decodeText } from "./_text.ts";

/** Deeper values are told in one line, as JSON. */
const maxDepth = 64;
/**
 * Numbers of so many digits, or with an exponent, can be more than a double holds: they are told as they are written.
 */
const longNumber = /[\d.]{16}|\d[eE][-+]?\d/;

/** What TypeScript does not know yet of JSON: a number by its very digits. */
const raw = JSON as unknown as {
  rawJSON(text: string): { readonly rawJSON: string };
  isRawJSON(value: unknown): value is { readonly rawJSON: string };
};

/** Each value on a line with the path to it: `authors[0].name: Ada`. JSON Lines: one document a line. */
export function fromJson({ bytes, name, limits }: EngineInput): Transformed {
  const text = decodeText(bytes);
  const isLines = [".jsonl", ".ndjson"].includes(path.extname(name).toLowerCase());
  const { documents, facts } = isLines ? readLines(text) : { documents: [parseOne(text)], facts: {} };
  const lines = new Lines(limits);
  for (const [at, document] of documents.entries()) addLines(lines, document, isLines ? `[${at}]` : "", 0);
  return { text: lines.toText(), title: "", facts: { documents: documents.length, values: lines.count, ...facts } };
}

/** A line that is damaged, or the last one half written, leaves the others worth having; it is counted. */
function readLines(text: string): { documents: unknown[]; facts: Transformed["facts"] } {
  const documents: unknown[] = [];
  const failures: { readonly line: number; readonly error: unknown }[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    try {
      documents.push(parseOne(line, at + 1));
    } catch (error) {
      failures.push({ line: at + 1, error });
    }
  }
  const [first] = failures;
  if (first === undefined) return { documents, facts: {} };
  if (documents.length === 0) throw first.error;
  return { documents, facts: { bad_lines: failures.length, first_bad_line: first.line } };
}

function parseOne(text: string, line?: number): unknown {
  try {
    return longNumber.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text);
  } catch (error) {
    const where = line === undefined ? "" : ` in line ${line}`;
    throw isTooDeep(error)
      ? tooDeep(where)
      : new Unreadable(`it is no valid JSON${where}: ${(error as Error).message}`);
  }
}

function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = typeof value === "number" ? context?.source : undefined;
  return source !== undefined && longNumber.test(source) ? raw.rawJSON(source) : value;
}

function addLines(lines: Lines, value: unknown, place: string, depth: number): void {
  if (typeof value !== "object" || value === null || depth >= maxDepth || raw.isRawJSON(value)) {
    const shown = typeof value === "string" ? value : toJson(value);
    lines.add(place === "" ? shown : `${place}: ${shown}`);
  } else if (Array.isArray(value))
    for (const [at, item] of value.entries()) addLines(lines, item, `${place}[${at}]`, depth + 1);
  else
    for (const [key, item] of Object.entries(value))
      addLines(lines, item, place === "" ? key : `${place}.${key}`, depth + 1);
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw isTooDeep(error) ? tooDeep() : error;
  }
}

/** The language has no depth that is too much, only a stack that ends. */
const isTooDeep = (error: unknown) => error instanceof RangeError && error.message.includes("call stack");
const tooDeep = (where = "") =>
  new Unreadable(`its values are nested too deep${where}; thousands of lists or objects lie inside one another`);
