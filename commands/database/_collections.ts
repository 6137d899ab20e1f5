import type Database from "better-sqlite3";
import { CommandError } from "meanwhile";
import { showName } from "../_pack/paths.ts";

/** A table or view of a domain of the pack. */
export interface Collection {
  readonly name: string;
  readonly domain: string;
  readonly kind: "table" | "view";
}

/**
 * All collections, by name. A domain's names begin with it; what SQLite makes for its full-text search is nobody's
 * business.
 */
export function readCollections(db: Database.Database): Collection[] {
  const domains = domainsOf(db);
  const tables = db.pragma("table_list") as { name: string; type: string }[];
  return tables
    .filter(({ type }) => type !== "shadow")
    .flatMap(({ name, type }) => {
      const domain = domains.find((known) => name === known || name.startsWith(`${known}_`));
      return domain === undefined
        ? []
        : [{ name, domain, kind: type === "view" ? ("view" as const) : ("table" as const) }];
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function domainsOf(db: Database.Database): string[] {
  return db.prepare("select domain from pack_schema order by length(domain) desc, domain").pluck().all() as string[];
}

export function findCollection(db: Database.Database, name: string): Collection {
  const all = readCollections(db);
  const found = all.find((collection) => collection.name === name);
  if (found !== undefined) return found;
  const known =
    all.length === 0
      ? "there is nothing yet; run monitor sync first"
      : `known: ${all.map((collection) => collection.name).join(", ")}`;
  throw new CommandError(`\`collection\` ${name} does not exist; ${known}.`);
}

/** The columns, in order, and those that name a row for good. */
export function columnsOf(db: Database.Database, { name }: Collection): { names: string[]; keys: string[] } {
  const columns = db.pragma(`table_info(${quote(name)})`) as { name: string; pk: number }[];
  const keys = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  return { names: columns.map((column) => column.name), keys: keys.map((column) => column.name) };
}

/** A name of a table or column, safe inside a statement. */
export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A value as JSON can hold it: names as text, hashes in hex, and numbers too large for a double as text. */
export function showValue(value: unknown, column: string): string | number | null {
  if (Buffer.isBuffer(value) && column === "snapshot") return `${value.length} bytes`;
  if (Buffer.isBuffer(value)) return isHash(column) ? value.toString("hex") : showName(value);
  if (typeof value === "bigint")
    return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
      ? Number(value)
      : value.toString();
  return typeof value === "string" || typeof value === "number" ? value : null;
}

export function isHash(column: string): boolean {
  return /sha256|digest|hash/.test(column);
}
