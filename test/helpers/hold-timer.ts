import { onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/clock.ts";

/** Until the test ends, timers of exactly `ms` fire when the returned function is called, and not by themselves. */
export function holdTimer(ms: number): () => void {
  const after = systemClock.after.bind(systemClock);
  const held = new Set<() => void>();
  const spy = vi.spyOn(systemClock, "after").mockImplementation((wanted, callback) => {
    if (wanted !== ms) return after(wanted, callback);
    held.add(callback);
    return () => void held.delete(callback);
  });
  onTestFinished(() => spy.mockRestore());
  return () => {
    for (const callback of held) callback();
  };
}
