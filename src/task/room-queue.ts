import { type Clock, sleep, within } from "../clock.ts";
import type { Created } from "./store.ts";

/** How long a create waits for one of its caller's tasks to end. */
const maxWaitMs = 5_000;
const retryMs = 100;

/** The creates of callers who are at their limit. Of each caller only the first in line asks the store again. */
export class RoomQueue {
  readonly #clock: Clock;
  /** Settles when the last in a caller's line has its result. */
  readonly #last = new Map<string, Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Repeats `create` until it is not full, for at most 5 s; `full` then. Stops early when `leaving` is aborted. */
  async create(caller: string, create: () => Promise<Created>, leaving: AbortSignal): Promise<Created> {
    const endsAt = this.#clock.monotonic() + maxWaitMs;
    const before = this.#last.get(caller) ?? Promise.resolve();
    const created = within(this.#clock, maxWaitMs, before).then(() => this.#retry(create, endsAt, leaving));
    const settled = created.catch(() => undefined);
    this.#last.set(caller, settled);
    try {
      return await created;
    } finally {
      if (this.#last.get(caller) === settled) this.#last.delete(caller);
    }
  }

  async #retry(create: () => Promise<Created>, endsAt: number, leaving: AbortSignal): Promise<Created> {
    for (;;) {
      const created = await create();
      const leftMs = endsAt - this.#clock.monotonic();
      if (created.kind !== "full" || leftMs <= 0 || leaving.aborted) return created;
      await sleep(this.#clock, Math.min(retryMs, leftMs), leaving).catch(() => undefined);
    }
  }
}
