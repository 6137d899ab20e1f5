import type { Clock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { TaskStore } from "./store.ts";

export interface SweeperOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** True for a worker on this machine whose process is certainly gone. */
  readonly isDead: (worker: string) => boolean;
  readonly leaseMs?: number;
}

const deadCheckMs = 1_000;
const leaseCheckMs = 5_000;
const sweepMs = 60_000;
/** A wall clock that runs this far from the steady one has been set. */
const jumpMs = 2_000;

/**
 * Finds what dead workers leave behind, and removes what has expired.
 *
 * Leases are wall-clock times, and wall clocks are set: after a jump, or right after a start, a living worker's lease may look
 * old until its next heartbeat. So leases are not judged before everyone alive has had time to renew.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #leaseMs: number;
  #cancel: (() => void) | undefined;
  #isStopped = true;
  #offset = 0;
  #judgeFrom = 0;
  #lastLeaseCheck = 0;
  #lastSweep = Number.NEGATIVE_INFINITY;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? 30_000;
  }

  start(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    const { clock } = this.#options;
    this.#offset = clock.now() - clock.monotonic();
    this.#judgeFrom = clock.monotonic() + this.#leaseMs / 2;
    this.#lastLeaseCheck = clock.monotonic();
    this.#schedule(0);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }

  #schedule(ms: number): void {
    if (this.#isStopped) return;
    this.#cancel = this.#options.clock.after(ms, () => {
      this.check()
        .catch((error: unknown) => this.#options.log.error(`looking after tasks failed: ${messageOf(error)}`))
        .finally(() => this.#schedule(Math.min(deadCheckMs, this.#leaseMs)));
    });
  }

  /** One round; what is due is done. */
  async check(): Promise<void> {
    const { store, clock } = this.#options;
    await this.interruptDead();
    this.#noticeJump();
    const at = clock.monotonic();
    if (at >= this.#judgeFrom && at - this.#lastLeaseCheck >= Math.min(leaseCheckMs, this.#leaseMs)) {
      this.#lastLeaseCheck = at;
      this.#note(await store.interrupt({ before: clock.now() }, clock.now()), "its lease ran out");
    }
    if (at - this.#lastSweep < sweepMs) return;
    this.#lastSweep = at;
    await store.sweep(clock.now());
  }

  /** Finds what processes of this machine that are certainly gone have left behind. */
  async interruptDead(): Promise<void> {
    const { store, clock, isDead } = this.#options;
    for (const worker of await store.workers()) if (isDead(worker)) this.#note(await store.interrupt({ worker }, clock.now()), "its worker died");
  }

  #noticeJump(): void {
    const { clock } = this.#options;
    const offset = clock.now() - clock.monotonic();
    if (Math.abs(offset - this.#offset) > jumpMs) this.#judgeFrom = clock.monotonic() + this.#leaseMs;
    this.#offset = offset;
  }

  #note(ids: readonly string[], why: string): void {
    if (ids.length > 0) this.#options.log.warn(`${ids.length} task${ids.length === 1 ? "" : "s"} interrupted: ${why}`);
  }
}
