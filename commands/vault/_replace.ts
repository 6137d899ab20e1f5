import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { Unreadable } from "../_pack/limits.ts";
import { folderOf, joinBytes, nameOf, pathOfOpened } from "../_pack/paths.ts";
import { stampOf } from "../transform/_source.ts";

/** What a file is to hold from now on, if it still is what it was. */
export interface NewContent {
  readonly stamp: string;
  readonly bytes: Buffer;
}

/**
 * Puts new content in a file's place in one go, with its mode and owner. Refuses a file that has changed, and one with
 * a second name, which would keep the old content. The folder is held open, so that a link that takes its place leads
 * nowhere else.
 */
export function replaceFile(file: Buffer, { stamp, bytes }: NewContent): void {
  const folder = openSync(folderOf(file), constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const real = pathOfOpened(folder);
    if (real !== undefined && !real.equals(folderOf(file)))
      throw new Unreadable("its folder is no longer where it was");
    const base = real === undefined ? folderOf(file) : Buffer.from(`/proc/self/fd/${folder}`);
    const target = joinBytes(base, nameOf(file));
    const stat = lstatSync(target, { bigint: true });
    if (!stat.isFile() || stampOf({ size: stat.size, mtimeNs: stat.mtimeNs, inode: stat.ino }) !== stamp)
      throw new Unreadable("it has changed meanwhile");
    if (stat.nlink > 1n)
      throw new Unreadable(
        "it has another name elsewhere (a hard link), which would keep the old links; change it by hand",
      );
    const temporary = joinBytes(base, Buffer.from(`.meanwhile-${randomBytes(6).toString("hex")}`));
    try {
      writeWhole(temporary, bytes, { mode: Number(stat.mode) & 0o7777, uid: Number(stat.uid), gid: Number(stat.gid) });
      renameSync(temporary, target);
    } catch (error) {
      unlinkQuietly(temporary);
      throw error;
    }
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Keeps a copy that only the user can read, in a folder of its own. */
export function keepCopy(file: string, bytes: Buffer): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const descriptor = openSync(file, "wx", 0o600);
  try {
    writeFileSync(descriptor, bytes);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function writeWhole(file: Buffer, bytes: Buffer, { mode, uid, gid }: { mode: number; uid: number; gid: number }): void {
  const descriptor = openSync(file, "wx", 0o600);
  try {
    writeFileSync(descriptor, bytes);
    const now = fstatSync(descriptor);
    if (now.uid !== uid || now.gid !== gid) fchownSync(descriptor, uid, gid);
    fchmodSync(descriptor, mode);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function unlinkQuietly(file: Buffer): void {
  try {
    unlinkSync(file);
  } catch {
    // It was never made, or is in place already.
  }
}
