import type { Clock } from "../clock.ts";
import { system } from "./system.ts";

interface MemoryWatch {
  readonly maxMb: number;
  readonly clock: Clock;
  readonly onTooMuch: () => void;
}

/**
 * Says once when a process holds more than so many megabytes; returns what ends the watch. From outside, because one
 * that is busy does not watch itself, and limits of the heap do not bound Buffers.
 */
export function watchMemory(pid: number, { maxMb, clock, onTooMuch }: MemoryWatch): () => void {
  let isOver = false;
  let cancel = () => {};
  const look = async () => {
    const bytes = (await system.memoryOf(pid)) ?? 0;
    if (isOver) return;
    if (bytes > maxMb * 1024 * 1024) return onTooMuch();
    cancel = clock.after(system.memoryCheckMs, () => void look());
  };
  void look();
  return () => {
    isOver = true;
    cancel();
  };
}
