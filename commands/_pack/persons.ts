import { existsSync } from "node:fs";
import Database from "better-sqlite3";
import { packFile } from "./database.ts";

/** A folder that a person has put under `monitor` or `vault`, by typing it in a terminal. */
export interface PersonsFolder {
  readonly path: Buffer;
  readonly isDeep: boolean;
  readonly isNamed: false;
}

const sources = [
  "select path, recursive as isDeep from monitor_roots",
  "select root as path, 1 as isDeep from vault_vaults where is_persons = 1",
];

/** The folders that the person has put under `monitor` or `vault`; none where that cannot be read. */
export function personsFolders(home: string): PersonsFolder[] {
  const file = packFile(home);
  if (!existsSync(file)) return [];
  try {
    const db = new Database(file, { readonly: true, timeout: 1_000 });
    try {
      return sources.flatMap((source) => read(db, source));
    } finally {
      db.close();
    }
  } catch {
    return []; // Whoever needs the database says what is wrong with it.
  }
}

/** Before the first sync or index there is no such table. */
function read(db: Database.Database, source: string): PersonsFolder[] {
  try {
    const rows = db.prepare(source).all() as { path: Buffer; isDeep: number }[];
    return rows.map(({ path, isDeep }) => ({ path, isDeep: isDeep === 1, isNamed: false }));
  } catch {
    return [];
  }
}
