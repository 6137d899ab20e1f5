import type { HashBatch } from "../_pack/hash-batch.ts";
import type { FileState } from "../_pack/hash-file.ts";
import { toKey, type WholeFolder } from "./_tracked.ts";

/** A folder on its way to being recorded whole. */
export interface SeenFolder extends WholeFolder {
  isWhole: boolean;
}

/** A file that has to be read: new, or not what it was. */
export interface HeldFile {
  readonly seen: SeenFolder;
  /** Its name's bytes, one character each. */
  readonly key: string;
  readonly priority: number;
}

const maxBatchFiles = 128;
const maxBatchBytes = 16n * 1024n * 1024n;
const firstRoom = 256;

/**
 * Files that wait to be read, in columns: a hundred thousand of them take a few megabytes, where as many objects would
 * take several times that.
 */
export class Held {
  readonly #files: HeldFile[] = [];
  /** Size, time and inode of each. */
  #states = new BigInt64Array(3 * firstRoom);
  #bytes = 0;

  get length(): number {
    return this.#files.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(file: HeldFile, { size, mtimeNs, inode }: FileState): void {
    const at = 3 * this.#files.length;
    if (at === this.#states.length) this.#grow();
    this.#files.push(file);
    this.#states[at] = BigInt(size);
    this.#states[at + 1] = mtimeNs;
    this.#states[at + 2] = inode;
    this.#bytes += size;
  }

  /** Newest first, in batches that are done in a moment, unless one is a single large file. */
  *batches(): Generator<{ readonly files: readonly HeldFile[]; readonly batch: HashBatch }> {
    const order = this.#byNewest();
    for (let from = 0; from < order.length; ) {
      let bytes = 0n;
      let to = from;
      while (to < order.length && to - from < maxBatchFiles && bytes < maxBatchBytes)
        bytes += this.#states[3 * (order[to++] ?? 0)] ?? 0n;
      yield this.#batchOf(order.subarray(from, to));
      from = to;
    }
  }

  #batchOf(places: Uint32Array) {
    const files = Array.from(places, (at) => this.#files[at] as HeldFile);
    const states = new BigInt64Array(3 * places.length);
    for (const [at, place] of places.entries()) states.set(this.#states.subarray(3 * place, 3 * place + 3), 3 * at);
    return { files, batch: { paths: files.map(({ seen, key }) => `${toKey(seen.path)}/${key}`).join("\0"), states } };
  }

  /** Times as numbers: exact to a quarter of a microsecond, and much faster to compare. */
  #byNewest(): Uint32Array {
    const times = Float64Array.from(this.#files, (_, at) => Number(this.#states[3 * at + 1]));
    return Uint32Array.from(this.#files, (_, at) => at).sort((a, b) => (times[b] ?? 0) - (times[a] ?? 0) || a - b);
  }

  #grow(): void {
    const larger = new BigInt64Array(2 * this.#states.length);
    larger.set(this.#states);
    this.#states = larger;
  }
}
