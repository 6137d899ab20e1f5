import type { KeyList, KeyStore, NewKey, StoredKey } from "../../auth/key-store.ts";
import { fromNewKey, type KeyRow, toKey, useHourMs } from "../key-rows.ts";
import type { Database } from "./database.ts";

type ListRow = { readonly now: number } & (KeyRow | { readonly [Name in keyof KeyRow]: null });

/** API keys in the schema of the tasks. */
export class PostgresKeys implements KeyStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async add(key: NewKey): Promise<boolean> {
    return (await this.#database.query("addKey", fromNewKey(key))).length > 0;
  }

  async list(project: string): Promise<KeyList> {
    const rows = await this.#database.query<ListRow>("listKeys", { project });
    const keys = rows.flatMap((row) => (row.id === null ? [] : [toKey(row)]));
    return { now: rows[0]?.now ?? this.#database.time.now(), keys };
  }

  async rotate(
    project: string,
    name: string,
    change: { readonly hash: string; readonly overlapMs: number },
  ): Promise<StoredKey | undefined> {
    const [row] = await this.#database.query<KeyRow>("rotateKey", { project, name, ...change });
    return row === undefined ? undefined : toKey(row);
  }

  async revoke(project: string, name: string): Promise<boolean> {
    return await this.#database.patiently(async (query, isAgain) => {
      const rows = await query("revokeKey", { project, name });
      // No row after a try whose answer never came: that try has removed it.
      return rows.length > 0 || isAgain;
    });
  }

  async noteUse(project: string, id: string): Promise<void> {
    await this.#database.query("noteKeyUse", { project, id, hourMs: useHourMs });
  }
}
