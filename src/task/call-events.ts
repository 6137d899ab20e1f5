import type { Clock } from "../clock.ts";
import type { CallRequest, Timing } from "./call-request.ts";
import type { Inline } from "./decisions.ts";
import type { HeldCall } from "./held-call.ts";
import type { Worker } from "./worker.ts";

/** What can happen while somebody waits for a call. */
export type CallEvent = "ended" | "asked" | "long" | "late" | "cancelled" | "lost" | "leaving";

/** Which events make a task of a running call, and why. */
export const handOutReasons: Partial<Record<CallEvent, (decision: Inline) => string | undefined>> = {
  late: (decision) => decision.reason,
  lost: () => "its client went away",
  leaving: () => "its server was told to stop",
  asked: () => "it asked a question",
  long: ({ deferAs }) => (deferAs === "task" ? "its server has made a task of it" : undefined),
};

interface Listening {
  readonly mail: Mailbox;
  readonly worker: Worker;
  readonly clock: Clock;
  readonly timing: () => Timing;
}

/** Everything that can end the wait from outside. */
export function listenFor(
  request: CallRequest,
  decision: Inline,
  { mail, worker, clock, timing }: Listening,
): () => void {
  const { gone, dropped, watcher } = request;
  const cancelLate = startDeferralTimer(request, decision, { mail, clock });
  const onGone = () => mail.put(request.isLost() ? "lost" : "cancelled");
  const onDropped = () => mail.put("lost");
  const onLeaving = () => mail.put("leaving");
  if (worker.isStopped) onLeaving();
  const stopListening = worker.onLeaving(onLeaving);
  if (gone.aborted) onGone();
  else if (dropped?.aborted === true) onDropped();
  gone.addEventListener("abort", onGone, { once: true });
  dropped?.addEventListener("abort", onDropped, { once: true });
  let cancelBeat: (() => void) | undefined;
  const { heartbeatMs } = decision;
  const beat = () => {
    cancelBeat = clock.after(heartbeatMs ?? 0, () => {
      watcher.beat(timing());
      beat();
    });
  };
  if (heartbeatMs !== undefined) beat();
  return () => {
    cancelLate?.();
    cancelBeat?.();
    stopListening();
    gone.removeEventListener("abort", onGone);
    dropped?.removeEventListener("abort", onDropped);
  };
}

/**
 * Adds "late" to the queue when the time for an inline answer is up, counted from the arrival of the request. A request
 * that is past its time already (its command blocked the event loop, or a search in the store took long) gets the event
 * in this tick, after "ended" if its run has ended by then. Returns a function that cancels the timer.
 */
function startDeferralTimer(
  { arrivedAt }: CallRequest,
  { deferAfterMs }: Inline,
  { mail, clock }: Pick<Listening, "mail" | "clock">,
): (() => void) | undefined {
  if (deferAfterMs === undefined) return undefined;
  const elapsedMs = arrivedAt === undefined ? 0 : clock.monotonic() - arrivedAt;
  if (elapsedMs < deferAfterMs) return clock.after(deferAfterMs - elapsedMs, () => mail.put("late"));
  queueMicrotask(() => mail.put("late"));
  return undefined;
}

/** Events in the order they came, for one reader. */
export class Mailbox {
  readonly #events: CallEvent[] = [];
  #waiting: ((event: CallEvent) => void) | undefined;

  put(event: CallEvent): void {
    const reader = this.#waiting;
    this.#waiting = undefined;
    if (reader === undefined) this.#events.push(event);
    else reader(event);
  }

  next(): Promise<CallEvent> {
    const event = this.#events.shift();
    return event !== undefined
      ? Promise.resolve(event)
      : new Promise((resolve) => {
          this.#waiting = resolve;
        });
  }
}

/** Rings for whoever listens to a task that takes long, as its server says: now or later. */
export class Bells {
  readonly #rung = new Set<string>();
  readonly #listeners = new Map<string, Set<() => void>>();

  /** Beside who waits for the call itself. */
  pass(event: CallEvent, call: HeldCall, mail: Mailbox): void {
    mail.put(event);
    if (event === "long") this.#ring(call);
  }

  #ring({ taskId, ended }: Pick<HeldCall, "taskId" | "ended">): void {
    if (taskId === undefined) return;
    this.#rung.add(taskId);
    void ended.then(() => this.#rung.delete(taskId));
    for (const listener of this.#listeners.get(taskId) ?? []) listener();
  }

  listen(taskId: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(taskId) ?? new Set();
    this.#listeners.set(taskId, listeners.add(listener));
    if (this.#rung.has(taskId)) listener();
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(taskId);
    };
  }
}
