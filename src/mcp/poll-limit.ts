import { type Clock, sleep } from "../clock.ts";
import { RequestError } from "../errors.ts";

/** As many looks at one task may come at once. */
const burst = 50;
/** And after that, one in this time. */
const refillMs = 50;
/** How many may be kept waiting before the next is refused. */
const maxWaiting = 20;
const maxTracked = 10_000;

interface Bucket {
  tokens: number;
  at: number;
  waiting: number;
}

/** Slows clients that look at a task far more often than they were told to, and refuses those that go on. */
export class PollLimit {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async admit(caller: string, taskId: unknown): Promise<void> {
    // What is no text is no task's id, and is refused as such.
    const bucket = this.#bucketOf(`${caller} ${typeof taskId === "string" ? taskId.slice(0, 100) : ""}`);
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return;
    }
    if (bucket.waiting >= maxWaiting) throw new RequestError("busy", "This task is looked at too often; wait for its poll interval between two looks.");
    bucket.waiting += 1;
    bucket.tokens -= 1;
    try {
      await sleep(this.#clock, Math.ceil(-bucket.tokens * refillMs));
    } finally {
      bucket.waiting -= 1;
    }
  }

  #bucketOf(key: string): Bucket {
    const now = this.#clock.monotonic();
    const known = this.#buckets.get(key);
    const bucket = known ?? { tokens: burst, at: now, waiting: 0 };
    bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.at) / refillMs);
    bucket.at = now;
    if (known === undefined) {
      this.#makeRoom();
      this.#buckets.set(key, bucket);
    }
    return bucket;
  }

  #makeRoom(): void {
    if (this.#buckets.size < maxTracked) return;
    const [oldest] = this.#buckets.keys();
    if (oldest !== undefined) this.#buckets.delete(oldest);
  }
}
