import { systemClock } from "../clock.ts";
import { silentLog } from "../log.ts";
import type { EarlierRows } from "./earlier-rows.ts";
import { isAcrossMachines, loadPostgres } from "./open.ts";
import type { StoreFacts } from "./store-facts.ts";
import type { TransferTarget } from "./transfer.ts";

/** What the person who runs a store does with it as a whole, by its name. */

/** Looks through a store, and changes nothing of it. Throws where it cannot be opened. `besidePool`: see `openStore`. */
export async function checkStore(store: string, besidePool?: number): Promise<StoreFacts> {
  if (isAcrossMachines(store)) {
    const { checkDatabase } = await loadPostgres(() => import("./postgres/check-database.ts"));
    return await checkDatabase(store, systemClock, besidePool);
  }
  const { checkFile } = await import("./sqlite/check-file.ts");
  return checkFile(store);
}

/** Brings the schema up to date, and makes it where there is none: from which version to which. */
export async function migrateStore(store: string): Promise<{ readonly from: number; readonly to: number }> {
  if (isAcrossMachines(store)) {
    const { migrateDatabase } = await loadPostgres(() => import("./postgres/check-database.ts"));
    return await migrateDatabase(store);
  }
  const { bringUpToDate } = await import("./sqlite/check-file.ts");
  return bringUpToDate(store);
}

/** Rows of the local user of a version that did not tell homes apart, by project. */
export async function countEarlierRows(store: string): Promise<readonly EarlierRows[]> {
  return await (await earlierOf(store)).countEarlierRows(store);
}

/** Gives these rows to the caller with this key; how many, by project. */
export async function takeEarlierRows(store: string, key: string): Promise<readonly EarlierRows[]> {
  return await (await earlierOf(store)).takeEarlierRows(store, key);
}

/** Gives back the rows that the caller with this key took; how many, by project. */
export async function giveBackRows(store: string, key: string): Promise<readonly EarlierRows[]> {
  return await (await earlierOf(store)).giveBackRows(store, key);
}

async function earlierOf(store: string) {
  if (isAcrossMachines(store)) return await loadPostgres(() => import("./postgres/check-database.ts"));
  return await import("./sqlite/check-file.ts");
}

/** Opens a store as one side of a copy: a source stays as it is, a target is made where it is missing. */
export async function openTransfer(store: string, role: "source" | "target"): Promise<TransferTarget> {
  if (isAcrossMachines(store)) {
    const { PostgresTransfer } = await loadPostgres(() => import("./postgres/postgres-transfer.ts"));
    const opened = new PostgresTransfer(store, { clock: systemClock, log: silentLog, role });
    await opened.open().catch(async (error: unknown) => {
      await opened.close();
      throw error;
    });
    return opened;
  }
  const { SqliteTransfer } = await import("./sqlite/sqlite-transfer.ts");
  return new SqliteTransfer(store, systemClock, role);
}
