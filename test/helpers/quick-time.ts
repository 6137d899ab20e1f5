import { afterAll, beforeAll, vi } from "vitest";

/**
 * For the tests of a file: timers fire and clocks move as fast as the event loop turns. Whatever needs no time is done
 * first: 10 ms pass after each eight turns of the loop, so an answer of a server in the test's process takes less than
 * 20 ms of that time, on a busy machine too.
 */
export function passTimeQuickly(): void {
  let isOver = false;
  let passing: Promise<void> | undefined;
  beforeAll(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
    passing = pass();
  });
  afterAll(async () => {
    isOver = true;
    await passing;
    vi.useRealTimers();
  });

  async function pass(): Promise<void> {
    while (!isOver) {
      for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(10);
    }
  }
}
