import type { Clock } from "../../clock.ts";

/** What a piece of work may take while others wait for the lock; with its commit, and on a busy machine, it takes longer. */
const aimMs = 8;

/** How much of a long work is done at once: as much as the piece before has shown to fit. */
export class PieceSize {
  readonly #clock: Clock;
  readonly #most: number;
  #count: number;

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
    this.#count = Math.ceil(most / 5);
  }

  /** Does one piece, and learns from how long it took. */
  do<T>(work: (count: number) => T): T {
    const startedAt = this.#clock.monotonic();
    const done = work(this.#count);
    const tookMs = Math.max(this.#clock.monotonic() - startedAt, aimMs / 2);
    this.#count = Math.max(1, Math.min(this.#most, Math.round((this.#count * aimMs) / tookMs)));
    return done;
  }
}
