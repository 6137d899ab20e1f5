/**
 * What belongs to a caller is listed by an index of its own form, which no other look-up can take: where the planner knows
 * little of the table it took the index of callers for everything, and read all that one had for a single task. Equal
 * calls, and who waits longest, are sorted by a sum for the same reason. An old node may keep running across it; its lists
 * are slow.
 */
export const indexes = `
drop index SCHEMA.tasks_of_caller;
create index tasks_listed    on SCHEMA.tasks ((caller || ''), number);
create index tasks_by_status on SCHEMA.tasks ((caller || ''), status, number);

create or replace function SCHEMA.instead_of(
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
      order by t.number + 0 limit 1;
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
      order by t.number + 0 limit 1;
  end if;
end
$$;
`;
