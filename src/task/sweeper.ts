import { type Clock, formatDuration } from "../clock.ts";
import { isStoreError, messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import { type Dispatcher, ticketOfLost } from "./dispatcher.ts";
import type { TaskStore } from "./store.ts";

export interface SweeperOptions {
  readonly store: TaskStore;
  /** Who is told of tasks that are to be run again. Default: nobody, where the store itself tells them. */
  readonly dispatcher?: Pick<Dispatcher, "offer">;
  readonly clock: Clock;
  readonly log: Logger;
  /** True for a worker on this machine whose process is certainly gone. */
  readonly isDead: (worker: string) => boolean;
  readonly leaseMs?: number;
}

const deadCheckMs = 1_000;
const leaseCheckMs = 2_000;
const sweepMs = 60_000;

/**
 * Finds what dead workers leave behind, and removes what has expired.
 *
 * Leases are wall-clock times, and wall clocks are set: after a jump, or right after a start, a living worker's lease
 * may look old until its next heartbeat. So leases are not judged before everyone alive has had time to renew. Results
 * have nobody who renews them: what a jump would take from their time, or add to it, is put right on record.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #leaseMs: number;
  #cancel: (() => void) | undefined;
  #isStopped = true;
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
        .catch(
          (error: unknown) =>
            void (isStoreError(error) || this.#options.log.error(`looking after tasks failed: ${messageOf(error)}`)),
        )
        .finally(() => this.#schedule(Math.min(deadCheckMs, this.#leaseMs)));
    });
  }

  /** One round; what is due is done. */
  async check(): Promise<void> {
    const { store, clock } = this.#options;
    await this.interruptDead();
    await this.#putRight();
    const at = clock.monotonic();
    if (at >= this.#judgeFrom && at - this.#lastLeaseCheck >= Math.min(leaseCheckMs, this.#leaseMs)) {
      this.#lastLeaseCheck = at;
      this.#note(await store.interrupt(), "its lease ran out");
      const lapsed = await store.lapse();
      if (lapsed.length > 0)
        this.#options.log.info(`${lapsed.length} task${lapsed.length === 1 ? "" : "s"} ended: nobody answered`);
    }
    if (at - this.#lastSweep < sweepMs) return;
    this.#lastSweep = at;
    await store.sweep();
  }

  /** Finds what processes of this machine that are certainly gone have left behind. */
  async interruptDead(): Promise<void> {
    const { store, isDead } = this.#options;
    for (const worker of await store.workers())
      if (isDead(worker)) this.#note(await store.interrupt(worker), "its worker died");
  }

  /**
   * After a jump everyone alive has a whole lease's time to renew, and what has ended keeps the time that it had left.
   */
  async #putRight(): Promise<void> {
    const { store, clock, log } = this.#options;
    const jumpedMs = await store.putRight();
    if (jumpedMs === 0) return;
    this.#judgeFrom = clock.monotonic() + this.#leaseMs;
    log.warn(
      `the clock was set ${jumpedMs > 0 ? "ahead" : "back"} by ${formatDuration(Math.abs(jumpedMs))}; results keep the time they had left`,
    );
  }

  #note(ids: readonly string[], why: string): void {
    for (const taskId of ids) this.#options.dispatcher?.offer(ticketOfLost(taskId));
    if (ids.length > 0) this.#options.log.warn(`${ids.length} task${ids.length === 1 ? "" : "s"} interrupted: ${why}`);
  }
}
