import type Database from "better-sqlite3";
import type { TransferRow } from "../transfer.ts";

/** Notes of sessions are one JSON object here, and rows on their way to another database. */
const statements = {
  readNotes: "select session_id, notes from sessions where notes <> '{}'",
  writeNotes: "update sessions set notes = :notes where session_id = :sessionId",
};

export function readNotes(db: Database.Database): TransferRow[] {
  const rows = db.prepare(statements.readNotes).all() as { session_id: string; notes: string }[];
  return rows.flatMap(({ session_id, notes }) =>
    Object.entries(JSON.parse(notes) as object).map(([name, value]) => ({
      session_id,
      name,
      value: JSON.stringify(value),
    })),
  );
}

/** Beside sessions that have none yet. Part of a transaction. */
export function writeNotes(db: Database.Database, rows: readonly TransferRow[]): void {
  const write = db.prepare(statements.writeNotes);
  for (const [sessionId, own] of Map.groupBy(rows, (row) => row.session_id)) {
    const notes = own.map(({ name, value }) => [name, JSON.parse(value as string) as unknown]);
    write.run({ sessionId, notes: JSON.stringify(Object.fromEntries(notes)) });
  }
}
