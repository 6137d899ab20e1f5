import type { Clock } from "../clock.ts";

/** A wall clock that runs this far from the steady one has been set, or the machine has slept. */
const jumpMs = 2_000;

/**
 * Notices that the wall clock was set. What was written down before means another moment from then on: until that has
 * been put right, `now` goes on as if nothing had happened, so that nothing looks older than it is.
 */
export class JumpWatch {
  readonly #clock: Clock;
  #offset: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offset = this.#current();
  }

  /** By how much the clock was set since it was last put right; 0 when it was not. */
  get jumpedMs(): number {
    const moved = this.#current() - this.#offset;
    if (Math.abs(moved) > jumpMs) return moved;
    // A clock that is led back slowly has not jumped.
    this.#offset += moved;
    return 0;
  }

  /** The moment by which what was written before counts. */
  now(): number {
    return this.#clock.now() - this.jumpedMs;
  }

  /** What was written before has been put right by this much. */
  putRight(ms: number): void {
    this.#offset += ms;
  }

  #current(): number {
    return this.#clock.now() - this.#clock.monotonic();
  }
}
