import { accessSync, constants, existsSync, lstatSync, renameSync, writeFileSync } from "node:fs";
import { CommandError } from "../errors.ts";
import { createId, createSecret } from "../ids.ts";
import type { Home } from "../paths.ts";
import { readHomeId } from "./home-id.ts";
import { readToken } from "./home-token.ts";

/**
 * Makes a new token, and keeps the ID of the home: it is written down first, so that it is not derived from the new
 * token. Returns the token before. Throws where the token or the ID is not kept in a file of this folder that may be
 * written: then another place says what it is, and would say the old token again. `access` throws for a file or folder
 * that this user may not write.
 */
export function resetToken(home: Home, access: CheckAccess = accessSync): { readonly earlier: string } {
  const earlier = readToken(home);
  const id = readHomeId(home);
  for (const file of [home.tokenFile, home.idFile]) refuseUnwritable(file, { home, id, access });
  if (!existsSync(home.idFile)) replace(home.idFile, id);
  replace(home.tokenFile, createSecret());
  return { earlier };
}

type CheckAccess = (file: string, mode: number) => void;

interface Checked {
  readonly home: Home;
  readonly id: string;
  readonly access: CheckAccess;
}

/** A file is replaced in its folder, so both have to be writable. */
function refuseUnwritable(file: string, { home: { folder, idFile }, id, access }: Checked): void {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  const isLink = stat?.isSymbolicLink() === true;
  const locked = [folder, ...(stat === undefined || isLink ? [] : [file])].find((place) => !isWritable(place, access));
  const keep = existsSync(idFile) ? `keep ${idFile} as it is` : `write the ID of this home, ${id}, into ${idFile}`;
  const elsewhere = `first ${keep}, so that no task is lost; then put a new token of at least 32 characters where it comes from.`;
  if (locked !== undefined) {
    const what = locked === folder ? `the home folder ${folder}` : file;
    const other = locked === folder ? "" : ` If another place says its text, ${elsewhere}`;
    throw new CommandError(
      `Nothing was changed: ${what} may not be written. Make it writable (\`chmod u+w ${locked}\`; where its disk is mounted read-only, mount it writable), then repeat the command.${other}`,
    );
  }
  if (isLink)
    throw new CommandError(
      `Nothing was changed: ${file} is a link, so its text comes from somewhere else. To change the token, ${elsewhere}`,
    );
}

function isWritable(place: string, access: CheckAccess): boolean {
  try {
    access(place, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** A reader finds the old text or the new one, never a part. */
function replace(file: string, text: string): void {
  const aside = `${file}.${createId()}`;
  writeFileSync(aside, `${text}\n`, { mode: 0o600, flag: "wx" });
  renameSync(aside, file);
}
