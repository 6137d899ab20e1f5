import { messageOf, RuntimeError } from "../errors.ts";
import { ensureHome, type Home } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { readSecret } from "./secret-file.ts";

/** The home's own secret, made at first use and readable by its user alone. */
export function readToken(home: Home): string {
  try {
    ensureHome(home);
    return readSecret(home.tokenFile);
  } catch (cause) {
    throw new RuntimeError(
      "HOME_UNUSABLE",
      `Cannot use the home folder ${home.folder}: ${messageOf(cause)}; set ${thisProgram.variable("HOME")} to a folder you may write.`,
      {
        cause,
      },
    );
  }
}
