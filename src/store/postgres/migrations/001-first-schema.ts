/**
 * The first schema. Numbered and never edited: a change is a new file. An old worker may not keep running across it.
 *
 * What can be large lies apart from the row that is listed, counted and claimed. JSON is kept as text: `jsonb` takes
 * neither \u0000 nor half a surrogate pair. `SCHEMA` stands for the schema's name.
 */
export const tasks = `
create function SCHEMA.now_ms() returns bigint language sql stable parallel safe
  as 'select floor(extract(epoch from statement_timestamp()) * 1000)::bigint';

create table SCHEMA.tasks (
  number          bigint generated always as identity primary key,
  task_id         text collate "C" not null unique,
  caller          text collate "C" not null,
  project         text collate "C" not null,
  command         text collate "C" not null,
  digest          text collate "C" not null,
  idempotency_key text collate "C",
  reason          text not null,
  ttl_ms          bigint not null,
  estimate_ms     double precision,
  is_safe         boolean not null,
  max_attempts    bigint not null,
  backoff_ms      bigint not null,
  status          text collate "C" not null
                  check (status in ('queued', 'working', 'input_required', 'completed', 'failed', 'cancelled')),
  status_message  text,
  version         bigint not null default 1,
  fence           bigint not null,
  attempts        integer not null,
  crashes         integer not null default 0,
  not_before      bigint not null,
  worker          text collate "C",
  lease_until     bigint,
  claim_id        text collate "C",
  progress        text,
  questions       text not null,
  open_questions  integer not null,
  lapses_at       bigint,
  bytes           bigint not null,
  created_at      bigint not null,
  updated_at      bigint not null,
  started_at      bigint,
  finished_at     bigint,
  expires_at      bigint,
  is_call         boolean not null,
  progress_token  text,
  door            text not null,
  folder          text,
  is_endless      boolean not null,
  is_proven       boolean not null,
  environment     text,
  client          text
) with (fillfactor = 80);

create index tasks_of_caller on SCHEMA.tasks (caller, number);
create index tasks_live      on SCHEMA.tasks (caller, project, digest) where finished_at is null and not is_call;
create index tasks_queue     on SCHEMA.tasks (project, is_endless, caller, not_before, number) where status = 'queued';
create index tasks_held      on SCHEMA.tasks (worker) where worker is not null;
create index tasks_lapsing   on SCHEMA.tasks (lapses_at) where lapses_at is not null;
create index tasks_expiring  on SCHEMA.tasks (expires_at) where expires_at is not null;
create unique index tasks_once on SCHEMA.tasks (caller, project, idempotency_key) where idempotency_key is not null;

create table SCHEMA.inputs (
  number bigint primary key references SCHEMA.tasks (number) on delete cascade,
  input  text not null
);

create table SCHEMA.outcomes (
  number  bigint primary key references SCHEMA.tasks (number) on delete cascade,
  outcome text not null
);

create table SCHEMA.steps (
  number bigint not null references SCHEMA.tasks (number) on delete cascade,
  name   text collate "C" not null,
  value  text not null,
  primary key (number, name)
);

create table SCHEMA.durations (
  command text collate "C" not null,
  kind    text collate "C" not null,
  bucket  bigint not null,
  count   bigint not null,
  primary key (command, kind, bucket)
);

create function SCHEMA.fits(its text, ours text) returns boolean language sql immutable parallel safe
  as 'select its is null or ours is null or not exists (
        select 1 from jsonb_each_text(its::jsonb) as one join jsonb_each_text(ours::jsonb) as other using (key)
        where one.value <> other.value)';

/* What there is instead of another task; no row where there is nothing. Whoever makes tasks for one caller waits for
   whoever is doing so on another node, and then sees what came of that: each statement in here has its own look. */
create function SCHEMA.instead_of(
  the_caller text, the_project text, the_digest text, the_key text, for_call boolean, joins_equal boolean,
  the_environment text, max_live bigint, max_waiting bigint
) returns table (kind text, id text, live bigint) language plpgsql volatile as $$
begin
  if for_call and the_key is null then return; end if;
  perform pg_advisory_xact_lock(hashtextextended('SCHEMA create ' || the_caller, 0));
  if the_key is not null then
    delete from SCHEMA.tasks as old
      where old.caller = the_caller and old.project = the_project and old.idempotency_key = the_key and old.expires_at <= SCHEMA.now_ms();
    return query select 'repeated', t.task_id, 0::bigint from SCHEMA.tasks as t
      where t.caller = the_caller and t.project = the_project and t.idempotency_key = the_key;
    if found then return; end if;
  end if;
  if for_call then return; end if;
  if joins_equal then
    return query select 'joined', t.task_id, 0::bigint from SCHEMA.tasks as t
      where t.caller = the_caller and t.project = the_project and t.digest = the_digest and t.finished_at is null and not t.is_call
        and SCHEMA.fits(t.environment, the_environment)
      order by t.number limit 1;
    if found then return; end if;
  end if;
  select count(*) into live from (
    select 1 from SCHEMA.tasks as t
    where t.caller = the_caller and t.finished_at is null and not t.is_call and t.status <> 'input_required' limit max_live) as found;
  if live >= max_live then
    kind := 'full';
    return next;
    return;
  end if;
  select count(*) into live from (
    select 1 from SCHEMA.tasks as t
    where t.caller = the_caller and t.finished_at is null and not t.is_call and t.status = 'input_required' limit max_waiting) as found;
  if live >= max_waiting then
    return query select 'full', t.task_id, live from SCHEMA.tasks as t
      where t.caller = the_caller and t.finished_at is null and not t.is_call and t.status = 'input_required'
      order by t.number limit 1;
  end if;
end
$$;
`;
