import { existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { messageOf, RuntimeError } from "../errors.ts";
import { createId, createSecret } from "../ids.ts";
import { ensureHome, type Home } from "../paths.ts";

/** Written aside and linked into place, so that nobody ever reads half of it, and the first of two makers wins. */
function makeToken(home: Home): void {
  const aside = `${home.tokenFile}.${createId()}`;
  writeFileSync(aside, `${createSecret()}\n`, { mode: 0o600, flag: "wx" });
  try {
    linkSync(aside, home.tokenFile);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(aside);
  }
}

/** The home's own secret, made at first use and readable by its user alone. */
export function readToken(home: Home): string {
  try {
    ensureHome(home);
    if (!existsSync(home.tokenFile)) makeToken(home);
    const token = readFileSync(home.tokenFile, "utf8").trim();
    if (token.length < 32) throw new Error(`${home.tokenFile} holds no token; delete it, and a new one is made`);
    return token;
  } catch (cause) {
    throw new RuntimeError(
      "HOME_UNUSABLE",
      `Cannot use the home folder ${home.folder}: ${messageOf(cause)}; set MEANWHILE_HOME to a folder you may write.`,
      {
        cause,
      },
    );
  }
}
