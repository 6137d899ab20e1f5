import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { ensureHome, type Home, writePrivately } from "../paths.ts";
import { fingerprint } from "../project/project.ts";
import { system } from "../system/system.ts";

/** An HTTP server of this home, as it has recorded itself. */
export interface HttpRecord {
  readonly pid: number;
  /** When the process began, in the system's own words: process IDs are used again. */
  readonly start?: string | undefined;
  readonly url: string;
  /** The folder that it was started in. */
  readonly folder: string;
}

/** Where an HTTP server listens. */
export type HttpPlace = { readonly port: number } | { readonly socket: string };

const extension = ".http";
const fileOf = ({ runFolder }: Home, place: HttpPlace): string =>
  path.join(
    runFolder,
    `${fingerprint("socket" in place ? { socket: place.socket } : { port: place.port })}${extension}`,
  );

/**
 * Records where this process listens, so that another one that wants the same place can name it. Returns the function
 * that removes the record.
 */
export function recordHttpServer(home: Home, place: HttpPlace, { url, folder }: Pick<HttpRecord, "url" | "folder">) {
  const file = fileOf(home, place);
  const record: HttpRecord = { pid: process.pid, start: system.ownStart(), url, folder };
  try {
    ensureHome(home);
    removeDead(home);
    writePrivately(file, JSON.stringify(record));
  } catch {
    // Without the record the other process is told less.
  }
  return () => {
    if (read(file)?.pid === process.pid) rmSync(file, { force: true });
  };
}

/** The server of this home that listens there; undefined where none does, as far as it is recorded. */
export function findHttpServer(home: Home, place: HttpPlace): HttpRecord | undefined {
  const record = read(fileOf(home, place));
  return record !== undefined && isAlive(record) ? record : undefined;
}

/** Servers that were killed have left their records. */
function removeDead({ runFolder }: Home): void {
  if (!existsSync(runFolder)) return;
  for (const name of readdirSync(runFolder).filter((one) => one.endsWith(extension))) {
    const file = path.join(runFolder, name);
    const record = read(file);
    if (record === undefined || !system.isAlive(record.pid)) rmSync(file, { force: true });
  }
}

function isAlive({ pid, start }: HttpRecord): boolean {
  return system.isAlive(pid) && (start === undefined || system.beganAt(pid, start) !== false);
}

function read(file: string): HttpRecord | undefined {
  try {
    const { pid, start, url, folder } = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
    if (typeof pid !== "number" || typeof url !== "string" || typeof folder !== "string") return undefined;
    return { pid, url, folder, ...(typeof start === "string" && { start }) };
  } catch {
    return undefined;
  }
}
