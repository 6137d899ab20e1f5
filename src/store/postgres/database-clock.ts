import type { Clock } from "../../clock.ts";

/** Clocks of two machines drift apart by some milliseconds in this time. */
const measureEveryMs = 60_000;

/** The database's clock, as nearly as it is known here: measured at times, and steady in between. */
export class DatabaseClock {
  readonly #clock: Clock;
  #offset: number | undefined;
  #measuredAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Before it was ever measured, the machine's own. */
  now(): number {
    return this.#offset === undefined ? this.#clock.now() : Math.round(this.#clock.monotonic() + this.#offset);
  }

  get isOld(): boolean {
    return this.#clock.monotonic() - this.#measuredAt > measureEveryMs;
  }

  /** What `read` gives was so in the middle between asking and hearing. */
  async measure(read: () => Promise<number | undefined>): Promise<void> {
    const askedAt = this.#clock.monotonic();
    this.#measuredAt = askedAt;
    const there = await read();
    if (there !== undefined) this.#offset = there - (askedAt + this.#clock.monotonic()) / 2;
  }
}
