import { createHash, hash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** What tells one state of a file from another without reading it. */
export interface FileState {
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly inode: bigint;
}

export interface HashedFile extends FileState {
  readonly sha256: Buffer;
  /** Its state is no longer the one that was seen before. */
  readonly hasChanged: boolean;
}

/** Read at once up to this size, and in pieces of it above. */
const pieceBytes = 1024 * 1024;
/** A file that is written all the time is given up after so many readings. */
const maxReadings = 4;

let piece: Buffer | undefined;

/**
 * The sha256 of a file's content, and the state it belongs to. `seen` is the state before: only when it is the same
 * after reading does the hash belong to one state of the file; otherwise the file is read again. Blocks until it is
 * read.
 */
export function hashFile(file: Buffer, seen: FileState, isStopped: () => boolean = () => false): HashedFile {
  // A pipe that took the file's place must not keep the reader waiting.
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    let before = seen;
    for (let reading = 1; reading <= maxReadings; reading++) {
      const content = hashContent(descriptor, before.size, isStopped);
      const after = stateOf(descriptor);
      if (content.bytes === after.size && isSameState(before, after))
        return { ...after, sha256: content.sha256, hasChanged: before !== seen };
      before = after;
    }
    throw new Error("it kept changing while it was read; sync it again later");
  } finally {
    closeSync(descriptor);
  }
}

export function isSameState(a: FileState, b: FileState): boolean {
  return a.size === b.size && a.mtimeNs === b.mtimeNs && a.inode === b.inode;
}

function stateOf(descriptor: number): FileState {
  const { size, mtimeNs, ino } = fstatSync(descriptor, { bigint: true });
  return { size: Number(size), mtimeNs, inode: ino };
}

/** Small files in one go: that is most of them, and much faster. */
function hashContent(descriptor: number, size: number, isStopped: () => boolean): { sha256: Buffer; bytes: number } {
  piece ??= Buffer.allocUnsafeSlow(pieceBytes);
  let bytes = readSync(descriptor, piece, 0, pieceBytes, 0);
  if (bytes < pieceBytes && bytes === size)
    return { sha256: hash("sha256", piece.subarray(0, bytes), "buffer"), bytes };
  const whole = createHash("sha256").update(piece.subarray(0, bytes));
  for (;;) {
    if (isStopped()) throw new Error("it was not read to its end, because the run was stopped");
    const read = readSync(descriptor, piece, 0, pieceBytes, bytes);
    // Beyond its size it has grown meanwhile: who writes faster than this reads must not keep it here.
    if (read === 0 || bytes > size) return { sha256: whole.digest(), bytes };
    whole.update(piece.subarray(0, read));
    bytes += read;
  }
}
