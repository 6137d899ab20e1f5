import { accessSync, constants, existsSync, lstatSync, renameSync, writeFileSync } from "node:fs";
import { CommandError } from "../errors.ts";
import { createId, createSecret } from "../ids.ts";
import type { Home } from "../paths.ts";
import { readHomeId } from "./home-id.ts";
import { readToken } from "./home-token.ts";

/**
 * Makes a new token, and keeps the ID of the home: it is written down first, so that it is not derived from the new
 * token. Returns the token before. Throws where the token or the ID is not kept in a file of this folder that may be
 * written: then another place says what it is, and would say the old token again.
 */
export function resetToken(home: Home): { readonly earlier: string } {
  const earlier = readToken(home);
  const id = readHomeId(home);
  for (const file of [home.tokenFile, home.idFile]) refuseUnwritable(file, home, id);
  if (!existsSync(home.idFile)) replace(home.idFile, id);
  replace(home.tokenFile, createSecret());
  return { earlier };
}

function refuseUnwritable(file: string, { folder, idFile }: Home, id: string): void {
  const why = whyUnwritable(file, folder);
  if (why === undefined) return;
  const keep = existsSync(idFile) ? `keep ${idFile} as it is` : `write the ID of this home, ${id}, into ${idFile}`;
  throw new CommandError(
    `Nothing was changed: ${why}. To change the token, first ${keep}, so that no task is lost; then put a new token of at least 32 characters where it comes from.`,
  );
}

function whyUnwritable(file: string, folder: string): string | undefined {
  try {
    accessSync(folder, constants.W_OK);
    const stat = lstatSync(file, { throwIfNoEntry: false });
    if (stat?.isSymbolicLink() === true) return `${file} is a link, so its text comes from somewhere else`;
    if (stat !== undefined) accessSync(file, constants.W_OK);
    return undefined;
  } catch {
    return `${file} may not be written`;
  }
}

/** A reader finds the old text or the new one, never a part. */
function replace(file: string, text: string): void {
  const aside = `${file}.${createId()}`;
  writeFileSync(aside, `${text}\n`, { mode: 0o600, flag: "wx" });
  renameSync(aside, file);
}
