import { CommandError } from "meanwhile";
import { readName } from "../_pack/paths.ts";
import { isHash, quote } from "./_collections.ts";

/** Part of a statement, with what stands for its question marks. */
export interface Condition {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** The time of a comparison can grow with the square of its pattern. */
const maxPattern = 500;
const comparisons: Readonly<Record<string, string>> = {
  eq: "is",
  ne: "is not",
  gt: ">",
  gte: ">=",
  lt: "<",
  lte: "<=",
  like: "like",
};

/** Turns `{ "size": { "gt": 1000 }, "name": "todo.md" }` into a condition; all of it must hold. */
export function parseQuery(text: string, columns: readonly string[]): Condition {
  const parts = Object.entries(parseObject(text)).flatMap(([column, wanted]) => {
    if (!columns.includes(column))
      throw new CommandError(`\`query\` names ${column}, which is no field; known: ${columns.join(", ")}.`);
    if (Array.isArray(wanted))
      throw new CommandError(
        `\`query\` gives ${column} a list; give one value, or comparisons that must all hold, e.g. {"gte":1,"lt":9}.`,
      );
    const tests = typeof wanted === "object" && wanted !== null ? Object.entries(wanted) : [["eq", wanted] as const];
    return tests.map(([comparison, value]) => toPart(column, comparison, value));
  });
  return {
    sql: parts.length === 0 ? "1" : parts.map(({ sql }) => sql).join(" and "),
    values: parts.flatMap(({ values }) => values),
  };
}

function parseObject(text: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text === "" ? "{}" : text);
  } catch (cause) {
    throw new CommandError(`\`query\` is not JSON (${(cause as Error).message}); write e.g. {"size":{"gt":1000}}.`, {
      cause,
    });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new CommandError('`query` must be a JSON object, e.g. {"size":{"gt":1000}}.');
  return parsed as Record<string, unknown>;
}

/** A text is compared with a text and with the bytes that it shows. */
function toPart(column: string, comparison: string, value: unknown): Condition {
  const operator = Object.hasOwn(comparisons, comparison) ? comparisons[comparison] : undefined;
  if (operator === undefined)
    throw new CommandError(
      `\`query\` compares ${column} with ${comparison}; known: ${Object.keys(comparisons).join(", ")}.`,
    );
  if (value !== null && !["string", "number", "boolean"].includes(typeof value)) {
    throw new CommandError(
      `\`query\` compares ${column} with something that is not a text, a number, true, false or null.`,
    );
  }
  if (value !== null && isHash(column)) return toHashPart(column, operator, value);
  if (typeof value === "string" && isTime(column))
    return { sql: `${quote(column)} ${operator} ?`, values: [toTime(column, operator, value)] };
  if (typeof value !== "string")
    return { sql: `${quote(column)} ${operator} ?`, values: [typeof value === "boolean" ? Number(value) : value] };
  checkPattern(column, operator, value);
  if (operator === "like") return { sql: `cast(${quote(column)} as text) like ?`, values: [value] };
  return {
    sql: `case when typeof(${quote(column)}) = 'blob' then ${quote(column)} ${operator} ? else ${quote(column)} ${operator} ? end`,
    values: [readName(value), toNumber(value)],
  };
}

/** Hashes are bytes or their hex digits, and are compared by the digits. */
function toHashPart(column: string, operator: string, value: unknown): Condition {
  const isFitting = operator === "like" ? /^[0-9a-f%_]*$/i : /^(?:[0-9a-f]{2})+$/i;
  if (typeof value !== "string" || !isFitting.test(value))
    throw new CommandError(
      `\`query\` compares ${column} with ${String(value)}, which is no hash; give its hex digits, or {"like":"0af3%"} for its beginning.`,
    );
  checkPattern(column, operator, value);
  const digits = `case when typeof(${quote(column)}) = 'blob' then lower(hex(${quote(column)})) else ${quote(column)} end`;
  return { sql: `${digits} ${operator} ?`, values: [value.toLowerCase()] };
}

/** Times are whole numbers: milliseconds, or nanoseconds where the name says so. */
const isTime = (column: string) => /_(?:at|ns)$/.test(column);

function toTime(column: string, operator: string, value: string): bigint {
  if (operator === "like")
    throw new CommandError(`\`query\` compares ${column} with a pattern, but it is a time; use gt, gte, lt and lte.`);
  if (/^-?\d{5,19}$/.test(value)) return BigInt(value);
  const [, day, time = "00:00", zone = "Z"] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[-+]\d\d:\d\d)?)?$/i.exec(value) ?? [];
  const ms = Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  // The 31st of February would quietly be a day in March.
  const isDay = !Number.isNaN(ms) && new Date(`${day}T00:00Z`).toISOString().startsWith(`${day}T`);
  if (!isDay)
    throw new CommandError(
      `\`query\` compares ${column} with ${value}, which is no time; write e.g. 2026-01-31 or 2026-01-31T12:00:00Z.`,
    );
  return BigInt(ms) * (column.endsWith("_ns") ? 1_000_000n : 1n);
}

function checkPattern(column: string, operator: string, value: string): void {
  if (operator === "like" && value.length > maxPattern)
    throw new CommandError(
      `\`query\` compares ${column} with a pattern of ${value.length} characters; at most ${maxPattern} are taken.`,
    );
}

/** Whole numbers too large for JSON come as text, and go back as what they are. */
function toNumber(value: string): string | bigint {
  return /^-?\d{16,19}$/.test(value) ? BigInt(value) : value;
}
