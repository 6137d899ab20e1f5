import { existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { RuntimeError } from "../errors.ts";
import { createId, createSecret } from "../ids.ts";

const minLength = 32;

/**
 * Returns the secret that a file holds. Makes the file at first use, readable by its user alone. Throws for a file that
 * is empty or holds less than 32 characters.
 */
export function readSecret(file: string): string {
  if (!existsSync(file)) makeSecret(file);
  const secret = readFileSync(file, "utf8").trim();
  if (secret.length < minLength) {
    const found = secret === "" ? "no token" : `${secret.length} characters, and a token has at least ${minLength}`;
    throw new RuntimeError(
      "HOME_UNUSABLE",
      `${file} holds ${found}; restore it from a backup, or delete it: then a new one is made, and the tasks of this home are found only if there is a file home-id beside it.`,
    );
  }
  return secret;
}

/** Written aside and linked into place, so that nobody ever reads half of it, and the first of two makers wins. */
function makeSecret(file: string): void {
  const aside = `${file}.${createId()}`;
  writeFileSync(aside, `${createSecret()}\n`, { mode: 0o600, flag: "wx" });
  try {
    linkSync(aside, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(aside);
  }
}
