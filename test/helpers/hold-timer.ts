import { onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/clock.ts";

/** Timers of exactly `ms` fire when the returned function is called, and not before; later ones are as always. */
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
    spy.mockRestore();
    for (const callback of held) callback();
  };
}
