import type Database from "better-sqlite3";
import { whyNotStored, writeAtOnce } from "../_pack/database.ts";
import type { SyncResults } from "./_results.ts";

export interface FinishedSync {
  readonly recursive: boolean;
  readonly durationMs: number;
  readonly results: SyncResults;
}

const put = `
  insert into monitor_syncs (path, recursive, finished_at, duration_ms, files_processed, errors_total, files_updated, files_removed) values (?, ?, ?, ?, ?, ?, ?, ?)
  on conflict (path) do update set recursive = excluded.recursive, finished_at = excluded.finished_at, duration_ms = excluded.duration_ms,
    files_processed = excluded.files_processed, errors_total = excluded.errors_total,
    files_updated = excluded.files_updated, files_removed = excluded.files_removed`;

/**
 * Remembers when a path was last synced, and what came of it. Where there is no room for that either, the sync itself
 * still counts.
 */
export function rememberSync(
  db: Database.Database,
  path: Buffer,
  { recursive, durationMs, results }: FinishedSync,
): void {
  const { processed, updated, removed } = results.counts;
  const errors = results.troubles.total;
  try {
    writeAtOnce(db, () =>
      db.prepare(put).run(path, recursive ? 1 : 0, Date.now(), durationMs, processed, errors, updated, removed),
    );
  } catch (error) {
    if (whyNotStored(error) === undefined) throw error;
  }
}
