import { existsSync, type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import path from "node:path";
import type { Clock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import { foldersBelow } from "./discover.ts";

/** Editors write a file in several steps; a change is read once it has been quiet this long. */
const quietMs = 60;

interface WatchOptions {
  readonly folders: readonly string[];
  /** Files elsewhere that what is in the folders depends on; asked again after each change. */
  readonly others?: () => readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  /** True when the folders have changed already since they were read: `onChange` is then called with all of them. */
  readonly isOutdated?: boolean;
  /** Gets the folders in which something changed. The next change waits for it. */
  readonly onChange: (folders: readonly string[]) => Promise<void>;
}

/** Watches command folders, also those that do not exist yet, until the returned function is called. */
export function watchFolders(options: WatchOptions): () => void {
  const watchers = new Map<string, FSWatcher>();
  const others = () => options.others?.() ?? [];
  let seen = options.isOutdated === true ? new Map<string, string>() : fingerprints(options.folders);
  let seenOthers = fingerprintsOf(others());
  let cancelTimer: (() => void) | undefined;
  let busy = false;
  let closed = false;

  const schedule = () => {
    if (closed) return;
    cancelTimer?.();
    cancelTimer = options.clock.after(quietMs, () => void check());
  };

  const check = async () => {
    if (closed) return;
    if (busy) return schedule();
    busy = true;
    try {
      follow();
      const now = fingerprints(options.folders);
      const nowOthers = fingerprintsOf(others());
      // One that has only now become known has not changed.
      const isOtherChanged = [...nowOthers].some(
        ([file, print]) => seenOthers.has(file) && seenOthers.get(file) !== print,
      );
      const changed = options.folders.filter((folder) => isOtherChanged || now.get(folder) !== seen.get(folder));
      seen = now;
      seenOthers = nowOthers;
      if (changed.length > 0) await options.onChange(changed);
      // What was loaded anew may import other files.
      if (!closed) follow();
    } catch (error) {
      if (!closed) options.log.error(`watching the command folders: ${messageOf(error)}`);
    } finally {
      busy = false;
    }
  };

  /** One watcher a folder, set before the folder is read, so that nothing falls between. */
  const follow = () => {
    const wanted = new Set(
      options.folders.flatMap((folder) => (existsSync(folder) ? foldersBelow(folder) : [nearestParent(folder)])),
    );
    for (const file of others()) wanted.add(nearestParent(file));
    watchOnly(wanted, watchers, schedule);
  };

  follow();
  return () => {
    closed = true;
    cancelTimer?.();
    for (const watcher of watchers.values()) watcher.close();
  };
}

function watchOnly(wanted: ReadonlySet<string>, watchers: Map<string, FSWatcher>, onEvent: () => void): void {
  for (const [folder, watcher] of watchers) {
    if (wanted.has(folder)) continue;
    watcher.close();
    watchers.delete(folder);
  }
  for (const folder of wanted) {
    if (watchers.has(folder)) continue;
    const watcher = watch(folder, { persistent: false }, onEvent);
    watcher.on("error", onEvent);
    watchers.set(folder, watcher);
    onEvent();
  }
}

function nearestParent(folder: string): string {
  const parent = path.dirname(folder);
  return existsSync(parent) || parent === folder ? parent : nearestParent(parent);
}

/** For each folder, what would change if any file below it did. */
function fingerprints(folders: readonly string[]): Map<string, string> {
  return new Map(folders.map((folder) => [folder, foldersBelow(folder).map(fingerprint).join("\n")]));
}

function fingerprintsOf(files: readonly string[]): Map<string, string> {
  return new Map(
    files.map((file) => {
      const stat = statSync(file, { throwIfNoEntry: false });
      return [file, stat === undefined ? "" : `${stat.mtimeMs} ${stat.size}`];
    }),
  );
}

function fingerprint(folder: string): string {
  if (!existsSync(folder)) return "";
  return readdirSync(folder)
    .map((name) => {
      const stat = statSync(path.join(folder, name), { throwIfNoEntry: false });
      return stat?.isFile() ? `${name} ${stat.mtimeMs} ${stat.size}` : name;
    })
    .join(" ");
}
