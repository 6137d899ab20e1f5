import { sleep, systemClock } from "../../clock.ts";
import { Cancelled, TimedOut } from "../../errors.ts";
import { ConnectionError, cut } from "../../wire/peer-errors.ts";
import type { Answer, FollowOptions, Progress, Question, TaskState, ToolResult } from "../client.ts";
import { defaultPollMs, nextPollMs } from "../connection/pauses.ts";
import { Detach } from "../detach.ts";
import { inTurn } from "./asked-questions.ts";
import { isTerminal, type RemoteTask, type Snapshot, type Watcher } from "./remote-task.ts";
import { ProgressFilter } from "./reported-progress.ts";

/** What ends the waiting: the caller's signal, its time limit, or something that makes going on senseless. */
export class FollowLimits {
  readonly #stop = new AbortController();
  readonly #release: (() => void)[] = [];
  #mustCancel = false;

  constructor({ signal, timeoutMs }: Pick<FollowOptions, "signal" | "timeoutMs">) {
    if (signal?.aborted) this.#end(signal.reason, !(signal.reason instanceof Detach));
    const onAbort = () => this.#end(signal?.reason, !(signal?.reason instanceof Detach));
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#release.push(() => signal?.removeEventListener("abort", onAbort));
    if (timeoutMs !== undefined && Number.isFinite(timeoutMs))
      this.#release.push(systemClock.after(timeoutMs, () => this.#end(new TimedOut(timeoutMs / 1000), true)));
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether the work itself is to be stopped. */
  get mustCancel(): boolean {
    return this.#mustCancel;
  }

  /** Ends the waiting; a task is left alone. */
  fail(error: unknown): void {
    this.#end(error, false);
  }

  close(): void {
    for (const release of this.#release) release();
  }

  #end(reason: unknown, mustCancel: boolean): void {
    if (this.#stop.signal.aborted) return;
    this.#mustCancel = mustCancel;
    this.#stop.abort(reason);
  }
}

export interface Following {
  readonly options: FollowOptions;
  readonly limits: FollowLimits;
  readonly filter?: ProgressFilter;
  readonly first?: Snapshot;
}

/** Follows work to its end, cancels it when the caller gives up on it. */
export async function follow(task: RemoteTask, following: Following): Promise<ToolResult> {
  const { limits } = following;
  try {
    return await new Follower(task, following).run();
  } catch (error) {
    const isLost = error instanceof ConnectionError;
    const unknown = `What became of the task ${cut(task.taskId, 100)} is not known; ask for it again by its id.`;
    if (!limits.signal.aborted) throw isLost ? toDoubt(error, unknown) : error;
    if (limits.mustCancel) await cancelSoon(task);
    throw limits.signal.reason;
  }
}

/** The caller has given up, so a server that cannot be told is not waited for long. */
export async function cancelSoon(task: RemoteTask): Promise<void> {
  const late = new AbortController();
  const stopClock = systemClock.after(cancelMs, () => late.abort(new Error("The server does not answer.")));
  await task.cancel(late.signal).catch(() => undefined);
  stopClock();
}

/** A connection that is lost while something was done there: nobody knows what became of it. */
export function toDoubt(error: ConnectionError, sentence: string): ConnectionError {
  return new ConnectionError(`${error.message} ${sentence}`, {
    isPassing: false,
    cause: error,
    ...(error.status !== undefined && { status: error.status }),
  });
}

class Follower implements Watcher {
  readonly ask: ((question: Question) => Promise<Answer>) | undefined;
  readonly #task: RemoteTask;
  readonly #options: FollowOptions;
  readonly #limits: FollowLimits;
  readonly #filter: ProgressFilter;
  #latest: Snapshot | undefined;
  #news: Snapshot | undefined;
  #wake: (() => void) | undefined;
  #isTold = false;
  #unchanged = 0;
  #shown = "";

  constructor(task: RemoteTask, { options, limits, filter, first }: Following) {
    this.#task = task;
    this.#options = options;
    this.#limits = limits;
    this.#filter = filter ?? new ProgressFilter(options.onProgress);
    this.#news = first;
    this.ask = options.onInput === undefined ? undefined : inTurn(options.onInput);
  }

  get signal(): AbortSignal {
    return this.#limits.signal;
  }

  async run(): Promise<ToolResult> {
    const stop = this.#task.watch(this);
    try {
      for (;;) {
        const snapshot = this.#take() ?? (await this.#look());
        const { status } = this.#show(snapshot);
        if (isTerminal(status)) return await this.#end(snapshot);
        if (status === "input_required") await this.#task.answerAsked(snapshot, this);
        if (this.#news === undefined) await this.#wait(snapshot.state);
      }
    } finally {
      stop();
    }
  }

  onNews(snapshot: Snapshot): void {
    this.#news = snapshot;
    this.#wake?.();
  }

  onProgress(progress: Progress | undefined): void {
    try {
      this.#filter.tell("notification", progress);
    } catch (error) {
      // The caller's own callback threw; there is nobody else to tell.
      this.#limits.fail(error);
    }
  }

  onTold(isTold: boolean): void {
    if (this.#isTold && !isTold) this.#unchanged = 0;
    this.#isTold = isTold;
  }

  fail(error: unknown): void {
    this.#limits.fail(error);
  }

  #take(): Snapshot | undefined {
    const news = this.#news;
    this.#news = undefined;
    return news;
  }

  async #look(): Promise<Snapshot> {
    this.#options.onPoll?.();
    // The first look does not wait, so that the caller sees at once what it has come for.
    return await this.#task.look({ signal: this.signal, wait: this.#latest !== undefined });
  }

  #show(snapshot: Snapshot): TaskState {
    const { state } = snapshot;
    const shown = JSON.stringify([state.status, state.statusMessage]);
    this.#unchanged = shown === this.#shown ? this.#unchanged + 1 : 0;
    if (shown !== this.#shown) this.#options.onTask?.(state);
    this.#shown = shown;
    this.#latest = snapshot;
    if (!isTerminal(state.status)) this.#filter.tell("status", snapshot.progress);
    return state;
  }

  async #end(snapshot: Snapshot): Promise<ToolResult> {
    if (snapshot.error !== undefined) throw snapshot.error;
    if (snapshot.state.status === "cancelled") throw new Cancelled(`The task ${snapshot.state.taskId} was cancelled.`);
    return snapshot.result ?? (await this.#task.result(snapshot, this.signal));
  }

  async #wait({ pollIntervalMs = this.#options.pollIntervalMs ?? defaultPollMs }: TaskState): Promise<void> {
    // A look that waits by itself is asked again at once, as long as something has changed.
    const isBusy = this.#task.isWaiting && this.#unchanged === 0 && this.#latest !== undefined;
    const waitMs = this.#task.isWaiting
      ? isBusy
        ? 0
        : minGapMs
      : nextPollMs({ intervalMs: pollIntervalMs, unchanged: this.#unchanged, isTold: this.#isTold });
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    try {
      await sleep(systemClock, waitMs, AbortSignal.any([this.signal, woken.signal]));
    } catch {
      this.signal.throwIfAborted();
    } finally {
      this.#wake = undefined;
    }
  }
}

const cancelMs = 5_000;
/** Between two looks that wait by themselves and yet come back without news. */
const minGapMs = 500;
