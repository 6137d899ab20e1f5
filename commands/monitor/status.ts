import type Database from "better-sqlite3";
import { defineCommand } from "meanwhile";
import { z } from "zod";
import { showName } from "../_pack/paths.ts";
import { withMonitor } from "./_schema.ts";

const hour = 3_600;
/** Upper ends of the ages, in seconds. */
const ages = {
  last_hour: hour,
  last_day: 24 * hour,
  last_week: 7 * 24 * hour,
  last_month: 30 * 24 * hour,
  last_year: 365 * 24 * hour,
  older: Infinity,
} as const;

const count = z.number().int();

export default defineCommand({
  summary: "Show how many files are monitored, how old they are, and when they were last synced",
  output: z.object({
    database: z.string(),
    tracked_files: count,
    tracked_folders: count,
    tracked_bytes: count,
    ages: z.object({
      last_hour: count,
      last_day: count,
      last_week: count,
      last_month: count,
      last_year: count,
      older: count,
    }),
    last_sync: z.string().nullable(),
    syncs: z.array(
      z.object({
        path: z.string(),
        recursive: z.boolean(),
        finished_at: z.string(),
        duration_seconds: z.number(),
        files_processed: count,
        files_updated: count,
        files_removed: count,
        errors_total: count,
      }),
    ),
  }),
  effects: "read",
  summarize: ({ tracked_files, tracked_folders, last_sync }) =>
    `${tracked_files} files in ${tracked_folders} folders, ${last_sync === null ? "never synced" : `last synced ${last_sync}`}`,
  run(_input, task) {
    return withMonitor(task.home, (db) => {
      const syncs = lastSyncs(db);
      const { files, bytes } = db
        .prepare("select count(*) as files, coalesce(sum(size), 0) as bytes from monitor_files")
        .get() as {
        files: number;
        bytes: number;
      };
      return {
        database: db.name,
        tracked_files: files,
        tracked_folders: db.prepare("select count(*) from monitor_folders").pluck().get() as number,
        tracked_bytes: bytes,
        ages: countAges(db),
        last_sync: syncs[0]?.finished_at ?? null,
        syncs,
      };
    });
  },
});

function lastSyncs(db: Database.Database) {
  const rows = db.prepare("select * from monitor_syncs order by finished_at desc limit 100").all() as {
    path: Buffer;
    recursive: number;
    finished_at: number;
    duration_ms: number;
    files_processed: number;
    files_updated: number;
    files_removed: number;
    errors_total: number;
  }[];
  return rows.map(({ path, recursive, finished_at, duration_ms, ...counts }) => ({
    path: showName(path),
    recursive: recursive === 1,
    finished_at: new Date(finished_at).toISOString(),
    duration_seconds: duration_ms / 1000,
    ...counts,
  }));
}

function countAges(db: Database.Database): Record<keyof typeof ages, number> {
  const now = BigInt(Date.now()) * 1_000_000n;
  const younger = db.prepare("select count(*) from monitor_files where mtime_ns > ?").pluck();
  const counts = { last_hour: 0, last_day: 0, last_week: 0, last_month: 0, last_year: 0, older: 0 };
  let before = 0;
  for (const [name, seconds] of Object.entries(ages) as [keyof typeof ages, number][]) {
    const since = Number.isFinite(seconds) ? now - BigInt(seconds) * 1_000_000_000n : -(2n ** 62n);
    const all = younger.get(since) as number;
    counts[name] = all - before;
    before = all;
  }
  return counts;
}
