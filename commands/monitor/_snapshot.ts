import type { FileState } from "../_pack/hash-file.ts";
import type { WalkedFile } from "../_pack/walk.ts";
import { toKey } from "./_tracked.ts";

/**
 * All files of a folder in one value: equal snapshots need no closer look, and reading one is several times faster than
 * reading as many rows. It begins with the folder's priority; each file is the length of its name, the name, size, time, inode.
 */
export function takeSnapshot(files: readonly WalkedFile[], priority: number): Buffer {
  const bytes = Buffer.allocUnsafe(files.reduce((sum, { name }) => sum + name.length + 26, 8));
  let at = bytes.writeDoubleLE(priority, 0);
  for (const { name, size, mtimeNs, inode } of files) {
    at = bytes.writeUInt16LE(name.length, at);
    at += name.copy(bytes, at);
    at = bytes.writeDoubleLE(size, at);
    at = bytes.writeBigInt64LE(mtimeNs, at);
    at = bytes.writeBigUInt64LE(inode, at);
  }
  return bytes;
}

/** The folder's priority when it was taken. */
export function priorityOfSnapshot(snapshot: Buffer): number {
  return snapshot.readDoubleLE(0);
}

/** The files of a snapshot, by key. */
export function readSnapshot(snapshot: Buffer): Map<string, FileState> {
  const states = new Map<string, FileState>();
  for (let at = 8; at < snapshot.length; ) {
    const start = at + 2;
    const end = start + snapshot.readUInt16LE(at);
    const state = { size: snapshot.readDoubleLE(end), mtimeNs: snapshot.readBigInt64LE(end + 8), inode: snapshot.readBigUInt64LE(end + 16) };
    states.set(toKey(snapshot.subarray(start, end)), state);
    at = end + 24;
  }
  return states;
}
