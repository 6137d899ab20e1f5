import type { Clock } from "../clock.ts";

/** A wall clock that runs this far from the steady one has been set, or the machine has slept. */
const jumpMs = 2_000;

/**
 * The clock of a store on this machine. Notices that the wall clock was set. What was written down before means another moment from then on: until that has
 * been put right, `now` goes on as if nothing had happened, so that nothing looks older than it is.
 */
export class LocalClock {
  readonly #clock: Clock;
  #offset: number;
  #putting: Promise<number> | undefined;

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

  /**
   * Has what was written before put right, once for all who ask meanwhile; by how much the clock was set. `write` is
   * told that, and the moment that it is now.
   */
  putRight(write: (byMs: number, now: number) => Promise<void>): Promise<number> {
    this.#putting ??= this.#put(write).finally(() => (this.#putting = undefined));
    return this.#putting;
  }

  async #put(write: (byMs: number, now: number) => Promise<void>): Promise<number> {
    const byMs = this.jumpedMs;
    if (byMs === 0) return 0;
    await write(byMs, this.#clock.now());
    this.#offset += byMs;
    return byMs;
  }

  #current(): number {
    return this.#clock.now() - this.#clock.monotonic();
  }
}
