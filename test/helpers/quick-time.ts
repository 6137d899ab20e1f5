import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, vi } from "vitest";

const limitMs = 60_000;
/** What is open while nothing is on its way. */
const idleResources = new Set(["PipeWrap", "TCPServerWrap", "Timeout", "Immediate"]);

/**
 * For the tests of a file: timers fire and clocks move as fast as the event loop turns. Whatever needs no time is done
 * first: 10 ms pass after each eight turns of the loop, and while a socket or thread is open not before a real millisecond, so an
 * answer of a server in the test's process takes little of that time, on a busy machine too. A test that takes more than a minute of it fails: a wait without an end
 * would otherwise only cost a moment.
 */
export function passTimeQuickly(): void {
  let isOver = false;
  let passing: Promise<void> | undefined;
  beforeAll(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
    passing = pass();
  });
  beforeEach(() => {
    const begun = performance.now();
    return () => {
      const tookMs = performance.now() - begun;
      if (tookMs > limitMs) throw new Error(`The test took ${tookMs} ms of the time that passes quickly.`);
    };
  });
  afterAll(async () => {
    isOver = true;
    await passing;
    vi.useRealTimers();
  });

  async function pass(): Promise<void> {
    while (!isOver) {
      for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
      // On a busy machine the system takes some milliseconds for what was sent on a socket, or is done by a thread.
      if (process.getActiveResourcesInfo().some((name) => !idleResources.has(name))) await wait(1);
      vi.advanceTimersByTime(10);
    }
  }
}
