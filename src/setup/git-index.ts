import { readFileSync, realpathSync, statSync } from "node:fs";
import path from "node:path";

/** A larger index is not read. */
const maxIndexBytes = 256 * 1024 * 1024;
const headerBytes = 12;
/** What an entry holds in front of its object ID: times, device, inode, mode, owner and size. */
const statBytes = 40;

/**
 * Returns whether the git repository around a file tracks it, or the file that it links to; read from the index of the
 * repository. Git itself is not run: the config of a repository may name programs that it would start. True where the
 * repository cannot be read.
 */
export function isTrackedByGit(file: string): boolean {
  try {
    return isTrackedAt(file) || isTrackedAt(realpathSync(file));
  } catch {
    return true;
  }
}

function isTrackedAt(file: string): boolean {
  const folder = realpathSync(path.dirname(file));
  const found = findRepository(folder);
  if (found === undefined) return false;
  const { root, gitFolder } = found;
  const name = path.relative(root, path.join(folder, path.basename(file))).replaceAll(path.sep, "/");
  const index = readIndex(path.join(gitFolder, "index"));
  if (index === undefined) return false;
  return index === "unreadable" || holds(index, name);
}

interface Repository {
  readonly root: string;
  readonly gitFolder: string;
}

/** A work tree of `git worktree`, and a submodule, have a file that names the folder in place of the folder. */
function findRepository(folder: string): Repository | undefined {
  for (let root = folder; ; root = path.dirname(root)) {
    const git = path.join(root, ".git");
    const facts = statSync(git, { throwIfNoEntry: false });
    if (facts?.isDirectory() === true) return { root, gitFolder: git };
    const named = facts?.isFile() === true ? /^gitdir: (.+)$/m.exec(readFileSync(git, "utf8"))?.[1] : undefined;
    if (named !== undefined) return { root, gitFolder: path.resolve(root, named.trim()) };
    if (root === path.dirname(root)) return undefined;
  }
}

function readIndex(file: string): Buffer | "unreadable" | undefined {
  try {
    const size = statSync(file, { throwIfNoEntry: false })?.size;
    if (size === undefined) return undefined;
    return size > maxIndexBytes ? "unreadable" : readFileSync(file);
  } catch {
    return "unreadable";
  }
}

/** The format: https://git-scm.com/docs/index-format. Object IDs have 20 bytes, or 32 in a repository with SHA-256. */
function holds(index: Buffer, name: string): boolean {
  for (const idBytes of [20, 32]) {
    const names = readNames(index, idBytes);
    if (names === undefined) continue;
    const wanted = toComparable(name);
    return names.map(toComparable).some((found) =>
      // A folder of a sparse index stands for all that is in it.
      found.endsWith("/") ? wanted.startsWith(found) : found === wanted,
    );
  }
  return true;
}

/** Paths are the same in any case, and however accents are encoded: git composes them (NFC), macOS decomposes them. */
const toComparable = (name: string) => name.toLowerCase().normalize("NFC");

/** The paths in an index; undefined where it is not one, or only part of a split one. */
function readNames(index: Buffer, idBytes: number): string[] | undefined {
  if (index.length < headerBytes || index.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const [version, count] = [index.readUInt32BE(4), index.readUInt32BE(8)];
  const names: string[] = [];
  let at = headerBytes;
  let last = Buffer.alloc(0);
  for (let entry = 0; entry < count; entry++) {
    const read = readEntry(index, at, { version, idBytes, last });
    if (read === undefined) return undefined;
    ({ name: last, end: at } = read);
    names.push(last.toString("utf8"));
  }
  return isWholeIndex(index, at, idBytes) ? names : undefined;
}

function readEntry(
  index: Buffer,
  start: number,
  { version, idBytes, last }: { version: number; idBytes: number; last: Buffer },
): { name: Buffer<ArrayBuffer>; end: number } | undefined {
  let at = start + statBytes + idBytes;
  if (at + 4 > index.length) return undefined;
  const flags = index.readUInt16BE(at);
  at += (flags & 0x4000) !== 0 ? 4 : 2;
  let kept = 0;
  if (version === 4) ({ value: kept, end: at } = readVariableInteger(index, at));
  const end = index.indexOf(0, at);
  if (end < 0 || kept > last.length) return undefined;
  const name = Buffer.concat([
    version === 4 ? last.subarray(0, last.length - kept) : Buffer.alloc(0),
    index.subarray(at, end),
  ]);
  const length = flags & 0xfff;
  if (length !== Math.min(name.length, 0xfff) || name.compare(last) < 0) return undefined;
  // Up to version 3 an entry ends at a multiple of eight bytes, with one NUL at least.
  return { name, end: version === 4 ? end + 1 : start + Math.ceil((end + 1 - start) / 8) * 8 };
}

function readVariableInteger(index: Buffer, start: number): { value: number; end: number } {
  let at = start;
  let byte = index[at++] ?? 0;
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = index[at++] ?? 0;
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return { value, end: at };
}

/** False where extensions do not end at the checksum, or say that entries are in another file. */
function isWholeIndex(index: Buffer, start: number, idBytes: number): boolean {
  let at = start;
  while (at + 8 <= index.length - idBytes) {
    if (index.toString("latin1", at, at + 4) === "link") return false;
    at += 8 + index.readUInt32BE(at + 4);
  }
  return at === index.length - idBytes;
}
