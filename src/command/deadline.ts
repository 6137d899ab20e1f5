import type { Clock } from "../clock.ts";

/** A run's time limit. It stands still while a question is open: a person's time is not the command's. */
export class Deadline {
  readonly #clock: Clock;
  readonly #onOver: () => void;
  #leftMs: number;
  #since = 0;
  #asking = 0;
  #cancelTimer: (() => void) | undefined;
  #isCancelled = false;

  constructor(clock: Clock, ms: number, onOver: () => void) {
    this.#clock = clock;
    this.#onOver = onOver;
    this.#leftMs = ms;
    this.#goOn();
  }

  /** Stands still until the answer is there, or will not come. */
  async waitFor<T>(answer: () => Promise<T>): Promise<T> {
    this.#asking += 1;
    if (this.#asking === 1) this.#standStill();
    try {
      return await answer();
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#goOn();
    }
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#cancelTimer?.();
  }

  #standStill(): void {
    this.#cancelTimer?.();
    this.#leftMs -= this.#clock.monotonic() - this.#since;
  }

  #goOn(): void {
    if (this.#isCancelled) return;
    this.#since = this.#clock.monotonic();
    this.#cancelTimer = this.#clock.after(Math.max(0, this.#leftMs), this.#onOver);
  }
}
