import type { Clock } from "../clock.ts";

/** Measures how long a run waits for a person: that time is not the command's. */
export class AskedTime {
  readonly #clock: Clock;
  #open = 0;
  #openedAt = 0;
  #endedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Waits for an answer. Questions that are open at the same time count once. */
  async wait<T>(answer: () => Promise<T>): Promise<T> {
    this.#open += 1;
    if (this.#open === 1) this.#openedAt = this.#clock.monotonic();
    try {
      return await answer();
    } finally {
      this.#open -= 1;
      if (this.#open === 0) this.#endedMs += this.#clock.monotonic() - this.#openedAt;
    }
  }

  /** Milliseconds in which at least one question was open, until `now` of the monotonic clock. */
  until(now: number): number {
    return this.#endedMs + (this.#open === 0 ? 0 : Math.max(0, now - this.#openedAt));
  }
}
