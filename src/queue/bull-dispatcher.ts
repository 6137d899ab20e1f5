import { type Clock, sleep, within } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Dispatcher } from "../task/dispatcher.ts";
import type { ClaimRequest, TaskStore } from "../task/store.ts";
import type { Task } from "../task/task.ts";
import type { BullQueue, BullWorker } from "./bull-queue.ts";

export interface BullDispatcherOptions {
  readonly store: Pick<TaskStore, "claim">;
  readonly openQueue: (onTrouble: (error: Error) => void) => Promise<BullQueue>;
  /** No two processes have the same: what one passes on is named by it. */
  readonly node: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Who hears nothing looks at the store itself this often: tickets may be lost. */
const lookMs = 5_000;
/** Of many that are offered at once so many wake somebody; who is full passes on that there is more. */
const ticketsAtOnce = 2;
/** While tickets come one after the other, the next ones wait this long, so that a few do for all that is made meanwhile. */
const paceMs = 20;
/** Who has been full for this long takes no more tickets, so that others get them. */
const fullMs = 200;
/** A queue that could not be reached is tried again after this time. */
const reachAgainMs = 1_000;
/** A queue that does not answer keeps nobody from ending for longer. */
const closeMs = 3_000;
/** How often the log is told of the same trouble. */
const tellMs = 60_000;

/**
 * Tasks are handed out by BullMQ, by tickets that say no more than that there is work: whoever takes one asks the store
 * whose turn it is, and goes on until nothing is left or it is full. So the order, the shares of the callers and the
 * fences are the store's alone, and an emptied queue costs a few seconds and nothing else.
 */
export class BullDispatcher implements Dispatcher {
  readonly #options: BullDispatcherOptions;
  readonly #listeners = new Set<() => void>();
  #queue: Promise<BullQueue | undefined> | undefined;
  #worker: Promise<BullWorker | undefined> | undefined;
  #reachFrom = 0;
  #offered: string[] = [];
  #adding: Promise<void> | undefined;
  #hasRoom = true;
  #isPaused = false;
  #cancelPause: (() => void) | undefined;
  /** Until then nothing was left, as far as anybody has said. */
  #dryUntil = 0;
  #lastTold: { readonly message: string; readonly at: number } | undefined;
  #passedOn = 0;
  #passedOnAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: BullDispatcherOptions) {
    this.#options = options;
  }

  offer(ticket: string, delayMs = 0): void {
    if (this.#isClosed) return;
    if (delayMs > 0) void this.#add([ticket], delayMs);
    else {
      // Who makes it may be who runs it: nothing has to come back from the queue for that.
      this.#wake();
      this.#offered.push(ticket);
      this.#adding ??= this.#addOffered().finally(() => (this.#adding = undefined));
    }
  }

  async next(request: ClaimRequest): Promise<Task | undefined> {
    const { store, clock } = this.#options;
    if (clock.monotonic() < this.#dryUntil) return undefined;
    // Where the queue could not be reached it may be by now.
    if (this.#listeners.size > 0) this.#worker ??= this.#openWorker();
    // Said while it looks, it counts for the next look.
    this.#dryUntil = clock.monotonic() + lookMs;
    const task = await store.claim(request).catch((error: unknown) => {
      this.#dryUntil = 0;
      throw error;
    });
    const { full = [], fullOfEndless = [] } = request.shares ?? {};
    const isForAll = full.length === 0 && fullOfEndless.length === 0;
    if (task !== undefined || !isForAll) this.#dryUntil = 0;
    return task;
  }

  onWork(listener: () => void): () => void {
    this.#listeners.add(listener);
    this.#worker ??= this.#openWorker();
    return () => void this.#listeners.delete(listener);
  }

  setRoom(hasRoom: boolean): void {
    if (hasRoom === this.#hasRoom) return;
    this.#hasRoom = hasRoom;
    this.#cancelPause?.();
    if (hasRoom) return void this.#setPaused(false);
    // There may be more, and others may have room.
    if (this.#dryUntil === 0) this.#passOn();
    this.#cancelPause = this.#options.clock.after(fullMs, () => void this.#setPaused(true));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelPause?.();
    this.#listeners.clear();
    await within(this.#options.clock, closeMs, this.#closeEnds());
  }

  async #closeEnds(): Promise<void> {
    await this.#adding;
    await (await this.#worker)?.close().catch((error: unknown) => this.#tell(error));
    await (await this.#queue)?.close().catch((error: unknown) => this.#tell(error));
  }

  /** A ticket has come. Must not throw: what is left of it would come again. */
  async #take(): Promise<void> {
    if (!this.#hasRoom) this.#passOn();
    this.#wake();
  }

  #wake(): void {
    this.#dryUntil = 0;
    for (const listener of this.#listeners) listener();
  }

  /** One that has yet to come wakes whoever has room by then: it is enough for all that is said meanwhile. */
  #passOn(): void {
    const { clock, node } = this.#options;
    if (clock.monotonic() - this.#passedOnAt < fullMs) return;
    this.#passedOnAt = clock.monotonic();
    // No two have one name: one that is just being taken would swallow the next.
    this.#passedOn += 1;
    void this.#add([`more-${node}-${this.#passedOn}`], fullMs);
  }

  async #addOffered(): Promise<void> {
    // Those of one turn go together.
    await Promise.resolve();
    while (this.#offered.length > 0) {
      const offered = this.#offered;
      this.#offered = [];
      await this.#add(offered.slice(-ticketsAtOnce), 0);
      if (this.#offered.length > 0 && !this.#isClosed) await sleep(this.#options.clock, paceMs);
    }
  }

  async #add(tickets: readonly string[], delayMs: number): Promise<void> {
    try {
      await (await this.#openQueue())?.add(tickets, delayMs);
    } catch (error) {
      this.#tell(error);
    }
  }

  #openQueue(): Promise<BullQueue | undefined> {
    const { openQueue, clock } = this.#options;
    if (this.#queue === undefined && (this.#isClosed || clock.monotonic() < this.#reachFrom))
      return Promise.resolve(undefined);
    this.#queue ??= openQueue((error) => this.#tell(error)).catch((error: unknown) => {
      this.#tell(error);
      this.#reachFrom = clock.monotonic() + reachAgainMs;
      this.#queue = undefined;
      return undefined;
    });
    return this.#queue;
  }

  /** Undefined when it cannot be now: whoever asks for a task next tries again. */
  async #openWorker(): Promise<BullWorker | undefined> {
    try {
      const queue = await this.#openQueue();
      const worker = await queue?.work(
        () => this.#take(),
        (error) => this.#tell(error),
      );
      if (worker === undefined) this.#worker = undefined;
      else if (this.#isPaused) await worker.pause();
      return worker;
    } catch (error) {
      this.#tell(error);
      this.#worker = undefined;
      return undefined;
    }
  }

  async #setPaused(isPaused: boolean): Promise<void> {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    const worker = await this.#worker;
    if (this.#isClosed || isPaused !== this.#isPaused) return;
    if (isPaused) await worker?.pause().catch((error: unknown) => this.#tell(error));
    else worker?.resume();
  }

  /** The queue is a courtesy: without it every worker looks for itself. */
  #tell(error: unknown): void {
    const message = messageOf(error);
    const at = this.#options.clock.monotonic();
    if (this.#isClosed || (this.#lastTold?.message === message && at - this.#lastTold.at < tellMs)) return;
    this.#lastTold = { message, at };
    this.#options.log.warn(
      `the queue cannot be used (${message}); until it can, workers look for tasks every ${lookMs / 1000} s`,
    );
  }
}
