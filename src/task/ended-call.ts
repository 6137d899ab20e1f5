import type { Outcome } from "../command/outcome.ts";
import type { HeldCall } from "./held-call.ts";
import { isTerminal, type Task } from "./task.ts";
import { outcomeOf } from "./task-outcome.ts";

export interface EndedCallOptions {
  readonly outcome: Outcome;
  /** The task it was, if it was one. */
  readonly taskId?: string;
  /** The record of a task that is nobody's but this call's: it goes when the answer has left. */
  readonly asideId?: string;
  /** A sentence for the caller: that it was joined to another run. */
  readonly note?: string | undefined;
  /** The run, where its record goes when its answer has left. */
  readonly call?: HeldCall;
  /** Makes a task of the run; undefined when that failed. */
  readonly handOut?: (call: HeldCall, reason: string) => Promise<Task | undefined>;
  readonly read: (taskId: string) => Promise<Task>;
  /** Removes the task of a result that was only set aside. */
  readonly remove: (taskId: string) => Promise<unknown>;
}

/**
 * A call that has ended. Until its answer has left, its result can still become a task; and where many wait, it does,
 * so that they wait on the disk.
 */
export class EndedCall {
  readonly kind = "ended";
  readonly taskId: string | undefined;
  readonly note: string | undefined;
  /** Whether a record has to go, or to stay, when the answer has left. */
  readonly isOnRecord: boolean;
  /** Let go of while it is set aside. */
  outcome: Outcome;
  readonly #options: Omit<EndedCallOptions, "outcome" | "call">;
  #call: HeldCall | undefined;
  #asideId: string | undefined;

  constructor({ outcome, call, ...options }: EndedCallOptions) {
    this.#options = options;
    this.taskId = options.taskId;
    this.note = options.note;
    this.outcome = outcome;
    this.#call = call;
    this.#asideId = options.asideId;
    this.isOnRecord = (options.taskId ?? options.asideId) !== undefined || call?.taskId !== undefined;
  }

  /** Puts the result on record, and lets go of it. What cannot be put there stays. */
  async setAside(): Promise<void> {
    const call = this.#call;
    if ((this.taskId ?? this.#asideId) !== undefined) return this.#letGo();
    if (call === undefined || this.#options.handOut === undefined || this.outcome.ending !== "completed") return;
    const task = await this.#options.handOut(call, "its client has yet to read the answers before it");
    if (task === undefined) return;
    await call.ended;
    this.#asideId = task.taskId;
    this.#call = undefined;
    this.#letGo();
  }

  #letGo(): void {
    this.outcome = undefined as unknown as Outcome;
  }

  async recall(): Promise<void> {
    const taskId = this.#asideId ?? this.taskId;
    if ((this.outcome as Outcome | undefined) !== undefined || taskId === undefined) return;
    const task = await this.#options.read(taskId);
    if (!isTerminal(task)) throw new Error("A result that was set aside has no end.");
    this.outcome = outcomeOf(task);
  }

  /** To be told whether the answer reached the client: if not, the result is kept as a task. */
  finish(isDelivered: boolean): void {
    const call = this.#call;
    if (this.#asideId !== undefined && isDelivered) void this.#options.remove(this.#asideId);
    if (call === undefined) return;
    const isWorthKeeping = !isDelivered && this.outcome.ending === "completed";
    const kept = isWorthKeeping ? this.#options.handOut?.(call, "its client went away before the answer") : undefined;
    void Promise.resolve(kept).finally(() => call.release());
  }
}
