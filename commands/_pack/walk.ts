import {
  type BigIntStats,
  type Dir,
  type Dirent,
  lstatSync,
  opendirSync,
  readdirSync,
  realpathSync,
  statSync,
} from "node:fs";
import { setImmediate as giveWay } from "node:timers/promises";
import { isInside, joinBytes } from "./paths.ts";
import type { Reach } from "./reach.ts";

/** A regular file, as the walk found it. */
export interface WalkedFile {
  readonly folder: Buffer;
  readonly name: Buffer;
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly inode: bigint;
}

/** One folder and the files right in it. */
export interface WalkedFolder {
  readonly folder: Buffer;
  readonly files: readonly WalkedFile[];
  /** Names that are there, but of which nothing more could be told. */
  readonly failed: readonly Buffer[];
}

export interface WalkOptions {
  /** What is out of reach is passed over. */
  readonly reach: Reach;
  /** Default: true. */
  readonly recursive?: boolean;
  /** The walk ends by throwing its reason. */
  readonly signal?: AbortSignal;
  /** Leaves a folder out, with all below it. */
  readonly skipsFolder?: (folder: Buffer, name: Buffer) => boolean;
  /** Leaves a file out before anything is asked about it. */
  readonly skipsFile?: (folder: Buffer, name: Buffer) => boolean;
  /** Told of each file or folder that was passed over because it is out of reach. */
  readonly onHidden?: (path: Buffer) => void;
  /** Told of each folder before it is read. */
  readonly onFolder?: (folder: Buffer) => void;
  /** Told of each file or folder that failed; the walk goes on. */
  readonly onError: (path: Buffer, error: unknown) => void;
}

export interface FileWalkOptions extends WalkOptions {
  /** Newest first, within as many files as are held at a time. */
  readonly newestFirst?: boolean;
}

/** So many files are held, at most, to be put in order. */
const maxHeld = 100_000;
/** A guess from fewer folders than this would be none. */
const minCounted = 32;
/** So much of a folder is read at a time; a folder may hold hundreds of thousands. */
const maxEntriesAtOnce = 1_024;
/**
 * A folder of this size itself, which is one page where folders have pages, is read at once: that is several times
 * faster.
 */
const smallFolderBytes = 4_096;
/** After so long, others get their turn on the event loop. */
const sliceMs = 10;

/**
 * Walks a folder, and those below it, depth first. It stays inside: a link to a file is that file under the link's name
 * when its target lies inside the folder that is walked; a link to a folder inside is not followed, since the folder is
 * met under its own name, so that circles end and nothing is met twice; a link that leads out, or nowhere, is an error
 * of that entry. Sockets, pipes and devices are passed over.
 */
export async function* walkFolders(root: Buffer, options: WalkOptions): AsyncGenerator<WalkedFolder> {
  const pending: Buffer[] = [root];
  const pace = createPace(options.signal);
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    options.onFolder?.(folder);
    const found = await readFolder(folder, { root, options, pace, pending });
    if (found !== undefined) yield found;
  }
}

/** All files of a folder, one by one. */
export async function* walk(root: Buffer, options: FileWalkOptions): AsyncGenerator<WalkedFile> {
  if (options.newestFirst !== true) {
    for await (const { files } of walkFolders(root, options)) yield* files;
    return;
  }
  let held: WalkedFile[] = [];
  for await (const { files } of walkFolders(root, options)) {
    for (const file of files) held.push(file);
    if (held.length < maxHeld) continue;
    yield* held.sort(byNewest);
    held = [];
  }
  yield* held.sort(byNewest);
}

/** For sorting: the file changed last comes first. */
export function byNewest(a: { readonly mtimeNs: bigint }, b: { readonly mtimeNs: bigint }): number {
  return a.mtimeNs < b.mtimeNs ? 1 : a.mtimeNs > b.mtimeNs ? -1 : 0;
}

/** The file's whole path. */
export function pathOf(file: Pick<WalkedFile, "folder" | "name">): Buffer {
  return joinBytes(file.folder, file.name);
}

/**
 * Counts files for an estimate, quickly: after `budgetMs` the folders not yet seen are taken to be like the others, and
 * no folder is read to its end.
 */
export function countQuickly(
  root: Buffer,
  options: { recursive: boolean; budgetMs?: number; skipsFolder?: (folder: Buffer) => boolean },
): number {
  const { recursive, budgetMs = 40, skipsFolder = () => false } = options;
  const end = performance.now() + budgetMs;
  const pending = [root];
  let files = 0;
  let folders = 0;
  for (
    let folder = pending.pop();
    folder !== undefined && (folders < minCounted || performance.now() < end);
    folder = pending.pop()
  ) {
    folders += 1;
    for (const entries of partsOf(folder)) {
      for (const entry of entries) {
        if (entry.isFile()) files += 1;
        if (!recursive || !entry.isDirectory()) continue;
        const below = joinBytes(folder, Buffer.from(entry.name, "latin1"));
        if (!skipsFolder(below)) pending.push(below);
      }
      if (performance.now() >= end) break;
    }
  }
  return Math.round(files * (1 + pending.length / Math.max(1, folders)));
}

interface Walk {
  readonly root: Buffer;
  readonly options: WalkOptions;
  readonly pace: Pace;
  /** Folders found and not yet read. */
  readonly pending: Buffer[];
}

/**
 * Reads one folder; undefined when it could not be read at all. Names are read as latin1, one character a byte, which
 * is fastest and loses nothing.
 */
async function readFolder(folder: Buffer, walk: Walk): Promise<WalkedFolder | undefined> {
  const { options, pace, pending } = walk;
  const files: WalkedFile[] = [];
  const failed: Buffer[] = [];
  const entries: Dirent[] = [];
  try {
    for (const part of entriesInParts(folder)) {
      for (const entry of part) entries.push(entry);
      if (part.length >= maxEntriesAtOnce) await pace.giveWay();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    options.onError(folder, error);
    return undefined;
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  const prefix = joinBytes(folder, Buffer.alloc(0)).toString("latin1");
  const toPath = isAscii(prefix) ? pathBelow : bytesBelow;
  for (const entry of entries) {
    if (pace.isOver()) await pace.giveWay();
    const name = Buffer.from(entry.name, "latin1");
    if (entry.isDirectory()) {
      if (options.recursive === false || options.skipsFolder?.(folder, name) === true) continue;
      const below = joinBytes(folder, name);
      if (options.reach.hides(below, "folder")) options.onHidden?.(below);
      else pending.push(below);
      continue;
    }
    if (!(entry.isFile() || entry.isSymbolicLink()) || options.skipsFile?.(folder, name) === true) continue;
    try {
      const target = entry.isSymbolicLink() ? followInside(joinBytes(folder, name), walk.root) : undefined;
      const stat = target?.stat ?? lstatSync(toPath(prefix, entry.name), { bigint: true });
      if (!stat.isFile()) continue;
      if (!options.reach.isFree && isHidden(joinBytes(folder, name), target?.path, stat, options.reach)) {
        failed.push(name);
        options.onHidden?.(joinBytes(folder, name));
      } else files.push({ folder, name, size: Number(stat.size), mtimeNs: stat.mtimeNs, inode: stat.ino });
    } catch (error) {
      if (entry.isFile()) failed.push(name);
      options.onError(joinBytes(folder, name), error);
    }
  }
  return { folder, files, failed };
}

/** Text where it means the same bytes, because Node takes that faster. */
function pathBelow(prefix: string, name: string): string | Buffer {
  return isAscii(name) ? prefix + name : bytesBelow(prefix, name);
}

function bytesBelow(prefix: string, name: string): Buffer {
  return Buffer.from(prefix + name, "latin1");
}

function isAscii(text: string): boolean {
  return /^[\0-\x7f]*$/.test(text);
}

/** What a link inside the root leads to, when that is inside too. */
function followInside(link: Buffer, root: Buffer): { readonly path: Buffer; readonly stat: BigIntStats } {
  let target: Buffer;
  try {
    target = realpathSync.native(link, "buffer");
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === "ENOENT" ? new Error("it is a link that leads nowhere") : error;
  }
  if (!isInside(target, root)) throw new Error("it is a link that leads out of the folder, and was not followed");
  return { path: target, stat: statSync(target, { bigint: true }) };
}

/** A link is as closed as what it leads to, and as its own name. */
function isHidden(file: Buffer, target: Buffer | undefined, { nlink }: BigIntStats, reach: Reach): boolean {
  const names = Number(nlink);
  return target === undefined
    ? reach.hides(file, { names })
    : reach.hides(file, { names: 1 }) || reach.hides(target, { names });
}

interface Pace {
  isOver(): boolean;
  giveWay(): Promise<void>;
}

/** Lets others run between slices of work, and notices that the work is to stop. */
export function createPace(signal: AbortSignal | undefined): Pace {
  let begunAt = performance.now();
  return {
    isOver: () => performance.now() - begunAt > sliceMs,
    async giveWay() {
      await giveWay();
      signal?.throwIfAborted();
      begunAt = performance.now();
    },
  };
}

function* partsOf(folder: Buffer): Generator<Dirent[]> {
  try {
    yield* entriesInParts(folder);
  } catch {
    // A count is a guess; the walk itself will tell what is wrong.
  }
}

/** What is in a folder, in no order, so much at a time. Its names are latin1. */
function* entriesInParts(folder: Buffer): Generator<Dirent[]> {
  if (statSync(folder).size <= smallFolderBytes)
    return yield readdirSync(folder, { withFileTypes: true, encoding: "latin1" });
  const opened = opendirSync(folder, { encoding: "latin1", bufferSize: maxEntriesAtOnce });
  try {
    for (let part = readPart(opened); part.length > 0; part = readPart(opened)) yield part;
  } finally {
    opened.closeSync();
  }
}

function readPart(opened: Dir): Dirent[] {
  const part: Dirent[] = [];
  while (part.length < maxEntriesAtOnce) {
    const entry = opened.readSync();
    if (entry === null) break;
    part.push(entry);
  }
  return part;
}
