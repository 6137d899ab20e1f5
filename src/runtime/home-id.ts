import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { type Caller, localUserOf } from "../command/caller.ts";
import { messageOf, RuntimeError } from "../errors.ts";
import { createId } from "../ids.ts";
import { type Logger, silentLog } from "../log.ts";
import type { Home } from "../paths.ts";
import type { HomelessSettings, Settings } from "../settings/settings.ts";
import { readToken } from "./home-token.ts";

/**
 * The ID of a home, under which its local user's tasks are kept: what its file says, or derived from the token by a
 * one-way hash, so that nodes which share the token share the ID. It is never sent to a client.
 */
export function readHomeId(home: Home): string {
  return readIdFile(home) ?? deriveId(readToken(home));
}

/** What the ID of a home with this token is, where no file says another. */
export function deriveId(token: string): string {
  return createHash("sha256").update(`meanwhile home ${token}`).digest("base64url").slice(0, 22);
}

/** Undefined where there is no such file. Throws for a file that holds no ID. */
function readIdFile({ idFile }: Pick<Home, "idFile">): string | undefined {
  const id = readText(idFile)?.trim();
  if (id === undefined || /^[\w-]{20,64}$/.test(id)) return id;
  throw new RuntimeError(
    "HOME_UNUSABLE",
    `${idFile} holds no home ID; restore it from a backup, or copy it from another node of this server.`,
  );
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (["ENOENT", "ENOTDIR"].includes((cause as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw new RuntimeError("HOME_UNUSABLE", `Cannot read the home ID ${file}: ${messageOf(cause)}.`, { cause });
  }
}

/** The local user of a server: that of its home, or that of an embedded server's project. Reads the ID when first needed. */
export function localUserIn(
  { home, project }: Pick<Settings | HomelessSettings, "home" | "project">,
  log: Logger = silentLog,
): Caller {
  let id: string | undefined;
  return localUserOf(() => (id ??= home === undefined ? project : readOrMakeId(home, log)));
}

/** Where the home cannot be made, calls are answered all the same, for a user whom no other process knows. */
function readOrMakeId(home: Home, log: Logger): string {
  try {
    return readHomeId(home);
  } catch (error) {
    if (!cannotBeMade(error) || existsSync(home.tokenFile) || existsSync(home.idFile)) throw error;
    log.warn(`${messageOf(error)} Until then no other process finds the tasks of the local user.`);
    return createId();
  }
}

/** False for what may pass, as having no file descriptors left does: the ID must not change then. */
function cannotBeMade(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return code !== undefined && ["EACCES", "EPERM", "EROFS", "ENOTDIR"].includes(code);
}
