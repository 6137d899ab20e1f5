import { statSync } from "node:fs";
import { messageOf, RuntimeError } from "../errors.ts";
import { ensureHome, type Home } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { readSecret } from "./secret-file.ts";

/** Returns the token of a home, which is made at first use and readable by its user alone. */
export function readToken(home: Home): string {
  try {
    ensureHome(home);
    return readSecret(home.tokenFile);
  } catch (cause) {
    // What is wrong with the file says its own cure.
    if (cause instanceof RuntimeError) throw cause;
    throw new RuntimeError(
      "HOME_UNUSABLE",
      `Cannot use the home folder ${home.folder}: ${messageOf(cause)}; set ${thisProgram.variable("HOME")} to a folder you may write.`,
      {
        cause,
      },
    );
  }
}

/** The token as its file has it now; a file that is gone or cannot be read leaves the last one in force. */
export function watchToken(home: Home): () => string {
  let known: { readonly token: string; readonly state: string } | undefined;
  return () => {
    const state = stateOf(home.tokenFile);
    if (known !== undefined && (state === undefined || state === known.state)) return known.token;
    try {
      const token = readToken(home);
      // What a first reading has made is looked at before the next one.
      known = { token, state: state ?? "" };
    } catch (error) {
      if (known === undefined) throw error;
    }
    return known?.token ?? "";
  };
}

/** Another text for another file, and for another content of the same file. */
function stateOf(file: string): string | undefined {
  try {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs}`;
  } catch {
    return undefined;
  }
}
