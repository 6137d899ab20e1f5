import type Database from "better-sqlite3";
import { maxWriteMs, writeAtOnce } from "../_pack/database.ts";
import { lastOf, nameKeyOf, toKey } from "./_names.ts";
import { headingKey, type Note } from "./_note.ts";

/** A file of the vault that is new or has changed; a note has been read. */
export interface ChangedFile {
  /** Its row, when it is known already. */
  readonly id: number | undefined;
  /** Below the vault. */
  readonly path: Buffer;
  readonly shown: string;
  readonly stamp: string;
  readonly note: Note | undefined;
}

/** Writes of one vault; each is one short transaction. */
export interface VaultWriter {
  /** The row of a file, with the stamp it had when it was read. */
  find(path: Buffer): { readonly id: number; readonly stamp: string } | undefined;
  /** Stores files and gives their rows. */
  store(files: readonly ChangedFile[]): number[];
  /** Forgets files, with all that was known of them, as many as a short transaction holds; says how many. */
  remove(ids: readonly number[]): number;
}

function prepareStatements(db: Database.Database) {
  return {
    find: db.prepare("select id, stamp from vault_files where vault = ? and path = ?"),
    insert: db
      .prepare(
        `insert into vault_files (vault, path, shown, is_note, name_key, path_key, stamp, title) values (?, ?, ?, ?, ?, ?, ?, ?)
        on conflict (vault, path) do update set stamp = excluded.stamp, title = excluded.title returning id`,
      )
      .pluck(),
    nameOf: db.prepare("select name_key from vault_files where id = ?").pluck(),
    insertLink: db.prepare(
      `insert into vault_links (vault, note, line, kind, target, is_path, heading, alias, name_key, state) values (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')`,
    ),
    insertTag: db.prepare("insert into vault_tags (note, tag) values (?, ?)"),
    insertHeading: db.prepare("insert into vault_headings (note, line, level, text, key) values (?, ?, ?, ?, ?)"),
    insertBlock: db.prepare("insert into vault_blocks (note, key) values (?, ?)"),
    clear: ["vault_links", "vault_tags", "vault_headings", "vault_blocks"].map((table) =>
      db.prepare(`delete from ${table} where note = ?`),
    ),
    remove: db.prepare("delete from vault_files where id = ?"),
    // A name that comes or goes may change what any link of that name leads to; new headings and blocks, what links to
    // them find.
    doubtName: db.prepare(
      "update vault_links set state = 'pending' where vault = ? and name_key = ? and state in ('resolved', 'no_note', 'no_heading', 'no_block')",
    ),
    doubtHeadings: db.prepare("update vault_links set state = 'pending' where dest = ? and heading <> ''"),
    raiseVersion: db.prepare("update vault_vaults set version = version + 1 where id = ?"),
  };
}

export function createWriter(db: Database.Database, vault: number): VaultWriter {
  const statements = prepareStatements(db);
  const { find, insert, insertLink, clear, doubtName } = statements;

  function storeOne({ id, path, shown, stamp, note }: ChangedFile): number {
    const key = toKey(shown);
    const title = note?.title ?? "";
    const row = insert.get(vault, path, shown, note === undefined ? 0 : 1, lastOf(key), key, stamp, title) as number;
    if (id === undefined) doubtName.run(vault, lastOf(key));
    else for (const statement of clear) statement.run(id);
    if (note === undefined) return row;
    if (id !== undefined) statements.doubtHeadings.run(id);
    for (const { line, kind, target, isPath, heading, alias } of note.links)
      insertLink.run(vault, row, line, kind, target, isPath ? 1 : 0, heading, alias, nameKeyOf(target));
    for (const tag of note.tags) statements.insertTag.run(row, tag);
    for (const { line, level, text } of note.headings)
      statements.insertHeading.run(row, line, level, text, headingKey(text));
    for (const block of note.blocks) statements.insertBlock.run(row, block);
    return row;
  }

  function removeOne(id: number): void {
    const name = statements.nameOf.get(id);
    for (const statement of clear) statement.run(id);
    statements.remove.run(id);
    doubtName.run(vault, name);
  }

  return {
    find: (path) => find.get(vault, path) as { id: number; stamp: string } | undefined,
    store: (files) =>
      writeAtOnce(db, () => {
        statements.raiseVersion.run(vault);
        return files.map(storeOne);
      }),
    remove: (ids) =>
      writeAtOnce(db, () => {
        const end = performance.now() + maxWriteMs / 2;
        statements.raiseVersion.run(vault);
        let removed = 0;
        while (removed < ids.length && (removed === 0 || performance.now() < end)) removeOne(ids[removed++] ?? 0);
        return removed;
      }),
  };
}
