import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type Clock, sleep, systemClock } from "../clock.ts";
import { createId } from "../ids.ts";
import { createWorkerName, isKnownDead } from "./worker-name.ts";

const pauseMs = 50;
/** A lock that is older counts as left behind: whatever is done under a lock has to be done earlier. */
const maxHeldMs = 90_000;

/**
 * Runs `act` while no other process, and nothing else in this one, holds the lock with the path `lock`. Waits until the
 * lock is free; a lock whose process is gone is.
 */
export async function withLock<T>(lock: string, clock: Clock, act: () => T | Promise<T>): Promise<T> {
  const holder = createWorkerName();
  while (!take(lock, holder)) await sleep(clock, pauseMs);
  try {
    return await act();
  } finally {
    if (readOr(lock) === holder) rmSync(lock, { force: true });
  }
}

function take(lock: string, holder: string): boolean {
  try {
    writeFileSync(lock, holder, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const held = readOr(lock);
  if (held !== undefined && (isKnownDead(held) || isOld(lock))) removeLeft(lock, held);
  return false;
}

function isOld(lock: string): boolean {
  const stat = statSync(lock, { throwIfNoEntry: false });
  return stat !== undefined && systemClock.now() - stat.mtimeMs > maxHeldMs;
}

/** Of two that find it left behind, one moves it away; whoever has moved away another's puts it back. */
function removeLeft(lock: string, held: string): void {
  const aside = `${lock}.${createId()}`;
  try {
    renameSync(lock, aside);
    if (readOr(aside) !== held) linkSync(aside, lock);
  } catch {
    // Somebody else has removed it, or has one of their own already.
  } finally {
    rmSync(aside, { force: true });
  }
}

function readOr(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
