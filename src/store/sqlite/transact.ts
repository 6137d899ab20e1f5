import type Database from "better-sqlite3";

type Transact = Database.Transaction<(act: () => unknown) => unknown>;

const known = new WeakMap<Database.Database, Transact>();

/** Runs what it is given in a transaction, or in a part of the one that has begun. Made once: that costs more than its use. */
export function transactOn(db: Database.Database): Transact {
  const made = known.get(db) ?? db.transaction((act: () => unknown) => act());
  known.set(db, made);
  return made;
}
