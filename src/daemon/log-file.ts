import {
  appendFileSync,
  closeSync,
  copyFileSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import type { Clock } from "../clock.ts";

/**
 * A log in the home that many processes append to, each by a descriptor that it was started with and that its own
 * children inherit. So the file keeps its place: what is over its size is copied aside and cut off, and everybody
 * writes on where they did.
 */

/** How long a log may be before it is put aside. */
export const maxLogBytes = 10 * 1024 * 1024;
const checkMs = 1_000;
/** Whoever puts a log aside is done within this, or has crashed. */
const turnMs = 10_000;

export interface BoundedLog {
  readonly file: string;
  /** How many earlier files are kept beside it. */
  readonly files: number;
  /** What this process writes to. */
  readonly fd: number;
  readonly clock: Clock;
}

/**
 * Keeps a log within its size until the returned function is called. Does nothing when the descriptor belongs to another
 * file.
 */
export function keepLogBounded(log: BoundedLog): () => void {
  let cancel = () => {};
  const look = () => {
    try {
      check(log);
    } catch {
      // A log that cannot be put aside is written on; the next look tries again.
    }
    cancel = log.clock.after(checkMs, look);
  };
  look();
  return () => cancel();
}

function check({ file, files, fd, clock }: BoundedLog): void {
  const open = fstatSync(fd);
  if (!open.isFile() || open.size <= maxLogBytes) return;
  // Deleted: nobody can read it, and it takes room all the same.
  if (open.nlink === 0) ftruncateSync(fd, 0);
  else if (statSync(file, { throwIfNoEntry: false })?.ino === open.ino) rotateLog(file, files, clock.now());
}

/** Copies a log aside and cuts it off. Does nothing when it is short enough, or somebody else is at it. */
export function rotateLog(file: string, files: number, now: number): void {
  if (!takeTurn(file, now)) return;
  const aside = `${file}.${process.pid}`;
  try {
    if (statSync(file).size <= maxLogBytes) return;
    rmSync(aside, { force: true });
    copyFileSync(file, aside);
    catchUp(file, aside);
    truncateSync(file, 0);
    for (let number = files; number > 1; number--) moveOver(`${file}.${number - 1}`, `${file}.${number}`);
    moveOver(aside, `${file}.1`);
    // Fewer may be kept than were.
    for (let number = files + 1; statSync(`${file}.${number}`, { throwIfNoEntry: false }) !== undefined; number++)
      rmSync(`${file}.${number}`);
  } catch (error) {
    rmSync(aside, { force: true });
    // On a full disk there is no room for a copy, and none for what would be written on.
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") truncateSync(file, 0);
    else throw error;
  } finally {
    rmSync(turnOf(file), { force: true });
  }
}

/** True while somebody puts the log aside. */
export function isBeingRotated(file: string, now: number): boolean {
  const since = statSync(turnOf(file), { throwIfNoEntry: false })?.mtimeMs;
  return since !== undefined && Math.abs(now - since) < turnMs;
}

const turnOf = (file: string) => `${file}.turn`;

function takeTurn(file: string, now: number): boolean {
  try {
    writeFileSync(turnOf(file), String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (!isBeingRotated(file, now)) rmSync(turnOf(file), { force: true });
    return false;
  }
}

/** What was written while the copy was made. */
function catchUp(file: string, aside: string): void {
  const copied = statSync(aside).size;
  const rest = Buffer.alloc(Math.max(0, statSync(file).size - copied));
  const fd = openSync(file, "r");
  try {
    const bytes = readSync(fd, rest, 0, rest.length, copied);
    appendFileSync(aside, rest.subarray(0, bytes));
  } finally {
    closeSync(fd);
  }
}

function moveOver(from: string, to: string): void {
  if (statSync(from, { throwIfNoEntry: false }) !== undefined) renameSync(from, to);
}
