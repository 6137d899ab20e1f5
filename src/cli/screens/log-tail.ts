import { createReadStream, statSync } from "node:fs";
import { systemClock } from "../../clock.ts";
import { isBeingRotated } from "../../daemon/log-file.ts";

/**
 * Reads a log with all that was put aside of it, oldest first, and later what has come since: also what was put aside
 * meanwhile.
 */
export class LogTail {
  readonly #file: string;
  /** The file that was put aside last, when it was last read. */
  #newest: number | undefined;
  #hasBegun = false;
  #readBytes = 0;

  constructor(file: string) {
    this.#file = file;
  }

  get exists(): boolean {
    return inodeOf(this.#file) !== undefined || inodeOf(`${this.#file}.1`) !== undefined;
  }

  /**
   * Hands over what is there and was not handed over before. Whoever puts the log aside right now is not disturbed:
   * there will be another look.
   */
  async read(take: (text: string) => void): Promise<void> {
    // A letter may stand across two reads, and across two files.
    const decoder = new TextDecoder();
    const hand = (chunk: Buffer) => take(decoder.decode(chunk, { stream: true }));
    while (!this.#hasBegun || !isBeingRotated(this.#file, systemClock.now())) {
      const aside = this.#aside();
      if (aside[0] === this.#newest) return await this.#readOn(hand);
      await this.#readAside(aside, hand);
    }
  }

  async #readOn(hand: (chunk: Buffer) => void): Promise<void> {
    this.#hasBegun = true;
    const size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0;
    // Cut off, and by none of ours.
    if (size < this.#readBytes) this.#readBytes = 0;
    this.#readBytes += await readFrom(this.#file, this.#readBytes, hand);
  }

  /**
   * All that was put aside since the last look; the first of it was read as the log itself, and is read on where that
   * ended.
   */
  async #readAside(aside: readonly number[], hand: (chunk: Buffer) => void): Promise<void> {
    const known = this.#newest === undefined ? -1 : aside.indexOf(this.#newest);
    const first = known === -1 ? aside.length : known;
    for (let number = first; number > 0; number--) {
      const start = this.#hasBegun && number === first ? this.#readBytes : 0;
      await readFrom(`${this.#file}.${number}`, start, hand);
    }
    this.#hasBegun = true;
    this.#newest = aside[0];
    this.#readBytes = 0;
  }

  /** Which files are aside, by inode, the newest first. */
  #aside(): number[] {
    const inodes: number[] = [];
    for (let number = 1; ; number++) {
      const inode = inodeOf(`${this.#file}.${number}`);
      if (inode === undefined) return inodes;
      inodes.push(inode);
    }
  }
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}

/** How much was read. */
async function readFrom(file: string, start: number, hand: (chunk: Buffer) => void): Promise<number> {
  if (inodeOf(file) === undefined) return 0;
  let bytes = 0;
  for await (const chunk of createReadStream(file, { start })) {
    bytes += (chunk as Buffer).length;
    hand(chunk as Buffer);
  }
  return bytes;
}
