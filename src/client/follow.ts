import { sleep, systemClock } from "../clock.ts";
import { Cancelled, TimedOut } from "../errors.ts";
import { cut } from "../wire/errors.ts";
import type { Answer, FollowOptions, Progress, Question, TaskState, ToolResult } from "./client.ts";
import { Detach } from "./detach.ts";
import { ConnectionError } from "./errors.ts";
import { defaultPollMs, nextPollMs } from "./poll.ts";
import { ProgressFilter } from "./progress.ts";
import { inTurn } from "./questions.ts";
import { isTerminal, type Road, type Snapshot, type Watcher } from "./road.ts";

/** The caller's wish to stop: its signal, its time limit, or something that makes going on senseless. */
export class Scope {
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
  readonly scope: Scope;
  readonly filter?: ProgressFilter;
  readonly first?: Snapshot;
}

/** Follows work to its end, cancels it when the caller gives up on it. */
export async function follow(road: Road, following: Following): Promise<ToolResult> {
  const { scope } = following;
  try {
    return await new Follower(road, following).run();
  } catch (error) {
    if (!scope.signal.aborted) throw error instanceof ConnectionError ? lost(road.taskId, error) : error;
    if (scope.mustCancel) await cancelSoon(road);
    throw scope.signal.reason;
  }
}

/** The caller has given up, so a server that cannot be told is not waited for long. */
export async function cancelSoon(road: Road): Promise<void> {
  const late = new AbortController();
  const stopClock = systemClock.after(cancelMs, () => late.abort(new Error("The server does not answer.")));
  await road.cancel(late.signal).catch(() => undefined);
  stopClock();
}

function lost(taskId: string, error: ConnectionError): ConnectionError {
  return new ConnectionError(
    `${error.message} What became of the task ${cut(taskId, 100)} is not known; ask for it again by its id.`,
    {
      isPassing: false,
      cause: error,
      ...(error.status !== undefined && { status: error.status }),
    },
  );
}

class Follower implements Watcher {
  readonly ask: ((question: Question) => Promise<Answer>) | undefined;
  readonly #road: Road;
  readonly #options: FollowOptions;
  readonly #scope: Scope;
  readonly #filter: ProgressFilter;
  #latest: Snapshot | undefined;
  #news: Snapshot | undefined;
  #wake: (() => void) | undefined;
  #isTold = false;
  #unchanged = 0;
  #shown = "";

  constructor(road: Road, { options, scope, filter, first }: Following) {
    this.#road = road;
    this.#options = options;
    this.#scope = scope;
    this.#filter = filter ?? new ProgressFilter(options.onProgress);
    this.#news = first;
    this.ask = options.onInput === undefined ? undefined : inTurn(options.onInput);
  }

  get signal(): AbortSignal {
    return this.#scope.signal;
  }

  async run(): Promise<ToolResult> {
    const stop = this.#road.watch(this);
    try {
      for (;;) {
        const snapshot = this.#take() ?? (await this.#look());
        const { status } = this.#show(snapshot);
        if (isTerminal(status)) return await this.#end(snapshot);
        if (status === "input_required") await this.#road.meet(snapshot, this);
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
      this.#scope.fail(error);
    }
  }

  onTold(isTold: boolean): void {
    if (this.#isTold && !isTold) this.#unchanged = 0;
    this.#isTold = isTold;
  }

  fail(error: unknown): void {
    this.#scope.fail(error);
  }

  #take(): Snapshot | undefined {
    const news = this.#news;
    this.#news = undefined;
    return news;
  }

  async #look(): Promise<Snapshot> {
    this.#options.onPoll?.();
    // The first look does not wait, so that the caller sees at once what it has come for.
    return await this.#road.look({ signal: this.signal, wait: this.#latest !== undefined });
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
    return snapshot.result ?? (await this.#road.result(snapshot, this.signal));
  }

  async #wait({ pollIntervalMs = this.#options.pollIntervalMs ?? defaultPollMs }: TaskState): Promise<void> {
    // A road that waits by itself is asked again at once, as long as something has changed.
    const isBusy = this.#road.isWaiting && this.#unchanged === 0 && this.#latest !== undefined;
    const waitMs = this.#road.isWaiting
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
