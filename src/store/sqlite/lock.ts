import { closeSync, openSync } from "node:fs";
import { isBusy } from "./connection.ts";
import { openDatabase } from "./open-database.ts";

/**
 * Takes a lock that ends with this process, however it ends; undefined when another process has it.
 * Node has no locks on files. SQLite has, and the system lets go of them when their process is gone.
 */
export function takeLock(file: string): { release(): void } | undefined {
  closeSync(openSync(file, "a", 0o600));
  const db = openDatabase(file, { timeout: 0 });
  try {
    // No journal on disk and no write: the lock itself is all that is wanted of the file.
    db.pragma("journal_mode = MEMORY");
    db.exec("begin exclusive");
    return { release: () => db.close() };
  } catch (error) {
    db.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}
