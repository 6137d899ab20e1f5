/**
 * The first schema. Numbered and never edited: a change is a new file. An old worker may not keep running across it.
 */
export const tasks = `
create table tasks (
  number          integer primary key autoincrement,
  task_id         text    not null unique,
  caller          text    not null,
  project         text    not null,
  command         text    not null,
  digest          text    not null,
  idempotency_key text,
  input           text    not null,
  reason          text    not null,
  ttl_ms          integer not null,
  estimate_ms     real,
  is_safe         integer not null,
  max_attempts    integer not null,
  backoff_ms      integer not null,
  status          text    not null default 'queued'
                  check (status in ('queued', 'working', 'input_required', 'completed', 'failed', 'cancelled')),
  status_message  text,
  version         integer not null default 1,
  fence           integer not null default 0,
  attempts        integer not null default 0,
  crashes         integer not null default 0,
  not_before      integer not null,
  worker          text,
  lease_until     integer,
  progress        text,
  questions       text    not null default '[]',
  outcome         text,
  created_at      integer not null,
  updated_at      integer not null,
  started_at      integer,
  finished_at     integer,
  expires_at      integer
) strict;

create index tasks_of_caller on tasks (caller, number);
create index tasks_live      on tasks (caller, project, digest) where finished_at is null;
create index tasks_queue     on tasks (project, not_before, number) where status = 'queued';
create index tasks_held      on tasks (worker, lease_until) where worker is not null;
create index tasks_expiring  on tasks (expires_at) where expires_at is not null;
create unique index tasks_once on tasks (caller, project, idempotency_key) where idempotency_key is not null;

create table steps (
  task_id text not null references tasks (task_id) on delete cascade,
  name    text not null,
  value   text not null,
  primary key (task_id, name)
) strict, without rowid;

create table durations (
  command text    not null,
  kind    text    not null,
  bucket  integer not null,
  count   integer not null,
  primary key (command, kind, bucket)
) strict, without rowid;
`;
