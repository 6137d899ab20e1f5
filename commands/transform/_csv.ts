import { BeyondLimit } from "../_pack/limits.ts";
import type { EngineInput, Transformed } from "./_engines.ts";
import { Lines } from "./_lines.ts";
import { decodeText } from "./_text.ts";

/** Names stand on every line: of a longer one this much says enough. */
const maxName = 200;
/** So much of the first line says what stands between its values. */
const maxLooked = 64 * 1024;

/** Records as RFC 4180 has them, each on a line: `name: Ada; year: 1815`. The first is taken for the columns' names. */
export function fromCsv({ bytes, limits }: EngineInput): Transformed {
  const text = decodeText(bytes);
  const delimiter = findDelimiter(text);
  const records = readRecords(text, delimiter, limits.documentParts);
  const { value: header } = records.next();
  if (header === undefined) return { text: "", title: "", facts: { rows: 0, columns: 0 } };
  const names = header.map((name, at) => clean(name).slice(0, maxName) || unnamed(at));
  const lines = new Lines(limits);
  for (const record of records)
    lines.add(record.map((value, at) => `${names[at] ?? unnamed(at)}: ${clean(value)}`).join("; "));
  const rows = lines.count;
  // A single line may as well be a record: its text must not be lost.
  if (rows === 0) lines.add(header.map(clean).join("; "));
  return { text: lines.toText(), title: "", facts: { rows, columns: header.length } };
}

const clean = (value: string) => value.replaceAll(/\s+/g, " ").trim();
const unnamed = (at: number) => `column ${at + 1}`;

/** The one of comma, semicolon and tab that the first line holds most of. */
function findDelimiter(text: string): string {
  const end = text.indexOf("\n");
  const line = text.slice(0, Math.min(end === -1 ? text.length : end, maxLooked)).replaceAll(/"[^"]*"/g, "");
  const count = (delimiter: string) => line.split(delimiter).length;
  return [",", ";", "\t"].reduce((most, delimiter) => (count(delimiter) > count(most) ? delimiter : most));
}

/** One record at a time; empty lines are none. A quote that is never closed ends with the text. */
function* readRecords(text: string, delimiter: string, maxColumns: number): Generator<string[], undefined> {
  let record: string[] = [];
  for (let at = 0; at < text.length; ) {
    const { value, end } = text[at] === '"' ? readQuoted(text, at) : readBare(text, at, delimiter);
    if (record.length === maxColumns) throw new BeyondLimit(`it has more than ${maxColumns} columns`, "documentParts");
    record.push(value);
    at = end + 1;
    if (text[end] === delimiter && at < text.length) continue;
    if (text[end] === delimiter) record.push("");
    if (record.length > 1 || record[0] !== "") yield record;
    record = [];
  }
  return undefined;

  function readQuoted(source: string, start: number): { value: string; end: number } {
    const pieces: string[] = [];
    let from = start + 1;
    for (;;) {
      const quote = source.indexOf('"', from);
      pieces.push(source.slice(from, quote === -1 ? source.length : quote));
      if (quote === -1) return { value: pieces.join('"'), end: source.length };
      if (source[quote + 1] !== '"') {
        const rest = readBare(source, quote + 1, delimiter);
        return { value: pieces.join('"') + rest.value, end: rest.end };
      }
      from = quote + 2;
    }
  }
}

function readBare(text: string, start: number, delimiter: string): { value: string; end: number } {
  let end = start;
  while (end < text.length && text[end] !== delimiter && text[end] !== "\n") end++;
  return { value: text.slice(start, end), end };
}
