/**
 * Creates tasks as `create_tasks` does, but counts a caller's live tasks only when the last count leaves too little room,
 * and does not limit those that wait for an answer. An old node may keep running across it: it creates by `create_tasks`.
 */
export const limits = `
create function SCHEMA.create_limited_tasks(given json) returns table (
  place integer, kind text, id text, live bigint, at bigint, forgotten text[], unfinished bigint, last_number bigint
) language plpgsql volatile as $$
declare
  one      record;
  begun    bigint;
  made     bigint;
  newest   bigint;
  claim    text;
begin
  at := SCHEMA.now_ms();
  /* Locks are taken in one order on every node. */
  for one in
    select * from json_to_recordset(given) as fresh (
      place integer, joins_equal boolean, max_live bigint, known_unfinished bigint, known_number bigint, keep_count bigint, keep_bytes bigint,
      task_id text, caller text, project text, command text, digest text, idempotency_key text, input text, reason text,
      ttl_ms bigint, estimate_ms double precision, is_safe boolean, max_attempts bigint, backoff_ms bigint, status text,
      fence bigint, attempts integer, worker text, lease_ms bigint, claim_id text, age_ms double precision,
      is_call boolean, questions text, open_questions integer, lapses_at bigint, progress_token text, door text,
      folder text, is_endless boolean, is_proven boolean, environment text, client text)
    order by fresh.caller collate "C", fresh.place
  loop
    place := one.place;
    kind := null;
    id := null;
    live := 0;
    unfinished := null;
    last_number := null;
    forgotten := '{}';
    /* Also who only makes room: rows that two remove in different orders would be a deadlock. */
    if not one.is_call or one.idempotency_key is not null or one.keep_count is not null then
      /* Of many nobody waits for somebody else's caller; one alone waits for its own. */
      if json_array_length(given) = 1 then
        perform pg_advisory_xact_lock(hashtextextended('SCHEMA create ' || one.caller, 0));
      elsif not pg_try_advisory_xact_lock(hashtextextended('SCHEMA create ' || one.caller, 0)) then
        kind := 'busy';
        return next;
        continue;
      end if;
    end if;
    if one.idempotency_key is not null then
      delete from SCHEMA.tasks as old
        where old.caller = one.caller and old.project = one.project and old.idempotency_key = one.idempotency_key and old.expires_at <= at;
      select 'repeated', t.task_id into kind, id from SCHEMA.tasks as t
        where t.caller = one.caller and t.project = one.project and t.idempotency_key = one.idempotency_key;
    end if;
    if kind is null and not one.is_call then
      if one.joins_equal then
        select 'joined', t.task_id, t.claim_id into kind, id, claim from SCHEMA.tasks as t
          where t.caller = one.caller and t.project = one.project and t.digest = one.digest and t.finished_at is null and not t.is_call
            and (t.environment is null or one.environment is null or SCHEMA.fits(t.environment, one.environment))
          order by t.number + 0 limit 1;
        /* Somebody is told of it now: it is not removed any more, whatever its maker heard. */
        if claim not like 'joined %' then
          update SCHEMA.tasks as t set claim_id = 'joined ' || t.claim_id where t.task_id = id and t.claim_id = claim;
          if not found and not exists (select 1 from SCHEMA.tasks as t where t.task_id = id) then
            kind := null;
            id := null;
          end if;
        end if;
      end if;
      if kind is null then
        select coalesce(max(t.number), 0) into newest from SCHEMA.tasks as t;
        /* Only a new row makes one more unfinished task: few enough rows since the last count, and nothing is counted. */
        if one.known_number is null or one.known_number > newest
            or one.known_unfinished + newest - one.known_number >= one.max_live then
          select count(*), count(*) filter (where not t.is_call and t.status <> 'input_required')
            into unfinished, live
            from SCHEMA.tasks as t where (t.caller || '') = one.caller and t.status in ('queued', 'working', 'input_required');
          last_number := newest;
          if live >= one.max_live then
            kind := 'full';
            live := one.max_live;
          end if;
        end if;
      end if;
    end if;
    if kind is null then
      begun := floor(at - one.age_ms + 0.5);
      insert into SCHEMA.tasks (task_id, caller, project, command, digest, idempotency_key, reason, ttl_ms, estimate_ms,
             is_safe, max_attempts, backoff_ms, status, fence, attempts, worker, lease_until, claim_id,
             not_before, created_at, updated_at, started_at, is_call, questions, open_questions, lapses_at, bytes,
             progress_token, door, folder, is_endless, is_proven, environment, client)
      values (one.task_id, one.caller, one.project, one.command, one.digest, one.idempotency_key, one.reason, one.ttl_ms, one.estimate_ms,
             one.is_safe, one.max_attempts, one.backoff_ms, one.status, one.fence, one.attempts, one.worker, at + one.lease_ms, one.claim_id,
             begun, begun, begun, case when one.worker is null then null else begun end, one.is_call, one.questions, one.open_questions,
             one.lapses_at, octet_length(one.input),
             one.progress_token, one.door, one.folder, one.is_endless, one.is_proven, one.environment, one.client)
      returning tasks.number into made;
      insert into SCHEMA.inputs (number, input) values (made, one.input);
      if one.keep_count is not null then
        with gone as (
          delete from SCHEMA.tasks as old where old.number in (
            select own.number
            from (select t.number, row_number() over latest as place, sum(t.bytes + octet_length(t.questions)) over latest as size
                  from SCHEMA.tasks as t where (t.caller || '') = one.caller and t.finished_at is not null
                  window latest as (order by t.finished_at desc, t.number desc rows unbounded preceding)) as own
            where own.place > one.keep_count or own.size > one.keep_bytes)
          returning old.task_id)
        select coalesce(array_agg(gone.task_id), '{}') into forgotten from gone;
      end if;
    end if;
    return next;
  end loop;
end
$$;
`;
