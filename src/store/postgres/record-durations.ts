import type { DurationCount } from "../../task/store.ts";
import type { Database } from "./database.ts";

/** Adds to what is counted. Where it is not known whether it was added, it is left at that: none is counted twice. */
export async function recordDurations(database: Database, counts: readonly DurationCount[]): Promise<void> {
  const values = {
    commands: counts.map(({ command }) => command),
    kinds: counts.map(({ kind }) => kind),
    buckets: counts.map(({ bucket }) => bucket),
    counts: counts.map(({ count }) => count),
  };
  await database.patiently(async (query, isAgain) => {
    if (!isAgain) await query("recordDurations", values);
  });
}
