import type Database from "better-sqlite3";
import type { CommandContext } from "meanwhile";
import { whyNotStored, writeAtOnce } from "../_pack/database.ts";

const put =
  "insert into monitor_roots (path, recursive) values (?, ?) on conflict (path) do update set recursive = max(recursive, excluded.recursive) where recursive < excluded.recursive";

/**
 * Remembers that a person has put a path under the monitor: only what was typed in a terminal counts, since MCP clients
 * may read there from now on.
 */
export function rememberRoot(
  db: Database.Database,
  root: { readonly path: Buffer; readonly recursive: boolean },
  { origin }: Pick<CommandContext, "origin">,
): void {
  if (origin.door !== "terminal") return;
  try {
    writeAtOnce(db, () => db.prepare(put).run(root.path, root.recursive ? 1 : 0));
  } catch (error) {
    if (whyNotStored(error) === undefined) throw error; // Without room for it, the sync itself still counts.
  }
}

/** What is no longer there is no longer under the monitor. */
export function forgetRoot(db: Database.Database, path: Buffer): void {
  db.prepare("delete from monitor_roots where path = ?").run(path);
}
