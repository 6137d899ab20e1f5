import { readdirSync, statSync } from "node:fs";
import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { type GivenPath, joinBytes, realPathOf } from "../_pack/paths.ts";
import { openReach } from "../_pack/reach.ts";
import { troubleFields } from "../_pack/trouble.ts";
import { countQuickly } from "../_pack/walk.ts";
import { forgetRoot, rememberRoot } from "./_roots.ts";
import { withMonitor } from "./_schema.ts";
import { Sync } from "./_sync.ts";
import { rememberSync } from "./_syncs.ts";
import { Tracked } from "./_tracked.ts";

/** Until history knows better. */
const filesPerSecond = 100;

export default defineCommand({
  summary: "Bring the monitor in line with a file or folder: sha256, size and priority of each file",
  description:
    "Reads what is new or changed; files that vanished or are excluded are forgotten, and a path that no longer exists with all below it. " +
    "One file that fails is listed in `errors` and stops nothing.",
  input: z.object({
    path: z.string().describe("File or folder, e.g. ~/notes"),
    recursive: z.boolean().default(false).describe("Also all folders below it"),
  }),
  output: z.object({
    path: z.string(),
    files_processed: z.number().int(),
    files_updated: z.number().int(),
    files_skipped: z.number().int(),
    files_removed: z.number().int(),
    folders_passed_over: z.number().int(),
    bytes_read: z.number().int(),
    ...troubleFields,
    duration_seconds: z.number(),
  }),
  long: true,
  estimate: ({ path, recursive }, call) => {
    const given = openReach(call).resolve(path);
    return given.kind === "folder" ? countQuickly(given.path, { recursive }) / filesPerSecond : 1 / filesPerSecond;
  },
  effects: "write",
  idempotent: true,
  examples: ["~/notes --recursive", "report.pdf"],
  summarize: ({ files_updated, files_skipped, files_removed, errors_total, folders_passed_over: folders }) =>
    `${files_updated} updated, ${files_skipped} skipped, ${files_removed} removed${errors_total === 0 ? "" : `, ${errors_total} failed`}` +
    (folders === 0
      ? ""
      : `; ${folders} ${folders === 1 ? "folder" : "folders"} below passed over (--recursive looks there, too)`),
  run({ path, recursive }, task) {
    const reach = openReach(task);
    const given = reach.resolve(path);
    task.announce(`Syncing ${given.shown}`);
    return withMonitor(task.home, async (db) => {
      const startedAt = performance.now();
      // A later attempt may find that the first has forgotten it already.
      if (task.attempt === 1) checkKnown(given, new Tracked(db));
      if (given.kind === "missing") forgetRoot(db, given.path);
      else rememberRoot(db, { path: given.path, recursive }, task);
      let expected = 1;
      const sync = new Sync({
        db,
        home: realPathOf(Buffer.from(task.home)),
        reach,
        signal: task.signal,
        onProgress: (done, found) => {
          const total = Math.max(expected, found, done);
          task.progress({ done, total, message: `${done} of ${total} files` });
        },
      });
      if (given.kind === "folder")
        expected = countQuickly(given.path, { recursive, skipsFolder: (folder) => sync.skips(folder) });
      try {
        await syncGiven(sync, given, recursive);
      } finally {
        await sync.close();
      }
      const { processed, updated, skipped, removed, bytesRead } = sync.results.counts;
      if (processed > 0) task.progress({ done: processed, total: processed, message: `${processed} files` });
      const durationMs = Math.round(performance.now() - startedAt);
      rememberSync(db, given.path, { recursive, durationMs, results: sync.results });
      return {
        path: given.shown,
        files_processed: processed,
        files_updated: updated,
        files_skipped: skipped,
        files_removed: removed,
        folders_passed_over: given.kind === "folder" && !recursive ? countFolders(given.path, sync) : 0,
        bytes_read: bytesRead,
        ...sync.results.troubles.toOutput(),
        duration_seconds: durationMs / 1000,
      };
    });
  },
});

/** What is gone can only be forgotten when it was known; otherwise the path is most likely misspelt. */
function checkKnown({ kind, path, shown }: GivenPath, tracked: Tracked): void {
  if (kind === "file" || kind === "folder" || tracked.knows(path)) return;
  throw new CommandError(
    `\`path\` ${shown} is ${kind === "missing" ? "not there, and nothing is recorded of it" : "not a regular file"}; check the path.`,
  );
}

/** How many folders right below a folder a sync of all would have looked into. */
function countFolders(folder: Buffer, sync: Sync): number {
  try {
    const entries = readdirSync(folder, { withFileTypes: true, encoding: "buffer" });
    return entries.filter((entry) => entry.isDirectory() && !sync.skips(joinBytes(folder, entry.name))).length;
  } catch {
    return 0; // That it cannot be read is among the errors already.
  }
}

async function syncGiven(sync: Sync, given: GivenPath, recursive: boolean): Promise<void> {
  if (given.kind === "folder") return await sync.syncFolder(given.path, recursive);
  const stat = given.kind === "file" ? statSync(given.path, { bigint: true, throwIfNoEntry: false }) : undefined;
  if (stat === undefined) return await sync.forget(given.path);
  await sync.syncFile(given.path, { size: Number(stat.size), mtimeNs: stat.mtimeNs, inode: stat.ino });
}
