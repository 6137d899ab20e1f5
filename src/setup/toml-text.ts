import { isDeepStrictEqual } from "node:util";
import { parse, patch, stringify } from "@decimalturn/toml-patch";
import { CommandError } from "../errors.ts";
import type { TextFormat } from "./text-format.ts";
import { checkNesting, tablesOf } from "./toml-tables.ts";

type Table = Record<string, unknown>;

/**
 * TOML. A server is a table of its own, so it is added, changed and removed as lines of text, and the library only sees
 * those lines: it would write line ends its own way in the rest. Where servers are written otherwise (inline tables),
 * the library changes the text, and what it gives is taken only when every other line is still there.
 */
export const tomlText: TextFormat = {
  read,
  set,
  remove,
  // A server may be written in several places.
  spanOf: (text) => ({ from: 0, to: text.length }),
  nothing: "",
};

function read(text: string): Table {
  checkNesting(text);
  try {
    return toPlain(parse(text)) as Table;
  } catch (error) {
    const { line, column, message } = error as { line?: number; column?: number; message: string };
    const reason = message.split("\n").at(-1)?.trim() || "not TOML";
    throw new CommandError(line === undefined ? reason : `line ${line}, column ${(column ?? 0) + 1}: ${reason}`);
  }
}

function set(text: string, keys: readonly string[], value: unknown): string {
  const before = read(text);
  const wanted = withValue(before, keys, value);
  if (isDeepStrictEqual(before, wanted)) return text;
  const tableKeys = keys.slice(0, 2);
  const table = at(wanted, tableKeys) as Table;
  const own = linesOf(text, tableKeys);
  const change = () => (own === undefined ? append(text, tableKeys, table) : changeLines(text, own, keys, value));
  return firstThatIs(wanted, [change, () => patchAll(text, wanted, tableKeys)], tableKeys);
}

/** From the header of a table to the end of those below it that follow. */
function linesOf(text: string, keys: readonly string[]): { from: number; to: number } | undefined {
  const tables = tablesOf(text);
  const first = tables.findIndex(({ keys: found, isList }) => !isList && isDeepStrictEqual(found, keys));
  if (first < 0) return undefined;
  const others = tables.findIndex(({ keys: found }, index) => index > first && !isBelow(found, keys));
  const last = tables.at(others < 0 ? -1 : others - 1);
  return { from: tables[first]?.from ?? 0, to: last?.to ?? 0 };
}

function isBelow(found: readonly string[], keys: readonly string[]): boolean {
  return keys.every((key, index) => found[index] === key);
}

function changeLines(
  text: string,
  { from, to }: { from: number; to: number },
  keys: readonly string[],
  value: unknown,
): string {
  const lines = text.slice(from, to);
  return text.slice(0, from) + patchLines(lines, withValue(read(lines), keys, value)) + text.slice(to);
}

/** By the library, which would make line ends of two kinds one. */
function patchLines(lines: string, wanted: Table): string {
  if (/\r\n/.test(lines) && /(?<!\r)\n/.test(lines)) throw new CommandError("line ends of two kinds");
  return patch(lines, wanted);
}

function patchAll(text: string, wanted: Table, keys: readonly string[]): string {
  const changed = patchLines(text, wanted);
  if (!keepsLines(text, changed, keys)) throw new CommandError("other lines were changed");
  return changed;
}

function append(text: string, keys: readonly string[], table: Table): string {
  const eol = /\r?\n/.exec(text)?.[0] ?? "\n";
  const lines = [`[${keys.join(".")}]`, ...stringify(table, { inlineTableStart: 0 }).trimEnd().split("\n")];
  if (text.trim() === "") return `${text}${lines.join(eol)}${eol}`;
  // A file whose last line is open stays so.
  const [gap, end] = text.endsWith("\n") ? [eol, eol] : [`${eol}${eol}`, ""];
  return `${text}${gap}${lines.join(eol)}${end}`;
}

function remove(text: string, keys: readonly string[]): string {
  const before = read(text);
  if (at(before, keys) === undefined) return text;
  const wanted = withoutValue(before, keys);
  return firstThatIs(wanted, [() => cutTables(text, keys), () => patchAll(text, wanted, keys)], keys);
}

/** Without the table and those below it, and without the blank line that set it apart. */
function cutTables(text: string, keys: readonly string[]): string {
  return tablesOf(text)
    .filter((table) => isBelow(table.keys, keys))
    .reverse()
    .reduce((left, { from, to }) => {
      const [head, tail] = [left.slice(0, from), left.slice(to)];
      if (tail.trim() !== "")
        return head + tail.replace(/^(?:[ \t]*\r?\n)/, head.trim() === "" || /\n[ \t]*\r?\n$/.test(head) ? "" : "$&");
      return left.slice(from, to).endsWith("\n")
        ? head.replace(/(^|\n)[ \t]*\r?\n$/, "$1") + tail
        : head.replace(/\r?\n\r?\n$/, "");
    }, text);
}

/** The first candidate that means what is wanted; refuses when there is none. */
function firstThatIs(wanted: Table, candidates: readonly (() => string)[], keys: readonly string[]): string {
  for (const candidate of candidates) {
    try {
      const changed = candidate();
      if (means(changed, wanted)) return changed;
    } catch {
      // The next one, or the refusal below.
    }
  }
  throw new CommandError(
    `${keys[0]} is written in a way that cannot be changed without touching other lines; change ${keys.join(".")} there by hand`,
  );
}

function means(text: string, wanted: Table): boolean {
  return isDeepStrictEqual(withoutEmpty(read(text)), withoutEmpty(wanted));
}

/** A table without anything in it may come or go with its last server. */
function withoutEmpty(table: Table): Table {
  return Object.fromEntries(
    Object.entries(table).filter(([, value]) => !isTable(value) || Object.keys(value).length > 0),
  );
}

/** Lines that do not speak of our server are all there, in their order. */
function keepsLines(before: string, after: string, keys: readonly string[]): boolean {
  const lines = after.split("\n");
  let next = 0;
  for (const line of before.split("\n")) {
    const found = lines.indexOf(line, next);
    if (found >= 0) next = found + 1;
    else if (line.trim() !== "" && !keys.some((key) => line.includes(key))) return false;
  }
  return true;
}

/** The library's tables have no prototype. */
function toPlain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toPlain);
  if (!isTable(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toPlain(inner)]));
}

function at(table: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (inner, key) => (isTable(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined),
    table,
  );
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function withValue(table: Table, [key = "", ...rest]: readonly string[], value: unknown): Table {
  if (rest.length === 0) return { ...table, [key]: value };
  const inner = table[key] ?? {};
  if (!isTable(inner)) throw new CommandError(`"${key}" is not a table`);
  return { ...table, [key]: withValue(inner, rest, value) };
}

function withoutValue(table: Table, [key = "", ...rest]: readonly string[]): Table {
  const { [key]: inner, ...others } = table;
  return rest.length === 0 || !isTable(inner) ? others : { ...table, [key]: withoutValue(inner, rest) };
}
