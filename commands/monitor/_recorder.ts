import { maxRowsAtOnce, maxWriteMs, whyNotStored } from "../_pack/database.ts";
import { type HashedBatch, hashBatch } from "../_pack/hash-batch.ts";
import type { FileState } from "../_pack/hash-file.ts";
import { type HashPool, openHashPool } from "../_pack/hash-pool.ts";
import { joinBytes } from "../_pack/paths.ts";
import { createPace } from "../_pack/walk.ts";
import { Held, type HeldFile, type SeenFolder } from "./_held.ts";
import type { SyncResults } from "./_results.ts";
import { fromKey, type ReadBatch, type Tracked } from "./_tracked.ts";

/** So many are held, at most, to be read newest first. */
const maxHeld = 100_000;
/** As much as this is read sooner than threads have started. */
const fewFiles = 2_000;
const fewBytes = 16 * 1024 * 1024;

export interface RecorderOptions {
  readonly tracked: Tracked;
  readonly results: SyncResults;
  readonly signal: AbortSignal;
  /** Told as often as something was read. */
  readonly onRead: () => void;
}

/** Holds the files that have to be read, reads them, and records what it read, a few hundred at a time. */
export class Recorder {
  readonly #options: RecorderOptions;
  #pool: HashPool | undefined;
  #held = new Held();
  #seen: SeenFolder[] = [];
  #unwritten: ReadBatch[] = [];
  #unwrittenSince = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#held.length >= maxHeld;
  }

  hold(file: HeldFile, state: FileState): void {
    this.#held.push(file, state);
  }

  /** A folder that is recorded as whole when all of its files are. */
  see(folder: SeenFolder): void {
    this.#seen.push(folder);
  }

  async close(): Promise<void> {
    await this.#pool?.close();
  }

  /** Reads what is held, newest first, in as many threads as there are processors. */
  async readHeld(): Promise<void> {
    const held = this.#held;
    this.#held = new Held();
    if (held.length > fewFiles || held.bytes > fewBytes) await this.#readInThreads(held);
    else await this.#readHere(held);
    this.#write();
    this.#markWhole();
    this.#options.onRead();
  }

  async #readHere(held: Held): Promise<void> {
    const pace = createPace(this.#options.signal);
    for (const { files, batch } of held.batches()) {
      this.#take(files, hashBatch(batch));
      if (pace.isOver()) await pace.giveWay();
    }
  }

  async #readInThreads(held: Held): Promise<void> {
    this.#pool ??= openHashPool(this.#options.signal);
    const pool = this.#pool;
    const running = new Set<Promise<void>>();
    const failures: unknown[] = [];
    for (const { files, batch } of held.batches()) {
      if (running.size >= pool.width) await Promise.race(running);
      this.#options.signal.throwIfAborted();
      if (failures.length > 0) throw failures[0];
      const work: Promise<void> = pool
        .hash(batch)
        .then((hashed) => this.#take(files, hashed))
        .finally(() => running.delete(work));
      work.catch((error: unknown) => failures.push(error));
      running.add(work);
    }
    await Promise.all(running);
    if (failures.length > 0) throw failures[0];
  }

  /**
   * Keeps a batch as it came until it is written: values made for each of a hundred thousand files would crowd the
   * memory.
   */
  #take(files: readonly HeldFile[], hashed: HashedBatch): void {
    for (const at of hashed.changed) (files[at] as HeldFile).seen.isWhole = false;
    for (const [at, reason] of hashed.failures) {
      const { seen, key } = files[at] as HeldFile;
      seen.isWhole = false;
      this.#options.results.fail(joinBytes(seen.path, fromKey(key)), reason);
    }
    if (this.#unwritten.length === 0) this.#unwrittenSince = performance.now();
    this.#unwritten.push({ files, hashed });
    const rows = this.#unwritten.reduce((sum, batch) => sum + batch.files.length, 0);
    if (rows >= maxRowsAtOnce || performance.now() - this.#unwrittenSince > maxWriteMs) this.#write();
    this.#options.onRead();
  }

  /** A disk without room fails the files it has no room for, not the run. */
  #write(): void {
    const batches = this.#unwritten;
    this.#unwritten = [];
    if (batches.length === 0) return;
    try {
      const { rows, bytes } = this.#options.tracked.put(batches, Date.now());
      this.#options.results.update(rows);
      this.#options.results.counts.bytesRead += bytes;
    } catch (error) {
      const reason = whyNotStored(error);
      if (reason === undefined) throw error;
      this.#seen = [];
      for (const { files, hashed } of batches) {
        const failed = new Set(hashed.failures.map(([at]) => at));
        for (const [at, { seen, key }] of files.entries()) {
          if (!failed.has(at))
            this.#options.results.fail(
              joinBytes(seen.path, fromKey(key)),
              `it was read but could not be recorded: ${reason}`,
            );
        }
      }
    }
  }

  /** Next time, one look at a folder is enough. */
  #markWhole(): void {
    const whole = this.#seen.filter(({ isWhole }) => isWhole);
    this.#seen = [];
    try {
      this.#options.tracked.markWhole(whole);
    } catch (error) {
      if (whyNotStored(error) === undefined) throw error; // Without room for it, the next run looks closer.
    }
  }
}
