/** An exact count of a caller's unfinished tasks, and the highest task number at that time. */
export interface LiveCount {
  readonly unfinished: number;
  readonly lastNumber: number;
}

/** A count is kept for so many callers. */
const maxCallers = 10_000;

/**
 * The last count of each caller's unfinished tasks, so that not every new task counts them again. Only a new row makes
 * one more of them, and numbers are never used twice: the last count plus the rows made since, whoever's and by whatever
 * process, is the most there can be.
 */
export class LiveCounts {
  readonly #counts = new Map<string, LiveCount>();

  get(caller: string): LiveCount | undefined {
    return this.#counts.get(caller);
  }

  /** Keeps a count. Call it only when the transaction that has counted is committed. */
  note(caller: string, count: LiveCount): void {
    if (this.#counts.size >= maxCallers && !this.#counts.has(caller)) this.#counts.clear();
    this.#counts.set(caller, count);
  }

  /** True if the caller certainly has fewer unfinished tasks than `limit`. */
  isBelow(caller: string, limit: number, lastNumber: number): boolean {
    const count = this.#counts.get(caller);
    return (
      count !== undefined && lastNumber >= count.lastNumber && count.unfinished + lastNumber - count.lastNumber < limit
    );
  }
}
