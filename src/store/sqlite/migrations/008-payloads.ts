/**
 * What may be large, the input and the outcome of a task, lies apart from the row that is listed, counted and claimed;
 * `bytes` is what both and the questions weigh. Progress and questions stay: whoever lists tasks wants them, and a
 * report rewrites the row that they are in. Ended tasks are found by status, live ones apart from them.
 *
 * All of it is one transaction, of which SQLite writes to the log what memory does not hold: whoever is killed in the
 * middle leaves the old schema. Foreign keys have to be off, or the table that goes takes the steps with it.
 * An old worker may not keep running across it: it no longer finds the columns it asks for, so it can neither claim nor
 * settle, and what it held is taken up, or given up, when its process has ended.
 */
export const payloads = `
create table tasks_next (
  number          integer primary key autoincrement,
  task_id         text    not null unique,
  caller          text    not null,
  project         text    not null,
  command         text    not null,
  digest          text    not null,
  idempotency_key text,
  reason          text    not null,
  ttl_ms          integer not null,
  estimate_ms     real,
  is_safe         integer not null,
  max_attempts    integer not null,
  backoff_ms      integer not null,
  status          text    not null default 'queued'
                  check (status in ('queued', 'working', 'input_required', 'completed', 'failed', 'cancelled')),
  version         integer not null default 1,
  fence           integer not null default 0,
  attempts        integer not null default 0,
  crashes         integer not null default 0,
  not_before      integer not null,
  worker          text,
  lease_until     integer,
  created_at      integer not null,
  updated_at      integer not null,
  started_at      integer,
  finished_at     integer,
  expires_at      integer,
  is_call         integer not null default 0,
  is_endless      integer not null default 0,
  is_proven       integer not null default 0,
  bytes           integer not null default 0,
  door            text    not null default 'mcp',
  folder          text,
  progress_token  text,
  environment     text,
  client          text,
  status_message  text,
  progress        text,
  questions       text    not null default '[]'
) strict;

create table inputs (
  number integer primary key references tasks (number) on delete cascade,
  input  text not null
) strict;

create table outcomes (
  number  integer primary key references tasks (number) on delete cascade,
  outcome text not null
) strict;

insert into inputs select number, input from tasks order by number;
insert into outcomes select number, outcome from tasks where outcome is not null order by number;
insert into tasks_next
  select number, task_id, caller, project, command, digest, idempotency_key, reason, ttl_ms, estimate_ms,
         is_safe, max_attempts, backoff_ms, status, version, fence, attempts, crashes, not_before, worker, lease_until,
         created_at, updated_at, started_at, finished_at, expires_at, is_call, is_endless, is_proven,
         octet_length(input) + iif(finished_at is null, 0, coalesce(octet_length(outcome), 0) + octet_length(questions)),
         door, folder, progress_token, environment, client, status_message, progress, questions
  from tasks order by number;
update sqlite_sequence set seq = (select seq from sqlite_sequence where name = 'tasks') where name = 'tasks_next';
insert into sqlite_sequence (name, seq)
  select 'tasks_next', seq from sqlite_sequence
  where name = 'tasks' and not exists (select 1 from sqlite_sequence where name = 'tasks_next');

drop table tasks;
alter table tasks_next rename to tasks;

create index tasks_unfinished on tasks (caller, number) where finished_at is null;
create index tasks_ended      on tasks (caller, status, number) where finished_at is not null;
create index tasks_live       on tasks (caller, project, digest) where finished_at is null and is_call = 0;
create index tasks_queue      on tasks (project, is_endless, caller, not_before, number) where status = 'queued';
create index tasks_held       on tasks (worker, lease_until) where worker is not null;
create index tasks_expiring   on tasks (expires_at) where expires_at is not null;
create unique index tasks_once on tasks (caller, project, idempotency_key) where idempotency_key is not null;
`;
