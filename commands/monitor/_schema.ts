import type Database from "better-sqlite3";
import { ensureSchema, withPack } from "../_pack/database.ts";

const tables = `
create table monitor_folders (
  id integer primary key,
  path blob not null unique,
  -- All its files as they are recorded, in one value; null when only the rows know.
  snapshot blob
);
create table monitor_files (
  folder_id integer not null references monitor_folders (id) on delete cascade,
  name blob not null,
  size integer not null,
  mtime_ns integer not null,
  inode integer not null,
  sha256 blob not null,
  priority real not null,
  synced_at integer not null,
  primary key (folder_id, name)
) without rowid;
create view monitor_tracked as
  select cast(rtrim(folder.path, '/') || '/' || file.name as blob) as path, file.size, file.mtime_ns, file.sha256, file.priority, file.synced_at
  from monitor_files file join monitor_folders folder on folder.id = file.folder_id;
create table monitor_syncs (
  path blob primary key,
  recursive integer not null,
  finished_at integer not null,
  duration_ms integer not null,
  files_processed integer not null,
  errors_total integer not null
) without rowid;
create table monitor_filter_settings (
  list text not null,
  value text not null,
  primary key (list, value)
) without rowid;
create table monitor_priority_settings (
  path blob primary key,
  priority real not null
) without rowid;
insert into monitor_filter_settings (list, value) values
  ('exclude_dirnames', '.git'), ('exclude_dirnames', 'node_modules'), ('exclude_dirnames', '__pycache__'), ('exclude_dirnames', '.venv'),
  ('exclude_globs', '*.tmp'), ('exclude_globs', '*.swp'), ('exclude_globs', '.DS_Store');
`;

/** What a person has put under the monitor, by typing it: MCP clients may read there. */
const roots = `
create table monitor_roots (
  path blob primary key,
  recursive integer not null
) without rowid;
`;

/** How scores are made, and what a sync that ended, or was ended, has done. */
const scores = `
create table monitor_score_settings (
  name text primary key,
  value real not null
) without rowid;
alter table monitor_syncs add column files_updated integer not null default 0;
alter table monitor_syncs add column files_removed integer not null default 0;
`;

/** Opens the pack's database with the monitor's tables, and closes it whatever happens. */
export function withMonitor<T>(home: string, act: (db: Database.Database) => T | Promise<T>): Promise<T> {
  return withPack(home, (db) => {
    ensureSchema(db, "monitor", [tables, roots, scores]);
    return act(db);
  });
}
