import { statSync } from "node:fs";
import type Database from "better-sqlite3";
import { type CommandContext, CommandError } from "meanwhile";
import { z } from "zod";
import { ensureSchema, withPack } from "../_pack/database.ts";
import { isInside, realPathOf, showName } from "../_pack/paths.ts";
import { openReach } from "../_pack/reach.ts";

/**
 * What is known of a vault: its files (notes and what they may lead to), and of the notes their links, tags and
 * headings. A link is `pending` until it has been resolved. Whoever adds or removes a file makes the links of that name
 * pending in the same transaction, so that a run that is cut short leaves nothing wrong behind, only something to do.
 */
const schema = [
  `create table vault_vaults (
    id integer primary key,
    root blob not null unique,
    indexed_at integer
  );
  create table vault_files (
    id integer primary key,
    vault integer not null references vault_vaults (id) on delete cascade,
    path blob not null,
    shown text not null,
    is_note integer not null,
    name_key text not null,
    path_key text not null,
    stamp text not null,
    title text not null,
    unique (vault, path)
  );
  create index vault_files_by_name on vault_files (vault, name_key);
  create table vault_links (
    id integer primary key,
    vault integer not null,
    note integer not null references vault_files (id) on delete cascade,
    line integer not null,
    kind text not null,
    target text not null,
    is_path integer not null,
    heading text not null,
    alias text not null,
    name_key text not null,
    state text not null check (state in ('pending', 'resolved', 'no_note', 'no_heading', 'external')),
    dest integer
  );
  create index vault_links_by_note on vault_links (note);
  create index vault_links_by_name on vault_links (vault, name_key);
  create index vault_links_by_dest on vault_links (dest);
  create index vault_links_by_state on vault_links (vault, state);
  create table vault_tags (
    note integer not null references vault_files (id) on delete cascade,
    tag text not null,
    primary key (note, tag)
  ) without rowid;
  create table vault_headings (
    note integer not null references vault_files (id) on delete cascade,
    line integer not null,
    level integer not null,
    text text not null,
    key text not null,
    primary key (note, line)
  ) without rowid;`,
  // Names in doubt are looked up by the links that are settled: of a name with many links, most mostly wait already.
  `alter table vault_vaults add column version integer not null default 0;
  drop index vault_links_by_name;
  create index vault_links_by_name on vault_links (vault, name_key, state);`,
  // A person has typed it in a terminal: MCP clients may read there.
  `alter table vault_vaults add column is_persons integer not null default 0;`,
  // Marks of blocks, and links to them. Notes that were read without are read again.
  `create table vault_blocks (
    note integer not null references vault_files (id) on delete cascade,
    key text not null,
    primary key (note, key)
  ) without rowid;
  create table vault_links_next (
    id integer primary key,
    vault integer not null,
    note integer not null references vault_files (id) on delete cascade,
    line integer not null,
    kind text not null,
    target text not null,
    is_path integer not null,
    heading text not null,
    alias text not null,
    name_key text not null,
    state text not null check (state in ('pending', 'resolved', 'no_note', 'no_heading', 'no_block', 'external')),
    dest integer
  );
  insert into vault_links_next select * from vault_links;
  drop table vault_links;
  alter table vault_links_next rename to vault_links;
  create index vault_links_by_note on vault_links (note);
  create index vault_links_by_name on vault_links (vault, name_key, state);
  create index vault_links_by_dest on vault_links (dest);
  create index vault_links_by_state on vault_links (vault, state);
  update vault_files set stamp = '' where is_note = 1;`,
];

/** States of links that lead to nothing. */
export const brokenStates = "('no_note', 'no_heading', 'no_block')";

export interface Vault {
  readonly id: number;
  readonly root: Buffer;
  readonly indexedAt: number | null;
}

/** Opens what is known of vaults, and closes it whatever happens. */
export function withVaults<T>(home: string, act: (db: Database.Database) => T | Promise<T>): Promise<T> {
  return withPack(home, (db) => {
    ensureSchema(db, "vault", schema);
    return act(db);
  });
}

/**
 * Raised by whatever changes a vault's files, in the same transaction: what was read at another version is to be read
 * anew.
 */
export function versionOf(db: Database.Database, vault: number): number {
  return (db.prepare("select version from vault_vaults where id = ?").pluck().get(vault) as number | undefined) ?? -1;
}

/**
 * Warns when a vault's folder is no longer there, so that all that is known of it is about the past; true when that is
 * so.
 */
export function warnWhenGone(vault: Vault, log: Pick<CommandContext["log"], "warn">): boolean {
  if (isThere(vault.root)) return false;
  const shown = showName(vault.root);
  log.warn(`The folder ${shown} is gone: this is what was known of it. \`vault index ${shown}\` forgets it.`);
  return true;
}

/** What cannot be looked at may still be there. */
function isThere(folder: Buffer): boolean {
  try {
    return statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return true;
  }
}

/** Which vault is meant, as `findVault` takes it. */
export const vaultField = {
  vault: z.string().default("").describe("The vault's folder; left out: the one you are in, else the one indexed last"),
};

/** Other commands call a folder `path`. Under that name a vault would be ignored, and another one be taken. */
export const vaultAliases = [{ arguments: { path: "vault" } }] as const;

/**
 * The vault that was meant, by its folder; without one, the one that whoever asked stands in, else the one indexed
 * last.
 */
export function findVault(
  db: Database.Database,
  given: string,
  task: Pick<CommandContext, "origin" | "home" | "config" | "log">,
): Vault {
  const vaults = db
    .prepare("select id, root, indexed_at as indexedAt from vault_vaults order by indexed_at desc, id desc")
    .all() as Vault[];
  const [latest] = vaults;
  if (latest === undefined) throw new CommandError("No vault has been indexed yet; run `vault index <folder>` first.");
  if (given === "") return vaultAround(task.origin.folder, vaults) ?? latest;
  const { path, shown } = openReach(task).resolve(given, "vault");
  const vault = vaults.find(({ root }) => root.equals(path));
  if (vault !== undefined) return vault;
  const known = vaults.map(({ root }) => showName(root)).join(", ");
  throw new CommandError(
    `\`vault\` ${shown} has not been indexed; run \`vault index\` on it, or give one of: ${known}.`,
  );
}

/** Of several around a folder, the innermost. */
function vaultAround(folder: string | undefined, vaults: readonly Vault[]): Vault | undefined {
  if (folder === undefined) return undefined;
  const here = realPathOf(Buffer.from(folder));
  const around = vaults.filter(({ root }) => isInside(here, root));
  return around.reduce<Vault | undefined>(
    (best, vault) => (vault.root.length > (best?.root.length ?? -1) ? vault : best),
    undefined,
  );
}

/** What is counted of a vault, as commands put it out. */
export const totalFields = {
  notes: z.number().int(),
  files: z.number().int(),
  links: z.number().int(),
  resolved_links: z.number().int(),
  broken_links: z.number().int(),
  external_links: z.number().int(),
  embeds: z.number().int(),
  tags: z.number().int(),
  headings: z.number().int(),
  /** Notes that another note leads to. */
  notes_with_backlinks: z.number().int(),
};

type Totals = Readonly<Record<keyof typeof totalFields, number>>;

/** Counts what is known of a vault. */
export function countAll(db: Database.Database, vault: number): Totals {
  return db
    .prepare(
      `select
        (select count(*) from vault_files where vault = @vault and is_note = 1) as notes,
        (select count(*) from vault_files where vault = @vault and is_note = 0) as files,
        count(*) as links,
        count(*) filter (where state = 'resolved') as resolved_links,
        count(*) filter (where state in ${brokenStates}) as broken_links,
        count(*) filter (where state = 'external') as external_links,
        count(*) filter (where kind = 'embed') as embeds,
        (select count(distinct tag) from vault_tags join vault_files on vault_files.id = note where vault = @vault) as tags,
        (select count(*) from vault_headings join vault_files on vault_files.id = note where vault = @vault) as headings,
        (select count(*) from vault_files where vault = @vault and is_note = 1
          and exists (select 1 from vault_links others where others.dest = vault_files.id and others.note <> vault_files.id)) as notes_with_backlinks
      from vault_links where vault = @vault`,
    )
    .get({ vault }) as Totals;
}
