import { existsSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { CommandError } from "meanwhile";
import { maxRowsAtOnce, packFile, writeAtOnce } from "../_pack/database.ts";
import { joinBytes } from "../_pack/paths.ts";
import { createPace } from "../_pack/walk.ts";
import { fromKey, Tracked } from "../monitor/_tracked.ts";
import { columnsOf, domainsOf, quote, readCollections } from "./_collections.ts";

export interface Prunable {
  readonly name: string;
  prune(db: Database.Database, signal: AbortSignal): Promise<Pruned>;
}

export interface Pruned {
  readonly checked: number;
  readonly deleted: number;
}

/**
 * Not to be gone through: what names folders, and a vault's files, which are named within their vault and kept in line
 * by `vault index`.
 */
const passedOver = ["monitor_folders", "vault_files"];

/** What names files by their whole path. */
export function prunableCollections(db: Database.Database, domain: string): Prunable[] {
  const known = domainsOf(db).sort();
  if (domain !== "all" && !known.includes(domain))
    throw new CommandError(`\`domain\` ${domain} has recorded nothing; known: ${["all", ...known].join(", ")}.`);
  return readCollections(db)
    .filter((collection) => collection.kind === "table" && [collection.domain, "all"].includes(domain))
    .flatMap((collection) => {
      const { name } = collection;
      if (name === "monitor_files") return [{ name, prune: pruneMonitor }];
      const isNamed =
        columnsOf(db, collection).names.includes("path") &&
        hasRowid(db, name) &&
        !name.endsWith("_settings") &&
        !passedOver.includes(name);
      return isNamed
        ? [{ name, prune: (database: Database.Database, signal: AbortSignal) => pruneTable(database, name, signal) }]
        : [];
    });
}

/** How many files a run would look for; 0 where that cannot be told without making anything. */
export function countPrunable(home: string, domain: string): number {
  if (!existsSync(packFile(home))) return 0;
  try {
    const db = new Database(packFile(home), { readonly: true, timeout: 1_000 });
    try {
      const counts = prunableCollections(db, domain).map(
        ({ name }) =>
          db
            .prepare(`select count(*) from ${quote(name)}`)
            .pluck()
            .get() as number,
      );
      return counts.reduce((sum, count) => sum + count, 0);
    } finally {
      db.close();
    }
  } catch {
    return 0; // The run itself will say what is wrong.
  }
}

async function pruneMonitor(db: Database.Database, signal: AbortSignal): Promise<Pruned> {
  const tracked = new Tracked(db);
  const pace = createPace(signal);
  const root = Buffer.from("/");
  let [checked, deleted] = [0, 0];
  for (
    let folders = tracked.foldersBelow(root);
    folders.length > 0;
    folders = tracked.foldersBelow(root, folders.at(-1)?.path)
  ) {
    for (const { id, path } of folders) {
      const gone: Buffer[] = [];
      for (const key of tracked.statesIn(id).keys()) {
        if (isGone(joinBytes(path, fromKey(key)))) gone.push(fromKey(key));
        checked += 1;
        if (pace.isOver()) await pace.giveWay();
      }
      deleted += tracked.remove(id, gone);
    }
  }
  return { checked, deleted };
}

/** Deletes rows whose `path` is gone; what refers to them goes with them. */
async function pruneTable(db: Database.Database, name: string, signal: AbortSignal): Promise<Pruned> {
  const read = db.prepare(
    `select rowid as id, path from ${quote(name)} where rowid > ? order by rowid limit ${maxRowsAtOnce}`,
  );
  const remove = db.prepare(`delete from ${quote(name)} where rowid = ?`);
  const pace = createPace(signal);
  let [checked, deleted, after] = [0, 0, 0];
  for (;;) {
    const rows = read.all(after) as { id: number; path: Buffer | string }[];
    if (rows.length === 0) return { checked, deleted };
    const whole = rows
      .map(({ id, path }) => ({ id, path: Buffer.from(path as Buffer) }))
      .filter(({ path }) => path[0] === 0x2f);
    const gone = whole.filter(({ path }) => isGone(path));
    writeAtOnce(db, () => {
      for (const { id } of gone) remove.run(id);
    });
    checked += whole.length;
    deleted += gone.length;
    after = rows.at(-1)?.id ?? after;
    if (pace.isOver()) await pace.giveWay();
  }
}

/** True only when it is certain: a file that cannot be looked at may still be there. */
function isGone(path: Buffer): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

function hasRowid(db: Database.Database, name: string): boolean {
  return (db.pragma("table_list") as { name: string; wr: number; type: string }[]).some(
    (table) => table.name === name && table.wr === 0 && table.type === "table",
  );
}
