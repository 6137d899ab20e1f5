import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { CommandError } from "meanwhile";
import type { Reach } from "../_pack/reach.ts";

/** A file's bytes, and by what to know that they are still the same. */
export interface Source {
  readonly bytes: Buffer;
  readonly stamp: string;
}

/** Changes whenever a file is written or replaced: unchanged files need not be read again. */
export function stampOf({ size, mtimeNs, inode }: { readonly size: number | bigint; readonly mtimeNs: bigint; readonly inode: bigint }): string {
  return `${size}-${mtimeNs}-${inode}`;
}

/** Reads a file as a whole; refuses one that is out of reach, too large, or that changed meanwhile. */
export function readSource(file: Buffer, { maxBytes, reach }: { readonly maxBytes: number; readonly reach: Reach }): Source {
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const before = fstatSync(handle, { bigint: true });
    if (!before.isFile()) throw new CommandError("it is not a regular file");
    reach.checkOpened(handle, file);
    if (before.size > BigInt(maxBytes)) throw new CommandError(`it has ${before.size} bytes, at most ${maxBytes} are read`);
    const bytes = readAll(handle, Number(before.size));
    const after = fstatSync(handle, { bigint: true });
    const stamp = stampOf({ size: before.size, mtimeNs: before.mtimeNs, inode: before.ino });
    if (bytes === undefined || stamp !== stampOf({ size: after.size, mtimeNs: after.mtimeNs, inode: after.ino }))
      throw new CommandError("it changed while it was read; the next run takes it");
    return { bytes, stamp };
  } finally {
    closeSync(handle);
  }
}

/** All bytes that were there at the start; undefined when there are fewer or more by now. */
function readAll(handle: number, size: number): Buffer | undefined {
  // One byte more than expected shows a file that has grown.
  const bytes = Buffer.allocUnsafe(size + 1);
  let filled = 0;
  for (let count = -1; count !== 0 && filled < bytes.length; filled += count) count = readSync(handle, bytes, filled, bytes.length - filled, null);
  return filled === size ? bytes.subarray(0, size) : undefined;
}
