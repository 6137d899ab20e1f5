import { type Clock, nextTurn, sleep } from "../../clock.ts";

/** What a piece of work may take while others wait for the lock; with its commit, and on a busy machine, it takes longer. */
const aimMs = 8;

/**
 * How much of a long work is done at once: as much as the piece before has shown to fit. Between two pieces it rests for
 * as long as one took: others who wait for the lock ask for it now and then, and have to find it free.
 */
export class PieceSize {
  readonly #clock: Clock;
  readonly #most: number;
  #count: number;
  #tookMs = 0;

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
    this.#count = Math.ceil(most / 5);
  }

  /** Does one piece, and learns from how long it took. */
  do<T>(work: (count: number) => T): T {
    const startedAt = this.#clock.monotonic();
    const done = work(this.#count);
    this.#tookMs = this.#clock.monotonic() - startedAt;
    const tookMs = Math.max(this.#tookMs, aimMs / 2);
    this.#count = Math.max(1, Math.min(this.#most, Math.round((this.#count * aimMs) / tookMs)));
    return done;
  }

  /** Whoever else wants something has their turn, in this process and in others. */
  async rest(): Promise<void> {
    await nextTurn();
    if (this.#tookMs > 0) await sleep(this.#clock, Math.min(this.#tookMs, 10 * aimMs));
  }
}
