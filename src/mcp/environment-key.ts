import { createHash } from "node:crypto";
import { thisProgram } from "../program/program.ts";
import type { SessionEnvironment } from "./request.ts";

/** What differs from one session of the same user to the next, and means nothing to a server. */
const ofTheSession =
  /^(_|PWD|OLDPWD|SHLVL|TERM\w*|COLORTERM|COLUMNS|LINES|WINDOWID|TMUX\w*|STY|SSH_\w+|XDG_SESSION_\w+|npm_\w+|CLAUDE\w*|CODEX_\w+|CURSOR_\w+|VSCODE_\w+|GEMINI_\w+|ZED_\w+)$/;

const keys = new WeakMap<SessionEnvironment, string>();

/** Equal for environments in which a server would do the same; undefined is this process's own. */
export function environmentKey(environment: SessionEnvironment | undefined): string | undefined {
  if (environment === undefined) return undefined;
  const known = keys.get(environment);
  if (known !== undefined) return known;
  const counted = Object.entries(environment)
    .filter(([name]) => !ofTheSession.test(name) && !name.startsWith(thisProgram.variables))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const key = createHash("sha256").update(JSON.stringify(counted)).digest("base64url").slice(0, 22);
  keys.set(environment, key);
  return key;
}
