import { type Clock, formatDuration } from "../clock.ts";
import { isStoreError, messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import { type Dispatcher, ticketOfLost } from "./dispatcher.ts";
import type { TaskStore } from "./store.ts";
import type { EnvironmentMarks } from "./task.ts";

export interface SweeperOptions {
  readonly store: TaskStore;
  /** Who is told of tasks that are to be run again. Default: nobody, where the store itself tells them. */
  readonly dispatcher?: Pick<Dispatcher, "offer">;
  readonly clock: Clock;
  readonly log: Logger;
  /** True for a worker on this machine whose process is certainly gone. */
  readonly isDead: (worker: string) => boolean;
  readonly leaseMs?: number;
  /** Tasks of this project are told when no worker may claim them. Default: none are. */
  readonly project?: string;
  /** What this process has of the variables that the project's code reads. */
  readonly environment?: () => EnvironmentMarks;
}

const deadCheckMs = 1_000;
const leaseCheckMs = 2_000;
const sweepMs = 60_000;
/** A worker with room claims a due task within a second. */
const claimableMs = 2_000;

/**
 * Interrupts tasks whose worker is dead, and removes expired results.
 *
 * A lease that has expired means a dead worker only if living workers were able to renew theirs. They are not while the
 * store is away, and not while this process or the machine is stopped; after a clock jump every lease looks expired until
 * its next renewal. So the sweeper declares no lease expired before one full lease has passed since an outage, a pause or
 * a clock jump, and before half a lease since its start. It cannot tell a worker that is cut off from the store from a
 * dead one: other workers run that worker's safe tasks again, and its writes are refused by their fence.
 * Results are not renewed: after a clock jump the store corrects the times at which they expire.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #leaseMs: number;
  #cancel: (() => void) | undefined;
  #isStopped = true;
  /** No lease is declared expired before this monotonic time. */
  #judgeFrom = 0;
  /** The monotonic time at which the store last answered a check. */
  #lastAnswerAt = 0;
  #lastLeaseCheck = 0;
  #lastUnclaimableCheck = Number.NEGATIVE_INFINITY;
  #lastSweep = Number.NEGATIVE_INFINITY;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? 30_000;
  }

  start(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    const { clock } = this.#options;
    const at = clock.monotonic();
    this.#judgeFrom = at + this.#leaseMs / 2;
    this.#lastAnswerAt = at;
    this.#lastLeaseCheck = at;
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
        .finally(() => this.#schedule(this.#checkEveryMs));
    });
  }

  get #checkEveryMs(): number {
    return Math.min(deadCheckMs, this.#leaseMs);
  }

  /** One round; what is due is done. */
  async check(): Promise<void> {
    const { store, clock } = this.#options;
    await this.interruptDead();
    await this.#putRight();
    // Read before the monotonic clock: after a pause between the two, leases are judged as of before the pause.
    const expiredBefore = store.now();
    const at = clock.monotonic();
    this.#noteGap(at);
    if (at >= this.#judgeFrom && at - this.#lastLeaseCheck >= Math.min(leaseCheckMs, this.#leaseMs)) {
      this.#lastLeaseCheck = at;
      this.#note(await store.interrupt(undefined, expiredBefore), "its lease ran out");
      const lapsed = await store.lapse();
      if (lapsed.length > 0)
        this.#options.log.info(`${lapsed.length} task${lapsed.length === 1 ? "" : "s"} ended: nobody answered`);
    }
    if (at - this.#lastUnclaimableCheck >= claimableMs) {
      this.#lastUnclaimableCheck = at;
      await this.markUnclaimable();
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

  /** Has tasks say that no worker may claim them, see `TaskStore.markUnclaimable`. */
  async markUnclaimable(): Promise<void> {
    const { store, project, environment } = this.#options;
    if (project !== undefined && environment !== undefined)
      await store.markUnclaimable({ project, environment: environment(), dueMs: claimableMs });
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

  /**
   * Postpones the judging of leases when the store answered no check for a third of a lease longer than usual: it was
   * away, this process was stopped, or a command blocked its event loop.
   */
  #noteGap(at: number): void {
    const gapMs = at - this.#lastAnswerAt;
    this.#lastAnswerAt = at;
    if (this.#isStopped || gapMs <= this.#checkEveryMs + this.#leaseMs / 3) return;
    this.#judgeFrom = Math.max(this.#judgeFrom, at + this.#leaseMs);
    this.#options.log.warn(
      `no lease was checked for ${formatDuration(gapMs)}, because the task store was away, this process was stopped, or a command blocked its event loop; tasks of other workers are not declared interrupted for the next ${formatDuration(this.#leaseMs)}`,
    );
  }

  #note(ids: readonly string[], why: string): void {
    for (const taskId of ids) this.#options.dispatcher?.offer(ticketOfLost(taskId));
    if (ids.length > 0) this.#options.log.warn(`${ids.length} task${ids.length === 1 ? "" : "s"} interrupted: ${why}`);
  }
}
