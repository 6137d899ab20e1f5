import { lstatSync, readdirSync } from "node:fs";
import { type CommandContext, CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { joinBytes, realPathOf, showName } from "../_pack/paths.ts";
import { openReach, type Reach } from "../_pack/reach.ts";
import { troubleFields } from "../_pack/trouble.ts";
import { SyncResults } from "./_results.ts";
import { rememberRoot } from "./_roots.ts";
import { withMonitor } from "./_schema.ts";
import { Sync } from "./_sync.ts";
import { rememberSync } from "./_syncs.ts";
import { fromKey } from "./_tracked.ts";
import { WatchedFolders } from "./_watched.ts";

/** A timer holds no more. */
const maxSeconds = 2_000_000;

export default defineCommand({
  summary: "Sync a folder, then keep the monitor in line with it as files change",
  description:
    "Runs until it is cancelled, the time is over or the folder is gone. " +
    "Cancel it to stop: what was recorded stays, and the cancelled run and monitor status have its counts.",
  input: z.object({
    path: z.string().describe("The folder, e.g. ~/notes"),
    recursive: z.boolean().default(true).describe("Also all folders below it"),
    seconds: z.number().min(0).max(maxSeconds).default(0).describe("Stop after so long; 0: watch until cancelled"),
    rescan_seconds: z.number().min(1).max(maxSeconds).default(600).describe("How often all of it is looked at again"),
  }),
  output: z.object({
    path: z.string(),
    ended: z.enum(["time", "vanished"]),
    files_updated: z.number().int(),
    files_removed: z.number().int(),
    ...troubleFields,
    duration_seconds: z.number(),
  }),
  long: true,
  // Nobody knows when it will be cancelled.
  estimate: ({ seconds }) => (seconds === 0 ? Infinity : seconds),
  effects: "write",
  idempotent: true,
  examples: ["~/notes", "~/notes --seconds 3600"],
  summarize: ({ files_updated, files_removed, ended }) =>
    `${files_updated} updated, ${files_removed} removed${ended === "vanished" ? "; the folder is gone" : ""}`,
  async run({ path, recursive, seconds, rescan_seconds }, task) {
    const reach = openReach(task);
    const given = reach.resolve(path);
    if (given.kind !== "folder")
      throw new CommandError(`\`path\` ${given.shown} is not a folder; use monitor sync for a single file.`);
    const startedAt = performance.now();
    const endsAt = seconds === 0 ? Infinity : startedAt + seconds * 1000;
    const results = new SyncResults();
    const { counts, troubles } = results;
    const watched = openWatched(rescan_seconds, task);
    try {
      task.announce(`Watching ${given.shown}`);
      await withMonitor(task.home, (db) => rememberRoot(db, { path: given.path, recursive }, task));
      const watch = { root: given.path, recursive, watched, reach, results, startedAt };
      const ended = await watchUntil(watch, { endsAt, rescanMs: rescan_seconds * 1000 }, task);
      const duration_seconds = Math.round(performance.now() - startedAt) / 1000;
      return {
        path: given.shown,
        ended,
        files_updated: counts.updated,
        files_removed: counts.removed,
        ...troubles.toOutput(),
        duration_seconds,
      };
    } catch (error) {
      if (task.signal.aborted)
        task.announce(`Stopped watching ${given.shown}: ${counts.updated} updated, ${counts.removed} removed`);
      throw error;
    } finally {
      watched.close();
    }
  },
});

/** Says once, and of the first alone, that a folder cannot be watched. */
function openWatched(rescanSeconds: number, { log }: CommandContext): WatchedFolders {
  let isTold = false;
  return new WatchedFolders((folder, error) => {
    if (isTold) return;
    isTold = true;
    const cure =
      (error as NodeJS.ErrnoException).code === "ENOSPC" ? "raise fs.inotify.max_user_watches" : "it may have vanished";
    log.warn(
      `${showName(folder)} cannot be watched (${cure}); what is not watched is looked at every ${rescanSeconds} s.`,
    );
  });
}

interface Watch {
  readonly root: Buffer;
  readonly recursive: boolean;
  readonly watched: WatchedFolders;
  readonly reach: Reach;
  readonly results: SyncResults;
  readonly startedAt: number;
}

/** Syncs all of it every so often, and what has changed in between; says why it ended. */
async function watchUntil(
  watch: Watch,
  { endsAt, rescanMs }: { readonly endsAt: number; readonly rescanMs: number },
  task: CommandContext,
): Promise<"time" | "vanished"> {
  const { root, recursive, watched } = watch;
  const { counts } = watch.results;
  for (let rescanAt = 0; ; ) {
    if (performance.now() >= rescanAt) {
      await pass(watch, task, (sync) => sync.syncFolder(root, recursive));
      rescanAt = performance.now() + rescanMs;
    }
    task.progress({
      message: `Watching ${watched.count} ${watched.count === 1 ? "folder" : "folders"}: ${counts.updated} updated, ${counts.removed} removed`,
    });
    const dirty = await watched.next(Math.max(0, Math.min(rescanAt, endsAt) - performance.now()), task.signal);
    if (dirty.length > 0) await pass(watch, task, (sync) => syncDirty(sync, dirty, watch));
    if (!isFolder(root)) {
      await pass(watch, task, (sync) => sync.forgetFolder(root));
      return "vanished";
    }
    if (performance.now() >= endsAt) return "time";
  }
}

/** One pass, after which what the watch has done is known, however it ends. */
async function pass(watch: Watch, task: CommandContext, act: (sync: Sync) => Promise<void>): Promise<void> {
  const { root, recursive, reach, results, watched, startedAt } = watch;
  const home = realPathOf(Buffer.from(task.home));
  await withMonitor(task.home, async (db) => {
    const onFolder = (folder: Buffer) => watched.add(folder);
    const sync = new Sync({ db, home, reach, signal: task.signal, results, onFolder });
    try {
      await act(sync);
    } finally {
      await sync.close();
      const durationMs = Math.round(performance.now() - startedAt);
      rememberSync(db, root, { recursive, durationMs, results });
    }
  });
}

/** Compares the folders that changed; what is new below them is walked, what is gone is forgotten. */
async function syncDirty(sync: Sync, dirty: readonly Buffer[], { watched, recursive }: Watch): Promise<void> {
  for (const folder of dirty) {
    if (!isFolder(folder)) {
      watched.remove(folder);
      await sync.forgetFolder(folder);
      continue;
    }
    const isReplaced = watched.isReplaced(folder);
    if (isReplaced) watched.remove(folder);
    await sync.syncFolder(folder, isReplaced && recursive);
    if (!recursive) continue;
    for (const below of foldersIn(folder))
      if (!watched.has(below) && !sync.skips(below)) await sync.syncFolder(below, true);
  }
}

/** False also for a link that took its place, or that of a folder above it: what that leads to is not watched. */
function isFolder(path: Buffer): boolean {
  try {
    return lstatSync(path).isDirectory() && realPathOf(path).equals(path);
  } catch (error) {
    // Gone, or behind a file that took the place of a folder. What may only be hidden for now must not be forgotten.
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}

function foldersIn(folder: Buffer): Buffer[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true, encoding: "latin1" });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => joinBytes(folder, fromKey(entry.name)));
  } catch {
    return []; // Gone again: its parent tells.
  }
}
