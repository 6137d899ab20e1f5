import type Database from "better-sqlite3";
import { type FileState, isSameState } from "../_pack/hash-file.ts";
import { folderOf, joinBytes, nameOf } from "../_pack/paths.ts";
import type { Reach } from "../_pack/reach.ts";
import { reasonOf } from "../_pack/reason.ts";
import { createPace, type WalkedFile, type WalkedFolder, walkFolders } from "../_pack/walk.ts";
import { createDecider, type Decider } from "./_decide.ts";
import { readFilters } from "./_filters.ts";
import type { SeenFolder } from "./_held.ts";
import { priorityIn, readScoring, type Scoring, scoreMark } from "./_priority.ts";
import { Recorder } from "./_recorder.ts";
import { SyncResults } from "./_results.ts";
import { hasMark, readSnapshot, takeSnapshot } from "./_snapshot.ts";
import { fromKey, type Lowest, Tracked, type TrackedFolder, toKey } from "./_tracked.ts";

export interface SyncOptions {
  readonly db: Database.Database;
  /** Meanwhile's own folder, which is never monitored. */
  readonly home: Buffer;
  /** What is closed to whoever asked stays as it is recorded. */
  readonly reach: Reach;
  readonly signal: AbortSignal;
  /** Told as often as something was done. */
  readonly onProgress?: (done: number, found: number) => void;
  /** Told of every folder before it is read. */
  readonly onFolder?: (folder: Buffer) => void;
  /** Where to count and collect; its own unless given. */
  readonly results?: SyncResults;
}

/**
 * Brings what is remembered in line with what is on the disk. Finished files are written as it goes, a few hundred at a
 * time, so a run that is killed and begun again reads only what is left.
 */
export class Sync {
  readonly results: SyncResults;
  readonly #options: SyncOptions;
  readonly #tracked: Tracked;
  readonly #decider: Decider;
  readonly #scoring: Scoring;
  /** New files that come before this one would be forgotten again at once. */
  readonly #floor: Lowest | undefined;
  readonly #recorder: Recorder;
  #found = 0;

  constructor(options: SyncOptions) {
    this.#options = options;
    this.results = options.results ?? new SyncResults();
    this.#tracked = new Tracked(options.db);
    this.#recorder = new Recorder({
      tracked: this.#tracked,
      results: this.results,
      signal: options.signal,
      onRead: () => this.#tell(),
    });
    this.#decider = createDecider(readFilters(options.db), options.home);
    this.#scoring = readScoring(options.db);
    this.#floor = this.#tracked.lowestBeyond(this.#scoring.settings.maximum_files);
  }

  /** A folder: what is right in it, or all below it too. */
  async syncFolder(root: Buffer, recursive: boolean): Promise<void> {
    const visited = new Set<string>();
    const unreadable = new Set<string>();
    if (!this.#decider.skipsFolder(root)) {
      for await (const found of walkFolders(root, { recursive, ...this.#walkOptions(unreadable) })) {
        visited.add(toKey(found.folder));
        this.#compare(found);
        if (this.#recorder.isFull) await this.#recorder.readHeld();
        this.#tell();
      }
    }
    await this.#recorder.readHeld();
    if (recursive || !visited.has(toKey(root))) await this.#forgetUnvisited(root, visited, unreadable);
    await this.#trim();
  }

  /** One file, however it came to be asked for. */
  async syncFile(file: Buffer, state: Omit<WalkedFile, "folder" | "name">): Promise<void> {
    const folder = folderOf(file);
    const name = nameOf(file);
    this.#found += 1;
    const priority = priorityIn(folder, this.#scoring)(name);
    if (!this.#decider.inFolder(folder)(name) || priority < this.#scoring.settings.minimum_priority) {
      this.results.skip();
      this.results.counts.removed += this.#tracked.removeFile(file);
      return;
    }
    const id = this.#tracked.folderId(folder);
    const known = id === undefined ? undefined : this.#tracked.statesIn(id).get(toKey(name));
    if (known !== undefined && known.priority === priority && isSameState(known, state)) this.results.skip();
    else
      this.#recorder.hold(
        { seen: { path: folder, snapshot: noName, files: 0, isWhole: false }, key: toKey(name), priority },
        state,
      );
    await this.#recorder.readHeld();
    await this.#trim();
  }

  /** Forgets a path that is no longer there, and all that was below it. */
  async forget(path: Buffer): Promise<void> {
    this.results.counts.removed += this.#tracked.removeFile(path);
    await this.forgetFolder(path);
  }

  /** Forgets what was in a folder; a file that has its name now stays. */
  async forgetFolder(folder: Buffer): Promise<void> {
    await this.#forgetUnvisited(folder, new Set(), new Set());
  }

  /** True for a folder in which nothing is monitored. */
  skips(folder: Buffer): boolean {
    return this.#decider.skipsFolder(folder) || this.#options.reach.hides(folder, "folder");
  }

  async close(): Promise<void> {
    await this.#recorder.close();
  }

  #walkOptions(unreadable: Set<string>) {
    let current: Buffer | undefined;
    let isIn: (name: Buffer) => boolean = () => true;
    return {
      signal: this.#options.signal,
      reach: this.#options.reach,
      onHidden: (path: Buffer) => {
        unreadable.add(toKey(path));
        this.#found += 1;
        this.results.skip();
      },
      ...(this.#options.onFolder !== undefined && { onFolder: this.#options.onFolder }),
      skipsFolder: (folder: Buffer, name: Buffer) => this.#decider.skipsFolder(joinBytes(folder, name)),
      skipsFile: (folder: Buffer, name: Buffer) => {
        if (folder !== current) isIn = this.#decider.inFolder(folder);
        current = folder;
        if (isIn(name)) return false;
        this.#found += 1;
        this.results.skip();
        return true;
      },
      onError: (path: Buffer, error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") unreadable.add(toKey(path));
        this.results.fail(path, reasonOf(error));
      },
    };
  }

  /** Sorts a folder's files into those as they were, those to read and those that are gone. */
  #compare({ folder, files: found, failed }: WalkedFolder): void {
    this.#found += found.length;
    const priorityOf = priorityIn(folder, this.#scoring);
    const mark = scoreMark(folder, this.#scoring);
    const files = this.#leaveOutLow(found, priorityOf);
    const snapshot = takeSnapshot(files, mark);
    const row = this.#tracked.folder(folder);
    if (row?.snapshot?.equals(snapshot)) {
      this.results.skip(files.length);
      return;
    }
    const seen: SeenFolder = { path: folder, snapshot, files: files.length, isWhole: failed.length === 0 };
    if (files.length > 0) this.#recorder.see(seen);
    const id = row?.id;
    const known = this.#knownIn(row, mark);
    const repriced: { name: Buffer; priority: number }[] = [];
    for (const { name, size, mtimeNs, inode } of files) {
      const key = toKey(name);
      const state = known.get(key);
      const priority = priorityOf(name);
      known.delete(key);
      if (state === undefined && this.#floor !== undefined && isLower({ priority, mtimeNs }, this.#floor))
        this.results.skip();
      else if (state === undefined || !isSameState(state, { size, mtimeNs, inode }))
        this.#recorder.hold({ seen, key, priority }, { size, mtimeNs, inode });
      else if (state.priority === undefined || state.priority === priority) this.results.skip();
      else repriced.push({ name, priority });
    }
    for (const name of failed) known.delete(toKey(name));
    if (id === undefined) return;
    this.#tracked.setPriorities(id, repriced);
    this.results.update(repriced.length);
    if (known.size > 0) this.results.counts.removed += this.#tracked.remove(id, [...known.keys()].map(fromKey));
  }

  /** Those that score enough; the others are skipped, and forgotten when they are known. */
  #leaveOutLow(files: readonly WalkedFile[], priorityOf: (name: Buffer) => number): readonly WalkedFile[] {
    const { minimum_priority } = this.#scoring.settings;
    if (minimum_priority === 0) return files;
    const enough = files.filter(({ name }) => priorityOf(name) >= minimum_priority);
    this.results.skip(files.length - enough.length);
    return enough;
  }

  /** Forgets what scores too little, wherever it lies, and the lowest of more files than are wanted. */
  async #trim(): Promise<void> {
    const { minimum_priority, maximum_files } = this.#scoring.settings;
    if (minimum_priority === 0 && maximum_files === 0) return;
    const pace = createPace(this.#options.signal);
    for (let removed = -1; removed !== 0; this.results.counts.removed += removed) {
      removed = this.#tracked.removeLowest(minimum_priority, maximum_files);
      if (pace.isOver()) await pace.giveWay();
    }
  }

  /** A folder's files as they are recorded, by key; without a priority where that is the same as now. */
  #knownIn(row: TrackedFolder | undefined, mark: Buffer): Map<string, FileState & { readonly priority?: number }> {
    if (row === undefined) return new Map();
    const { id, snapshot } = row;
    return snapshot !== null && hasMark(snapshot, mark) ? readSnapshot(snapshot) : this.#tracked.statesIn(id);
  }

  /**
   * What is remembered below a folder but was not met: vanished, excluded, or hidden behind a folder that cannot be
   * read.
   */
  async #forgetUnvisited(root: Buffer, visited: ReadonlySet<string>, unreadable: ReadonlySet<string>): Promise<void> {
    const pace = createPace(this.#options.signal);
    const rootId = this.#tracked.folderId(root);
    let folders: { id: number; path: Buffer }[] = [
      ...(rootId === undefined ? [] : [{ id: rootId, path: root }]),
      ...this.#tracked.foldersBelow(root),
    ];
    while (folders.length > 0) {
      for (const { id, path } of folders) {
        if (visited.has(toKey(path)) || isBehind(path, unreadable, root)) continue;
        for (let removed = -1; removed !== 0; this.results.counts.removed += removed) {
          removed = this.#tracked.removeSomeOf(id);
          if (pace.isOver()) await pace.giveWay();
        }
      }
      folders = this.#tracked.foldersBelow(root, folders.at(-1)?.path);
    }
  }

  #tell(): void {
    this.#options.onProgress?.(this.results.counts.processed, this.#found);
  }
}

const noName = Buffer.alloc(0);

function isLower(a: Lowest, b: Lowest): boolean {
  return a.priority === b.priority ? a.mtimeNs < b.mtimeNs : a.priority < b.priority;
}

function isBehind(folder: Buffer, unreadable: ReadonlySet<string>, root: Buffer): boolean {
  for (let at = folder; at.length >= root.length; at = folderOf(at)) {
    if (unreadable.has(toKey(at))) return true;
    if (at.length === 1) return false;
  }
  return false;
}
