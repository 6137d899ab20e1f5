import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, read, readSync } from "node:fs";
import { promisify } from "node:util";
import { Unreadable } from "../_pack/limits.ts";
import type { Reach } from "../_pack/reach.ts";

/** So much is read at once: all of a small file, the beginning of a large one. */
const headBytes = 64 * 1024;
const pieceBytes = 256 * 1024;
const readPiece = promisify(read);

/** Changes whenever a file is written or replaced: unchanged files need not be read again. */
export function stampOf({
  size,
  mtimeNs,
  inode,
}: {
  readonly size: number | bigint;
  readonly mtimeNs: bigint;
  readonly inode: bigint;
}): string {
  return `${size}-${mtimeNs}-${inode}`;
}

/** How a file may be read. */
export interface Reading {
  readonly maxBytes: number;
  readonly reach: Reach;
}

/** A file that is open. Its bytes are handed on in pieces, so that a large one is never held as a whole. */
export class Source {
  readonly size: number;
  /** By what to know that the bytes are still the same. */
  readonly stamp: string;
  /** The first bytes: all of them, in a small file. */
  readonly head: Buffer;
  readonly #descriptor: number;

  /** Opens a file; refuses one that is too large, or lies where it must not. */
  constructor(file: Buffer, { maxBytes, reach }: Reading) {
    this.#descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const stat = fstatSync(this.#descriptor, { bigint: true });
      if (!stat.isFile()) throw new Unreadable("it is not a regular file");
      reach.checkOpened(this.#descriptor, file);
      if (stat.size > BigInt(maxBytes)) throw new Unreadable(`it has ${stat.size} bytes, at most ${maxBytes} are read`);
      this.size = Number(stat.size);
      this.stamp = stampOf({ size: stat.size, mtimeNs: stat.mtimeNs, inode: stat.ino });
      this.head = this.#readHead();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * All bytes; throws at the end when they were not those of one moment. A piece is good until the next is asked for.
   */
  async *pieces(): AsyncGenerator<Buffer> {
    yield this.head;
    let at = this.head.length;
    // One buffer for all: a new one for each would pile up until somebody tidies.
    const piece = at < this.size ? Buffer.allocUnsafeSlow(Math.min(pieceBytes, this.size - at)) : this.head;
    while (at < this.size) {
      const { bytesRead } = await readPiece(this.#descriptor, piece, 0, Math.min(piece.length, this.size - at), at);
      if (bytesRead === 0) throw changed();
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
    this.#refuseChanged();
  }

  async sha256(): Promise<string> {
    const hash = createHash("sha256");
    for await (const piece of this.pieces()) hash.update(piece);
    return hash.digest("hex");
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #readHead(): Buffer {
    // One byte more than expected shows a file that has grown.
    const wanted = Math.min(this.size + 1, headBytes);
    const bytes = Buffer.allocUnsafe(wanted);
    let filled = 0;
    for (let count = -1; count !== 0 && filled < wanted; filled += count)
      count = readSync(this.#descriptor, bytes, filled, wanted - filled, filled);
    if (filled !== Math.min(this.size, headBytes)) throw changed();
    return bytes.subarray(0, filled);
  }

  #refuseChanged(): void {
    const { size, mtimeNs, ino } = fstatSync(this.#descriptor, { bigint: true });
    if (stampOf({ size, mtimeNs, inode: ino }) !== this.stamp) throw changed();
  }
}

/** Opens a file, hands it over, and closes it whatever happens. */
export async function withSource<T>(file: Buffer, reading: Reading, act: (source: Source) => Promise<T>): Promise<T> {
  const source = new Source(file, reading);
  try {
    return await act(source);
  } finally {
    source.close();
  }
}

const changed = () => new Unreadable("it changed while it was read; the next run takes it");
