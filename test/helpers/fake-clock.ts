import type { FakeClock } from "../../src/testing/fake-clock.ts";
import { passRealMillisecond, realWorkEnds } from "./real-work.ts";

export { FakeClock } from "../../src/testing/fake-clock.ts";

/**
 * Runs everything that needs no time: microtasks, I/O that is ready, and `setImmediate` callbacks; and waits for
 * requests to the system.
 */
export async function turns(count = 8): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await new Promise(setImmediate);
    await realWorkEnds();
  }
}

/** How much time of the clock passes at most in a real millisecond. */
const fastestMs = 100;
/** The same while a socket is open. */
const fastestWithSocketMs = 50;

/** Advances the clock in steps of `stepMs` until the promise settles, and returns its value. */
export async function settled<T>(clock: FakeClock, promise: Promise<T>, stepMs = 10): Promise<T> {
  let isSettled = false;
  let sinceWaitMs = 0;
  void promise.finally(() => (isSettled = true)).catch(() => undefined);
  while (!isSettled) {
    await turns();
    if (isSettled) break;
    // A command of a test may look for a file now and then, by the system's clock.
    const hasSocket = process.getActiveResourcesInfo().includes("TCPSocketWrap");
    if (sinceWaitMs >= (hasSocket ? fastestWithSocketMs : fastestMs)) {
      sinceWaitMs = 0;
      await passRealMillisecond();
      await turns();
    }
    clock.advance(stepMs);
    sinceWaitMs += stepMs;
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
