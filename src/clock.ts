import { performance as nodePerformance } from "node:perf_hooks";

/** Where time comes from, so that tests can move it. The only file that reads the clock or sets a timer. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that only grow, for measuring. */
  monotonic(): number;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(ms, 0), MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** How long the event loop has waited for something to do since this process began, in milliseconds. */
export function loopIdleMs(): number {
  return nodePerformance.eventLoopUtilization().idle;
}

/** Resolves after `ms`; rejects with the signal's reason when aborted first. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const onAbort = () => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** What a promise comes to, when it does so within this time; after that, what `late` gives or throws. */
export function within<T, L = undefined>(
  clock: Clock,
  ms: number,
  promise: Promise<T>,
  late?: () => L,
): Promise<T | L> {
  const over = Promise.withResolvers<void>();
  const cancel = clock.after(ms, over.resolve);
  return Promise.race([promise, over.promise.then(() => late?.() as L)]).finally(cancel);
}

/** Resolves when the event loop has come round. */
export function nextTurn(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(resolve, undefined));
}

let lastStamp = { ms: 0, text: "1970-01-01T00:00:00.000Z" };

/** The moment as people and protocols write it, e.g. 2026-07-28T12:00:00.000Z. Under load many ask for the same one. */
export function toTimestamp(ms: number): string {
  if (ms !== lastStamp.ms) lastStamp = { ms, text: new Date(ms).toISOString() };
  return lastStamp.text;
}

/** The minute of a moment, for people, e.g. 2026-07-28 12:00 UTC. */
export function toMinute(ms: number): string {
  return `${toTimestamp(ms).slice(0, 16).replace("T", " ")} UTC`;
}

/** A duration as a person would say it: 12 ms, 3.4 s, 2 min 5 s. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}
