import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createId } from "../../ids.ts";
import type { Home } from "../../paths.ts";
import { rememberMade } from "../../project/stored-project.ts";

/** Texts by their names, which may hold slashes. */
export type NewFiles = Readonly<Record<string, string>>;

/** Whatever the umask is: a folder of commands that others may write is never served. */
export const folderMode = 0o755;
export const fileMode = 0o644;

/**
 * Makes a folder of commands that is there at once, with all its files, and known to be this user's: a session that is
 * connected here takes up no other. Throws, and leaves nothing, where there is one already.
 */
export function makeCommandFolder(home: Home, folder: string, files: NewFiles): void {
  const aside = `${folder}.${createId()}`;
  try {
    for (const [name, text] of Object.entries(files)) writeNew(path.join(aside, name), text);
    remember(home, folder, aside);
    renameSync(aside, folder);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

/** Writes a file that is not there yet, with the folders that it needs. */
export function writeNew(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: folderMode });
  writeFileSync(file, text, { flag: "wx", mode: fileMode });
}

/** Without a note, sessions that are connected have to be started again. */
function remember(home: Home, folder: string, aside: string): void {
  try {
    rememberMade(home, folder, aside);
  } catch {
    // The home cannot be written, which is reported by whoever needs it.
  }
}
