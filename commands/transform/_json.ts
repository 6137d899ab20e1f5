import path from "node:path";
import { CommandError } from "meanwhile";
import type { EngineInput, Transformed } from "./_engines.ts";
import { Lines } from "./_lines.ts";
import { decodeText } from "./_text.ts";

/** Deeper values are told in one line, as JSON. */
const maxDepth = 64;

/** Each value on a line with the path to it: `authors[0].name: Ada`. JSON Lines: one document a line. */
export function fromJson({ bytes, name }: EngineInput): Transformed {
  const text = decodeText(bytes);
  const isLines = [".jsonl", ".ndjson"].includes(path.extname(name).toLowerCase());
  const documents = isLines ? readLines(text) : [parseOne(text)];
  const lines = new Lines();
  for (const [at, document] of documents.entries()) addLines(lines, document, isLines ? `[${at}]` : "", 0);
  return { text: lines.toText(), title: "", facts: { documents: documents.length, values: lines.count } };
}

function readLines(text: string): unknown[] {
  const documents: unknown[] = [];
  for (const [at, line] of text.split("\n").entries()) if (line.trim() !== "") documents.push(parseOne(line, at + 1));
  return documents;
}

function parseOne(text: string, line?: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CommandError(`it is no valid JSON${line === undefined ? "" : ` in line ${line}`}: ${(error as Error).message}`);
  }
}

function addLines(lines: Lines, value: unknown, place: string, depth: number): void {
  if (typeof value !== "object" || value === null || depth >= maxDepth) {
    const shown = typeof value === "string" ? value : JSON.stringify(value);
    lines.add(place === "" ? shown : `${place}: ${shown}`);
  } else if (Array.isArray(value)) for (const [at, item] of value.entries()) addLines(lines, item, `${place}[${at}]`, depth + 1);
  else for (const [key, item] of Object.entries(value)) addLines(lines, item, place === "" ? key : `${place}.${key}`, depth + 1);
}
