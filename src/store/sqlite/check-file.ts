import { statSync } from "node:fs";
import type Database from "better-sqlite3";
import { type EarlierRows, earlierStatements, sumOf } from "../earlier-rows.ts";
import {
  checkStatements,
  problemOfCopy,
  problemOfSchema,
  problemsOf,
  type StoreFacts,
  type Strays,
  type TaskCounts,
} from "../store-facts.ts";
import { openConnection, toRuntimeError } from "./connection.ts";
import { knownVersion, versionOf } from "./migrate-file.ts";
import { openAsItIs } from "./open-for-reading.ts";
import { transferStatements } from "./sqlite-transfer-statements.ts";
import { transactOn } from "./transact.ts";

const statements = checkStatements("");
/** So much of what is damaged is told. */
const toldFaults = 5;
/** Nobody here has anything else to do meanwhile. */
const busyTimeoutMs = 15_000;
const statementsOfEarlier = earlierStatements("", ":key");
/** The first schema that has what `local` may have left. */
const firstWithSessions = 9;

/** Looks through a file, and changes nothing of it. Throws where it cannot be opened. */
export function checkFile(file: string): StoreFacts {
  const db = openAsItIs(file);
  try {
    const schema = { version: versionOf(db), known: knownVersion };
    const faults = db.pragma(`quick_check(${toldFaults})`) as { quick_check: string }[];
    const isSound = faults.every(({ quick_check: fault }) => fault === "ok");
    return {
      kind: "SQLite",
      place: file,
      version: db.prepare("select sqlite_version()").pluck().get() as string,
      schema,
      tasks: isSound && schema.version > 0 ? (db.prepare(statements.counts).get() as TaskCounts) : undefined,
      earlier: sumOf(isSound && schema.version >= firstWithSessions ? readEarlier(db, statementsOfEarlier.count) : []),
      bytes: [file, `${file}-wal`].reduce((sum, part) => sum + sizeOf(part), 0),
      connections: undefined,
      clockAheadMs: 0,
      problems: isSound ? problemsIn(db, schema) : [damageOf(faults.map(({ quick_check: fault }) => fault))],
    };
  } catch (error) {
    throw toRuntimeError(error, file);
  } finally {
    db.close();
  }
}

function problemsIn(db: Database.Database, schema: StoreFacts["schema"]): string[] {
  if (schema.version !== schema.known) return problemOfSchema(schema);
  const isCopying = db.prepare(transferStatements.hasMark).get() !== undefined;
  const mark = isCopying ? (db.prepare(transferStatements.readMark).get() as { source: string }) : undefined;
  return [...problemOfCopy(mark?.source), ...problemsOf(db.prepare(statements.strays).get() as Strays)];
}

function damageOf(faults: readonly string[]): string {
  return `It is damaged (${faults.join("; ")}): move it away, or restore it from a backup.`;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** Brings a file's schema up to date, and makes the file when it is missing: from which version to which. */
export function bringUpToDate(file: string): { readonly from: number; readonly to: number } {
  const from = sizeOf(file) === 0 ? 0 : readFileVersion(file);
  openConnection(file).close();
  return { from, to: knownVersion };
}

function readFileVersion(file: string): number {
  const db = openAsItIs(file);
  try {
    return versionOf(db);
  } finally {
    db.close();
  }
}

/** What there is of `local`, by project. */
export function countEarlierRows(file: string): readonly EarlierRows[] {
  if (sizeOf(file) === 0) return [];
  const db = openAsItIs(file);
  try {
    return versionOf(db) < firstWithSessions ? [] : readEarlier(db, statementsOfEarlier.count);
  } finally {
    db.close();
  }
}

/** Gives the rows of `local` to this caller; how many, by project. */
export function takeEarlierRows(file: string, key: string): readonly EarlierRows[] {
  return changeEarlier(file, key, statementsOfEarlier.count, statementsOfEarlier.take);
}

/** Gives back what this caller took; how many rows, by project. */
export function giveBackRows(file: string, key: string): readonly EarlierRows[] {
  return changeEarlier(file, key, statementsOfEarlier.countTaken, statementsOfEarlier.giveBack);
}

function changeEarlier(file: string, key: string, count: string, change: readonly string[]): readonly EarlierRows[] {
  const db = openConnection(file);
  try {
    db.pragma(`busy_timeout = ${busyTimeoutMs}`);
    return transactOn(db).immediate(() => {
      const rows = readEarlier(db, count, key);
      for (const text of change) db.prepare(text).run({ key });
      return rows;
    }) as readonly EarlierRows[];
  } catch (error) {
    throw toRuntimeError(error, file);
  } finally {
    db.close();
  }
}

function readEarlier(db: Database.Database, text: string, key = ""): readonly EarlierRows[] {
  return db.prepare(text).all({ key }) as EarlierRows[];
}
