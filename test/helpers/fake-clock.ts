import type { FakeClock } from "../../src/testing/fake-clock.ts";

export { FakeClock } from "../../src/testing/fake-clock.ts";

/** Runs everything that needs no time: microtasks, I/O that is ready, and `setImmediate` callbacks. */
export async function turns(count = 8): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

/** Advances the clock in steps of `stepMs` until the promise settles, and returns its value. */
export async function settled<T>(clock: FakeClock, promise: Promise<T>, stepMs = 10): Promise<T> {
  let isSettled = false;
  void promise.finally(() => (isSettled = true)).catch(() => undefined);
  while (!isSettled) {
    await turns();
    if (!isSettled) clock.advance(stepMs);
  }
  return await promise;
}

/** Advances the clock by `ms`, at most 10 s at a time, and runs what is due after each step. */
export async function pass(clock: FakeClock, ms: number): Promise<void> {
  const end = clock.now() + ms;
  while (clock.now() < end) {
    clock.advance(Math.min(10_000, end - clock.now()));
    await turns();
  }
}
