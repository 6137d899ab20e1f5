import { statSync } from "node:fs";
import type Database from "better-sqlite3";
import { RuntimeError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { check, connect, refuseCutOff, refuseFolder, refuseForeign, toRuntimeError, unopened } from "./connection.ts";
import { checkVersion, knownVersion } from "./migrate-file.ts";

/** Opens a task database that is there, and changes nothing of it, whatever is wrong with it. */
export function openAsItIs(file: string): Database.Database {
  return openReadOnly(file, (db) => refuseForeign(db, file));
}

/** The same of one that is sound, and that this program can read. */
export function openForReading(file: string): Database.Database {
  return openReadOnly(file, (db) => {
    check(db, file, false);
    refuseOld(db, file);
  });
}

function openReadOnly(file: string, refuse: (db: Database.Database) => void): Database.Database {
  try {
    refuseFolder(file);
    refuseCutOff(file);
    refuseMissing(file);
    const db = connect(file, { readonly: true });
    try {
      refuse(db);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  } catch (error) {
    throw toRuntimeError(error, file);
  }
}

function refuseMissing(file: string): void {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  throw new RuntimeError(
    "STORE_UNAVAILABLE",
    `There is no task database ${file}; the first task makes one, and so does \`${thisProgram.name} store migrate\`.`,
    { forClients: unopened },
  );
}

/** Where nothing may be changed, nothing is brought up to date. */
function refuseOld(db: Database.Database, file: string): void {
  const version = checkVersion(db, file);
  if (version === knownVersion) return;
  throw new RuntimeError(
    "STORE_UNAVAILABLE",
    `The task database ${file} has schema ${version}, and this program reads ${knownVersion}: \`${thisProgram.name} store migrate\` brings it up to date.`,
    { forClients: unopened },
  );
}
