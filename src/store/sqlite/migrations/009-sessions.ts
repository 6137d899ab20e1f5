/**
 * What all servers on one file have in common: a secret, what may be used once, and the sessions of clients before
 * 2026-07-28 with the letters that servers write each other about them. An old worker may keep running across it: it
 * knows only the sessions that have begun with it.
 */
export const sessions = `
create table shared_secret (
  number integer primary key check (number = 1),
  secret text    not null
) strict;

create table used_marks (
  mark  text    primary key,
  until integer not null
) strict, without rowid;
create index used_marks_over on used_marks (until);

create table sessions (
  session_id text    primary key,
  caller     text    not null,
  greeting   text    not null,
  notes      text    not null default '{}',
  silence_ms integer not null,
  used_at    integer not null
) strict, without rowid;
create index sessions_of_caller on sessions (caller, used_at);

create table nodes (
  node    text    primary key,
  seen_at integer not null
) strict, without rowid;

create table letters (
  number     integer primary key autoincrement,
  session_id text    not null,
  from_node  text    not null,
  to_node    text,
  text       text    not null,
  posted_at  integer not null
) strict;
create index letters_of_session on letters (session_id);
`;
