import { createHash } from "node:crypto";
import type Database from "better-sqlite3";
import { CommandError } from "meanwhile";
import { type Collection, columnsOf, quote, showValue } from "./_collections.ts";
import type { Condition } from "./_query.ts";

type Shown = Record<string, string | number | null>;

export interface Page {
  readonly rows: Shown[];
  readonly nextCursor: string | null;
}

/**
 * One page of a collection. The cursor is the key of the last row, not a number of rows: rows that come and go between
 * two pages make no other row appear twice or be missed.
 */
export function readPage(
  db: Database.Database,
  collection: Collection,
  wanted: { condition: Condition; limit: number; cursor: string },
): Page {
  const { condition, limit, cursor } = wanted;
  const { names, keys } = columnsOf(db, collection);
  const order = keys.length > 0 ? keys : collection.kind === "table" ? ["rowid"] : names.slice(0, 1);
  const columns = order.map(quote).join(", ");
  const stamp = stampOf(collection, condition);
  const after = cursor === "" ? undefined : readCursor(cursor, stamp, order.length);
  const isAfter = after === undefined ? "1" : `(${columns}) > (${order.map(() => "?").join(", ")})`;
  const select = [...order.map((column, at) => `${quote(column)} as "key ${at}"`), ...names.map(quote)].join(", ");
  const statement = db.prepare(
    `select ${select} from ${quote(collection.name)} where (${condition.sql}) and ${isAfter} order by ${columns} limit ?`,
  );
  // One row more than asked for tells whether there is another page.
  const rows = statement
    .safeIntegers()
    .raw()
    .all(...condition.values, ...(after ?? []), limit + 1) as unknown[][];
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return {
    rows: rows
      .slice(0, limit)
      .map((row) => Object.fromEntries(names.map((name, at) => [name, showValue(row[order.length + at], name)]))),
    nextCursor: last === undefined ? null : writeCursor(last.slice(0, order.length), stamp),
  };
}

/** A cursor of another query would quietly give the wrong rows. */
function stampOf({ name }: Collection, { sql, values }: Condition): string {
  const text = JSON.stringify([name, sql, values.map(pack)]);
  return createHash("sha256").update(text).digest("base64url").slice(0, 8);
}

function writeCursor(key: readonly unknown[], stamp: string): string {
  return Buffer.from(JSON.stringify([stamp, ...key.map(pack)])).toString("base64url");
}

function readCursor(cursor: string, stamp: string, length: number): unknown[] {
  const wrong = new CommandError(
    "`cursor` does not belong to this collection and query; leave it out to begin at the first page.",
  );
  try {
    const [given, ...key] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as [unknown, ...unknown[]];
    if (given !== stamp || key.length !== length) throw wrong;
    return key.map(unpack);
  } catch {
    throw wrong;
  }
}

/** JSON knows neither bytes nor whole numbers of 64 bits. */
function pack(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return { bytes: value.toString("base64url") };
  return typeof value === "bigint" ? { whole: value.toString() } : value;
}

function unpack(value: unknown): unknown {
  if (typeof value === "boolean") throw new TypeError("No key is true or false.");
  if (typeof value !== "object" || value === null) return value;
  const { bytes, whole } = value as { bytes?: string; whole?: string };
  return bytes === undefined ? BigInt(whole ?? 0) : Buffer.from(bytes, "base64url");
}
