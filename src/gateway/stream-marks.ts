import type { StreamMark } from "../client/connection/http-link.ts";
import { type Clock, sleep } from "../clock.ts";
import type { Id } from "../wire/in-flight.ts";

/** A request whose stream can be taken up from here. */
export interface LeftStream {
  readonly id: Id;
  readonly mark: StreamMark;
}

/** Not more often is written down how far a stream has come; what comes again after a crash is heard twice. */
const paceMs = 1_000;

/** Keeps how far the stream of a call has come. */
export class StreamMarks {
  readonly #keep: (stream: LeftStream) => Promise<void>;
  readonly #clock: Clock;
  #isOver = false;
  /** There only where something is kept. */
  #pause: AbortController | undefined;
  #latest: LeftStream | undefined;
  #keeping: Promise<void> | undefined;
  /** One was kept. */
  hasOne = false;

  constructor(keep: (stream: LeftStream) => Promise<void>, clock: Clock) {
    this.#keep = keep;
    this.#clock = clock;
  }

  heard(stream: LeftStream): void {
    if (this.#isOver) return;
    this.#latest = stream;
    this.#keeping ??= this.#keepAll().finally(() => (this.#keeping = undefined));
  }

  /** Resolves when nothing more is written; undefined where nothing is. */
  stop(): Promise<void> | undefined {
    this.#isOver = true;
    this.#pause?.abort();
    return this.#keeping;
  }

  async #keepAll(): Promise<void> {
    const pause = new AbortController();
    this.#pause = pause;
    while (this.#latest !== undefined && !this.#isOver) {
      const stream = this.#latest;
      this.#latest = undefined;
      // A task that is no longer ours is told so elsewhere.
      await this.#keep(stream).then(
        () => (this.hasOne = true),
        () => undefined,
      );
      await sleep(this.#clock, paceMs, pause.signal).catch(() => undefined);
    }
  }
}
