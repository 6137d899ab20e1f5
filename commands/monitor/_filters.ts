import type Database from "better-sqlite3";
import { CommandError } from "meanwhile";
import { compileGlob } from "../_pack/glob.ts";
import { readName } from "../_pack/paths.ts";
import type { Reach } from "../_pack/reach.ts";

/** The lists of the filter, in the order in which they are looked at. */
export const filterLists = [
  "include_paths",
  "exclude_paths",
  "exclude_dirnames",
  "exclude_globs",
  "include_dirnames",
  "include_globs",
] as const;
export type FilterList = (typeof filterLists)[number];
export type FilterValues = Readonly<Record<FilterList, readonly string[]>>;

export const listDescription =
  "include_paths, exclude_paths: folders, the nearest one decides; exclude_dirnames, exclude_globs: left out; include_dirnames, include_globs: let in all the same";

/** What the lists hold, each sorted. */
export function readFilters(db: Database.Database): FilterValues {
  const values: Record<FilterList, string[]> = {
    include_paths: [],
    exclude_paths: [],
    exclude_dirnames: [],
    exclude_globs: [],
    include_dirnames: [],
    include_globs: [],
  };
  const rows = db.prepare("select list, value from monitor_filter_settings order by list, value").all() as {
    list: FilterList;
    value: string;
  }[];
  for (const { list, value } of rows) values[list]?.push(value);
  return values;
}

/** A value as it is kept; refuses what the list cannot hold. */
export function checkFilterValue(
  list: FilterList,
  value: string,
  { others, reach }: { others: FilterValues; reach: Reach },
): string {
  if (value === "") throw new CommandError("`value` is empty; give a folder, a folder's name or a pattern.");
  if (list.endsWith("_globs")) {
    compileGlob(value);
    return value;
  }
  if (list.endsWith("_dirnames")) return checkDirname(list, value, others);
  return reach.resolve(value, "value").shown;
}

/** A path of the lists, as bytes. */
export const toPath = (shown: string): Buffer => readName(shown);

function checkDirname(list: FilterList, value: string, others: FilterValues): string {
  if (/[/*?[\]]/.test(value) || value === "." || value === "..") {
    throw new CommandError(
      `\`value\` ${value} is not the plain name of a folder; ${list.replace("dirnames", "globs")} takes patterns, ${list.replace("dirnames", "paths")} whole paths.`,
    );
  }
  const other = list === "include_dirnames" ? "exclude_dirnames" : "include_dirnames";
  if (others[other].includes(value))
    throw new CommandError(`\`value\` ${value} is in ${other}; remove it there first.`);
  return value;
}
