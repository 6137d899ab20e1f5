import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type Clock, sleep, systemClock } from "../../clock.ts";
import { createId } from "../../ids.ts";
import { createWorkerName, isKnownDead } from "../../system/worker-name.ts";

const pauseMs = 50;
/** Nobody holds a lock longer: what is done meanwhile has limits of its own. */
const maxHeldMs = 90_000;

/** Does something while a file is there that only one process, and one in it, can make at a time. */
export async function holding<T>(lock: string, clock: Clock, act: () => Promise<T>): Promise<T> {
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
