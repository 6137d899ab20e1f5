import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { isOutOfDescriptors } from "../errors.ts";
import type { Home } from "../paths.ts";

/** Where a daemon can be found: written by it once it listens, removed when it leaves. */
export interface DaemonRecord {
  readonly pid: number;
  readonly socket: string;
  /** Names its project alone, whatever else is part of its key. */
  readonly project?: string;
  /** Where it was started; absent where that does not matter, because it serves the bundled commands alone. */
  readonly folder?: string;
  /** What it was started with. */
  readonly flags?: {
    readonly commands?: readonly string[];
    readonly bundled?: boolean;
    readonly scope?: "bundled" | "folders" | "pack";
  };
}

/** Longer paths are cut off by the system without a word. */
const maxSocketBytes = 100;

export const recordFile = (home: Home, key: string): string => path.join(home.runFolder, `${key}.json`);
export const lockFile = (home: Home, key: string): string => path.join(home.runFolder, `${key}.lock`);

/**
 * Where a daemon puts its socket: in the home or, where that path is too long, in a folder of this user's among the
 * temporary ones. Its name is known to everybody, so somebody else may have taken it; then a new folder is made, and
 * the record says where it is.
 */
export function placeSocket(home: Home, key: string): string {
  const name = `${key}.sock`;
  const inHome = path.join(home.runFolder, name);
  if (fitsSocket(inHome)) return inHome;
  const last = readRecord(home, key)?.socket;
  const known = [...(last === undefined || !isSpare(path.dirname(last)) ? [] : [path.dirname(last)]), usualFolder()];
  const folder = known.find((found) => fitsSocket(path.join(found, name)) && isPrivate(found));
  return path.join(folder ?? makeSpare(name), name);
}

/** Gives up the folder that was made for one socket. */
export function forgetSocketFolder(socket: string): void {
  if (!isSpare(path.dirname(socket))) return;
  try {
    rmdirSync(path.dirname(socket));
  } catch {
    // Somebody else has removed it, or a socket of another daemon of ours lies in it.
  }
}

const usualFolder = () => path.join(tmpdir(), `meanwhile-${ownUid()}`);
const isSpare = (folder: string) => new RegExp(`^meanwhile-${ownUid()}-\\w{6}$`).test(path.basename(folder));

/** Of two temporary folders, the first whose path is short enough. */
function makeSpare(name: string): string {
  const usual = usualFolder();
  const isShort = fitsSocket(path.join(`${usual}-123456`, name));
  return mkdtempSync(`${isShort ? usual : path.join("/tmp", path.basename(usual))}-`);
}

/**
 * True for a folder of this user's alone, which is made where there is none; others may have put things into one that
 * they may write.
 */
function isPrivate(folder: string): boolean {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  if (stat !== undefined && (stat.mode & 0o022) !== 0) return false;
  try {
    ensurePrivateFolder(folder);
    return true;
  } catch {
    return false;
  }
}

export function fitsSocket(file: string): boolean {
  return Buffer.byteLength(file) <= maxSocketBytes;
}

/**
 * Makes a folder for this user alone. Throws when it is a link or somebody else's: whoever owns it could put a socket
 * of their own there.
 */
export function ensurePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) throw new Error(`${folder} is not a folder`);
  if (!isOurs(stat.uid)) throw new Error(`${folder} belongs to another user`);
  if ((stat.mode & 0o077) !== 0) chmodSync(folder, 0o700);
}

/** Says why a socket must not be talked to; undefined when it is this user's own, or not there. */
export function refusalOf(socket: string): string | undefined {
  const stat = lstatSync(socket, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  if (stat.isSymbolicLink()) return `${socket} is a symbolic link; remove it`;
  if (!stat.isSocket()) return `${socket} is not a socket; remove it`;
  if (!isOurs(stat.uid)) return `${socket} belongs to another user; remove it, or use another MEANWHILE_HOME`;
  return undefined;
}

/** True for what this user owns. */
export function isOurs(uid: number): boolean {
  return uid === ownUid();
}

/** Asked of the process: in a container its user may have no name, and looking that up would fail. */
function ownUid(): number {
  return process.getuid?.() ?? -1;
}

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

/** Every daemon this home has a record of, by key. */
export function readRecords(home: Home): ReadonlyMap<string, DaemonRecord> {
  const records = new Map<string, DaemonRecord>();
  for (const name of namesIn(home.runFolder)) {
    const key = /^(\w[\w-]*)\.json$/.exec(name)?.[1];
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
