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
const comparisons: Readonly<Record<string, string>> = { eq: "is", ne: "is not", gt: ">", gte: ">=", lt: "<", lte: "<=", like: "like" };

/** Turns `{ "size": { "gt": 1000 }, "name": "todo.md" }` into a condition; all of it must hold. */
export function parseQuery(text: string, columns: readonly string[]): Condition {
  const parts = Object.entries(parseObject(text)).flatMap(([column, wanted]) => {
    if (!columns.includes(column)) throw new CommandError(`\`query\` names ${column}, which is no field; known: ${columns.join(", ")}.`);
    const tests = typeof wanted === "object" && wanted !== null ? Object.entries(wanted) : [["eq", wanted] as const];
    return tests.map(([comparison, value]) => toPart(column, comparison, value));
  });
  return { sql: parts.length === 0 ? "1" : parts.map(({ sql }) => sql).join(" and "), values: parts.flatMap(({ values }) => values) };
}

function parseObject(text: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text === "" ? "{}" : text);
  } catch (cause) {
    throw new CommandError(`\`query\` is not JSON (${(cause as Error).message}); write e.g. {"size":{"gt":1000}}.`, { cause });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new CommandError('`query` must be a JSON object, e.g. {"size":{"gt":1000}}.');
  return parsed as Record<string, unknown>;
}

/** A text is compared with a text and with the bytes that it shows. */
function toPart(column: string, comparison: string, value: unknown): Condition {
  const operator = Object.hasOwn(comparisons, comparison) ? comparisons[comparison] : undefined;
  if (operator === undefined) throw new CommandError(`\`query\` compares ${column} with ${comparison}; known: ${Object.keys(comparisons).join(", ")}.`);
  if (value !== null && !["string", "number", "boolean"].includes(typeof value)) {
    throw new CommandError(`\`query\` compares ${column} with something that is not a text, a number, true, false or null.`);
  }
  if (typeof value !== "string") return { sql: `${quote(column)} ${operator} ?`, values: [typeof value === "boolean" ? Number(value) : value] };
  if (operator === "like" && value.length > maxPattern)
    throw new CommandError(`\`query\` compares ${column} with a pattern of ${value.length} characters; at most ${maxPattern} are taken.`);
  if (operator === "like") return { sql: `cast(${quote(column)} as text) like ?`, values: [value] };
  const bytes = isHash(column) ? Buffer.from(value, "hex") : readName(value);
  return {
    sql: `case when typeof(${quote(column)}) = 'blob' then ${quote(column)} ${operator} ? else ${quote(column)} ${operator} ? end`,
    values: [bytes, toNumber(value)],
  };
}

/** Whole numbers too large for JSON come as text, and go back as what they are. */
function toNumber(value: string): string | bigint {
  return /^-?\d{16,19}$/.test(value) ? BigInt(value) : value;
}
