/**
 * What all servers on one schema have in common beside the tasks: a secret, what may be used once, and the sessions of
 * clients before 2026-07-28 with the letters that servers write each other about them. An old node may keep running
 * across it: it knows only the sessions that have begun with it.
 */
export const sessions = `
create table SCHEMA.shared_secret (
  number integer primary key check (number = 1),
  secret text    not null
);

create table SCHEMA.used_marks (
  mark   text   primary key,
  until  bigint not null,
  use_id text   not null
);
create index used_marks_over on SCHEMA.used_marks (until);

create table SCHEMA.sessions (
  session_id text   primary key,
  caller     text   not null,
  greeting   text   not null,
  silence_ms bigint not null,
  used_at    bigint not null
);
create index sessions_of_caller on SCHEMA.sessions (caller, used_at);

create table SCHEMA.session_notes (
  session_id text not null references SCHEMA.sessions (session_id) on delete cascade,
  name       text not null,
  value      text not null,
  primary key (session_id, name)
);

create table SCHEMA.nodes (
  node    text   primary key,
  seen_at bigint not null
);

create table SCHEMA.letters (
  number     bigserial primary key,
  letter_id  text   not null unique,
  session_id text   not null,
  from_node  text   not null,
  to_node    text,
  text       text   not null,
  posted_at  bigint not null
);
create index letters_of_session on SCHEMA.letters (session_id);
`;
