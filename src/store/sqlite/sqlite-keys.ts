import type { KeyList, KeyStore, NewKey, StoredKey } from "../../auth/key-store.ts";
import { fromNewKey, hourOf, type KeyRow, toKey } from "../key-rows.ts";
import type { TaskFile } from "./task-file.ts";

/** API keys in the file of the tasks. */
export class SqliteKeys implements KeyStore {
  readonly #file: TaskFile;
  readonly #now: () => number;

  constructor(file: TaskFile, now: () => number) {
    this.#file = file;
    this.#now = now;
  }

  async add(key: NewKey): Promise<boolean> {
    const values = { ...fromNewKey(key), now: this.#now() };
    return await this.#file.durably(() => this.#file.run("addKey", values) > 0);
  }

  async list(project: string): Promise<KeyList> {
    const rows = await this.#file.read(() => this.#file.all<KeyRow>("listKeys", { project }));
    return { now: this.#now(), keys: rows.map(toKey) };
  }

  async rotate(
    project: string,
    name: string,
    change: { readonly hash: string; readonly overlapMs: number },
  ): Promise<StoredKey | undefined> {
    const values = { project, name, ...change, now: this.#now() };
    const row = await this.#file.durably(() => this.#file.first<KeyRow>("rotateKey", values));
    return row === undefined ? undefined : toKey(row);
  }

  async revoke(project: string, name: string): Promise<boolean> {
    return await this.#file.durably(() => this.#file.run("revokeKey", { project, name }) > 0);
  }

  async noteUse(project: string, id: string): Promise<void> {
    const hour = hourOf(this.#now());
    await this.#file.quickly(() => this.#file.run("noteKeyUse", { project, id, hour }));
  }
}
