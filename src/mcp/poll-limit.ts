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
  /** Those looked at longest ago first. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many tasks it remembers: those looked at within the last few seconds. */
  get remembered(): number {
    return this.#buckets.size;
  }

  async admit(caller: string, taskId: unknown): Promise<void> {
    // What is no text is no task's id, and is refused as such.
    const bucket = this.#bucketOf(`${caller} ${typeof taskId === "string" ? taskId.slice(0, 100) : ""}`);
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return;
    }
    if (bucket.waiting >= maxWaiting)
      throw new RequestError("busy", "This task is looked at too often; wait for its poll interval between two looks.");
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
    const bucket = this.#buckets.get(key) ?? { tokens: burst, at: now, waiting: 0 };
    bucket.tokens = tokensAt(bucket, now);
    bucket.at = now;
    this.#buckets.delete(key);
    this.#forgetFull(now);
    this.#buckets.set(key, bucket);
    return bucket;
  }

  /**
   * A bucket that is full again is as good as none; one that is not, and is the oldest, makes room only where there are
   * too many.
   */
  #forgetFull(now: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (tokensAt(bucket, now) < burst && this.#buckets.size < maxTracked) return;
      this.#buckets.delete(key);
    }
  }
}

function tokensAt({ tokens, at }: Bucket, now: number): number {
  return Math.min(burst, tokens + (now - at) / refillMs);
}
