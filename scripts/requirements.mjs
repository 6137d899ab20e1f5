// Writes the table of docs/protocol.md from test/scenarios/requirements.ts. Needs a Node that strips types:
// npx node scripts/requirements.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { requirements } from "../test/scenarios/requirements.ts";

const page = new URL("../docs/protocol.md", import.meta.url);
const [begin, end] = ["<!-- requirements -->", "<!-- /requirements -->"];

const toLabel = ({ file, title }) => `${file} ${title}`;
const named = new Map(requirements.flatMap(({ heldBy }) => heldBy).map((test) => [toLabel(test), test]));
/** Every test once, by file and title; its place is its number. */
const tests = [...named.keys()]
  .sort(new Intl.Collator("en", { numeric: true }).compare)
  .map((label) => named.get(label));
const numbers = new Map(tests.map((test, index) => [toLabel(test), index + 1]));
const numbersOf = ({ heldBy }) =>
  heldBy
    .map((test) => numbers.get(toLabel(test)))
    .sort((a, b) => a - b)
    .join(", ");

const rowsOf = (prefix) => requirements.filter(({ id, on }) => id.startsWith(prefix) && on !== "client");
const toServerRow = (row) => [row.id, row.says, row.where, row.on, numbersOf(row)];
const clientRows = requirements.filter(({ on }) => on === "client");

const block = `${begin}

### 2025-11-25: core tasks

${toTable(["id", "rule", "section", "on", "tests"], rowsOf("25-").map(toServerRow))}

### 2026-07-28: the extension

${toTable(["id", "rule", "section", "on", "tests"], rowsOf("26-").map(toServerRow))}

### Rules on clients

${toTable(
  ["id", "rule", "section", "the server's half", "tests"],
  clientRows.map((row) => [row.id, row.says, row.where, row.why ?? "", numbersOf(row)]),
)}

### The tests

${toTable(
  ["", "test", "file"],
  tests.map(({ file, title }, index) => [String(index + 1), title.replaceAll("__", "\\_\\_"), file]),
)}

${end}`;

/** The page with its table written anew. */
export function withTable(text) {
  const [first, last] = [text.indexOf(begin), text.indexOf(end)];
  if (first < 0 || last < first) throw new Error(`docs/protocol.md needs the two lines ${begin} and ${end}.`);
  return text.slice(0, first) + block + text.slice(last + end.length);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(page, withTable(readFileSync(page, "utf8")));

/** A table as the formatter would write it. */
function toTable(head, rows) {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => [...row[column]].length)));
  const toLine = (cells) =>
    `| ${cells.map((cell, column) => cell + " ".repeat(widths[column] - [...cell].length)).join(" | ")} |`;
  return [toLine(head), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...rows.map(toLine)].join("\n");
}
