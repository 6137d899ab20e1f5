import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { isOutOfDescriptors } from "../errors.ts";
import type { Home } from "../paths.ts";

/** Where a daemon can be found: written by it once it listens, removed when it ends. */
export interface DaemonRecord {
  readonly pid: number;
  /** Empty for a draining daemon whose socket could not be opened: only a signal reaches it. */
  readonly socket: string;
  /** The daemon takes no new work and ends when its work has ended. Its record has the name of `drainName`. */
  readonly isDraining?: true;
  /** When the process of a draining daemon began, in the system's own words: process IDs are used again. */
  readonly start?: string;
  /** Where others can see the socket, each side proves that it has read this. */
  readonly secret?: string;
  /** Names its project alone, whatever else is part of its key. */
  readonly project?: string;
  /** Where it was started; absent where that does not matter, because it serves the bundled commands alone. */
  readonly folder?: string;
  /** The names of the upstreams that it wraps, where it serves nothing else. */
  readonly wraps?: readonly string[];
  /** What it was started with. */
  readonly flags?: {
    readonly commands?: readonly string[];
    readonly bundled?: boolean;
    readonly scope?: "bundled" | "folders" | "pack";
  };
}

/** The name of the record and the socket of a draining daemon: the key itself belongs to the next daemon. */
export const drainName = (key: string, pid: number): string => `${key}.${pid}`;

const recordFile = (home: Home, key: string): string => path.join(home.runFolder, `${key}.json`);
export const lockFile = (home: Home, key: string): string => path.join(home.runFolder, `${key}.lock`);

export function readRecord(home: Home, key: string): DaemonRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(recordFile(home, key), "utf8")) as Partial<DaemonRecord> | null;
    return typeof record?.socket === "string" && typeof record.pid === "number" ? (record as DaemonRecord) : undefined;
  } catch (error) {
    // It may well be there, and nobody can look.
    if (isOutOfDescriptors(error)) throw error;
    // Absent, or cut off by a crash: both mean that nobody is known.
    return undefined;
  }
}

/** Every daemon this home has a record of, by key; draining ones by `drainName`. */
export function readRecords(home: Home): ReadonlyMap<string, DaemonRecord> {
  const records = new Map<string, DaemonRecord>();
  for (const name of namesIn(home.runFolder)) {
    const key = /^(\w[\w-]*(?:\.\d+)?)\.json$/.exec(name)?.[1];
    const record = key === undefined ? undefined : readRecord(home, key);
    if (key !== undefined && record !== undefined) records.set(key, record);
  }
  return records;
}

/** A home that has never had a daemon has no such folder; one that cannot be read is not the same. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

export function writeRecord(home: Home, key: string, record: DaemonRecord): void {
  const file = recordFile(home, key);
  writeFileSync(`${file}.${record.pid}`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.${record.pid}`, file);
}

/** Removes a daemon's record, unless another has written its own meanwhile. */
export function removeRecord(home: Home, key: string, pid: number): void {
  if (readRecord(home, key)?.pid === pid) rmSync(recordFile(home, key), { force: true });
}
