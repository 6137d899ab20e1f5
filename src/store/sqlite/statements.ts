/**
 * Every statement, whole, named for its verb. A transition is one guarded statement; zero rows mean that somebody else
 * was first. `:now` is always the store's clock; `holds` is the guard of everything a worker writes.
 */
const live = "finished_at is null";
const holds = "task_id = :taskId and fence = :fence and worker is not null and finished_at is null";
const openQuestions = "(select count(*) from json_each(questions) where value ->> 'answer' is null)";
const hasLapsed =
  "exists (select 1 from json_each(questions) where value ->> 'answer' is null and value ->> 'until' <= :now)";
/** What a new question is called: by its own name, numbered in front when it is not the first of that name. */
const ownKey = "(:question ->> '$.key')";
const sameNamed = `(select count(*) from json_each(questions) where value ->> 'key' = ${ownKey} or (value ->> 'key' glob 'r[0-9]*' and substr(value ->> 'key', -length(${ownKey}) - 1) = '/' || ${ownKey}))`;
const questionKey = `case when ${ownKey} is null then 'q' || (json_array_length(questions) + 1) when ${sameNamed} = 0 then ${ownKey} else 'r' || (${sameNamed} + 1) || '/' || ${ownKey} end`;
/** Open questions outlive the worker that asked them. */
const waitingStatus = `case when ${openQuestions} > 0 then 'input_required' else 'queued' end`;
/** No variable that both sides know has two values. */
const fits = `(environment is null or :environment is null or not exists (
        select 1 from json_each(environment) as its join json_each(:environment) as ours on ours.key = its.key where ours.value <> its.value))`;
const isWanted = "task_id not in (select value from json_each(:except))";
const claimed = `
        status = 'working', fence = fence + 1, attempts = attempts + 1, worker = :worker, lease_until = :now + :leaseMs,
        started_at = coalesce(started_at, :now), status_message = null, updated_at = :now, version = version + 1`;

/** What lies apart, for whoever wants all of a task. */
const input = "(select input from inputs where inputs.number = tasks.number) as input";
const outcome = "(select outcome from outcomes where outcomes.number = tasks.number) as outcome";
const whole = `*, ${input}, ${outcome}`;
/** How a task ends, whoever ends it; the outcome itself is kept apart, in the same transaction. */
const ends =
  "worker = null, lease_until = null, updated_at = :now, finished_at = :now, expires_at = :now + ttl_ms, version = version + 1";
const weighing = (text: string) => `bytes = bytes + octet_length(${text}) + octet_length(questions)`;
const endedHere = "json_set(:outcome, '$.durationMs', coalesce(:now - started_at, 0))";
const lostOutcome = "case when is_call = 1 then :call when is_safe = 1 then :crashed else :unknown end";
/** Of those that may go, the first: so many, and no more bytes than that, but always one. */
const someOf = (which: string) => `
    select number from (
      select number, sum(bytes) over (order by place rows unbounded preceding) - bytes as before
      from (select number, bytes, row_number() over () as place from tasks where ${which} limit +:count))
    where before < :bytes`;
const listed =
  "caller = :caller and number < :before and (expires_at is null or expires_at > :now) and (:project is null or project = :project)";

export const statements = {
  insert: `
    insert into tasks (task_id, caller, project, command, digest, idempotency_key, bytes, reason, ttl_ms, estimate_ms,
                       is_safe, max_attempts, backoff_ms, status, fence, attempts, worker, lease_until,
                       not_before, created_at, updated_at, started_at, is_call, questions, progress_token, door, folder, is_endless, is_proven, environment, client)
    values (:taskId, :caller, :project, :command, :digest, :idempotencyKey, octet_length(:input), :reason, :ttlMs, :estimateMs,
            :isSafe, :maxAttempts, :backoffMs, :status, :fence, :attempts, :worker, :leaseUntil,
            :createdAt, :createdAt, :createdAt, :startedAt, :isCall, :questions, :progressToken, :door, :folder, :isEndless, :isProven, :environment, :client)`,

  insertInput: "insert into inputs (number, input) values (:number, :input)",
  keepOutcome: "insert into outcomes (number, outcome) values (:number, :outcome)",
  keepOutcomeOf: "insert into outcomes (number, outcome) select number, :outcome from tasks where task_id = :taskId",

  findByKey: `select ${whole} from tasks where caller = :caller and project = :project and idempotency_key = :idempotencyKey`,
  findEqual: `select ${whole} from tasks where caller = :caller and project = :project and digest = :digest and ${live} and is_call = 0 and ${fits} order by number limit 1`,
  liveCommands: `select distinct project, command from tasks where ${live} and is_call = 0`,
  dataVersion: "pragma data_version",
  lastNumber: "select max(number) as number from tasks",
  countLive: `select count(*) as unfinished, total(is_call = 0 and status <> 'input_required') as live from tasks indexed by tasks_unfinished where caller = :caller and ${live}`,
  countOpenQuestions: `
    select min(:most, coalesce(sum(open), 0)) as open from (
      select ${openQuestions} as open from tasks indexed by tasks_unfinished
      where caller = :caller and ${live} and status = 'input_required' limit +:most)`,

  get: `select ${whole} from tasks where task_id = :taskId and caller = :caller and (expires_at is null or expires_at > :now)`,

  versions: "select task_id, version from tasks where task_id in (select value from json_each(:taskIds))",

  /** Each part comes from an index in this order, so that a page ends where it is full; a part that is not wanted costs nothing. */
  list: `
    select * from tasks indexed by tasks_unfinished
    where :live = 1 and ${live} and ${listed} and (:statuses is null or status in (select value from json_each(:statuses)))
      and ${fits} and (:withCalls = 1 or is_call = 0)
    union all
    select * from tasks indexed by tasks_ended
    where :completed = 1 and status = 'completed' and finished_at is not null and ${listed} and ${fits}
    union all
    select * from tasks indexed by tasks_ended
    where :failed = 1 and status = 'failed' and finished_at is not null and ${listed} and ${fits}
    union all
    select * from tasks indexed by tasks_ended
    where :cancelled = 1 and status = 'cancelled' and finished_at is not null and ${listed} and ${fits}
    order by number desc limit +:limit`,

  hasWork: "select 1 from tasks where status = 'queued' and project = :project and not_before <= :now limit 1",

  /** Of each caller's queue only the first is looked at, however long the queue. */
  claim: `
    update tasks
    set ${claimed}
    where number = (
        with recursive waiting (is_endless, caller) as (
          select kind.value, (select min(caller) from tasks where status = 'queued' and project = :project and is_endless = kind.value)
          from json_each('[0,1]') as kind
          union all
          select is_endless,
                 (select min(tasks.caller) from tasks
                  where status = 'queued' and project = :project and tasks.is_endless = waiting.is_endless and tasks.caller > waiting.caller)
          from waiting where caller is not null
        )
        select tasks.number
        from waiting
        join tasks on tasks.number = (
          select number from tasks as queued
          where status = 'queued' and project = :project and queued.is_endless = waiting.is_endless and queued.caller = waiting.caller and not_before <= :now
            and ${isWanted} and ${fits}
          order by not_before, number limit 1)
        where case waiting.is_endless
              when 0 then :full is not null and waiting.caller not in (select value from json_each(:full))
              else :fullOfEndless is not null and waiting.caller not in (select value from json_each(:fullOfEndless)) end
        order by coalesce((select value ->> 1 from json_each(:turns) where value ->> 0 = waiting.caller), 0), tasks.not_before, tasks.number
        limit 1)
      and status = 'queued'
    returning *, ${input}`,

  claimNamed: `
    update tasks set ${claimed}
    where task_id = :taskId and status = 'queued' and project = :project and not_before <= :now and ${isWanted} and ${fits}
    returning *, ${input}`,

  renew: `update tasks set lease_until = :now + :leaseMs where worker = :worker and ${live}`,

  report: `
    update tasks
    set progress = coalesce(:progress, progress), status_message = coalesce(:statusMessage, status_message), updated_at = :now, version = version + 1
    where ${holds}`,

  ask: `
    update tasks
    set status = 'input_required', updated_at = :now, version = version + 1,
        questions = json_insert(questions, '$[#]', json_set(json(:question), '$.key', ${questionKey}))
    where ${holds}
    returning questions -> '$[#-1]' as question`,

  answer: `
    update tasks
    set questions = (select json_group_array(json(case when value ->> 'key' = :key then json_set(value, '$.answer', json(:answer), '$.answeredAt', :now) else value end)) from json_each(questions)),
        status = case when ${openQuestions} > 1 then status when worker is null then 'queued' else 'working' end,
        not_before = case when ${openQuestions} = 1 and worker is null then max(not_before, :now) else not_before end,
        updated_at = :now, version = version + 1
    where task_id = :taskId and caller = :caller and ${live}
      and exists (select 1 from json_each(questions) where value ->> 'key' = :key and value ->> 'answer' is null)`,

  settle: `
    update tasks
    set status = :status, ${weighing(":outcome")}, status_message = :statusMessage, ${ends}
    where ${holds}`,

  cancel: `
    update tasks
    set status = 'cancelled', ${weighing(endedHere)}, status_message = :statusMessage, ${ends}
    where task_id = :taskId and caller = :caller and ${live}
    returning number, ${endedHere} as outcome`,

  /** By the index of live tasks: those that have ended are many more. */
  findLapsed: `select * from tasks indexed by tasks_live where caller >= '' and ${live} and is_call = 0 and status = 'input_required' and ${hasLapsed}`,

  lapse: `
    update tasks
    set status = 'cancelled', ${weighing(endedHere)}, status_message = :statusMessage, ${ends}
    where task_id = :taskId and ${live} and is_call = 0 and ${hasLapsed}
    returning number, ${endedHere} as outcome`,

  /** Those with the environment of the asker are told apart by their text, before JSON is parsed. */
  findUnclaimable: `
    select * from tasks
    where status = 'queued' and project = :project and not_before <= :dueBefore and environment <> :environment and not ${fits}
      and (instr(coalesce(status_message, ''), :prefix) <> 1 or updated_at + ttl_ms <= :now)
      and not exists (
        select 1 from tasks as running indexed by tasks_held
        where running.worker is not null and running.project = tasks.project and running.environment = tasks.environment)
    limit +:count`,

  markUnclaimable: `
    update tasks set status_message = :statusMessage, updated_at = :now, version = version + 1
    where task_id = :taskId and version = :version and status = 'queued'`,

  giveUpUnclaimable: `
    update tasks set status = 'failed', ${weighing(":outcome")}, status_message = :statusMessage, ${ends}
    where task_id = :taskId and version = :version and status = 'queued'
    returning number`,

  setEnvironment: `
    update tasks
    set environment = :environment, status_message = null, not_before = :now, updated_at = :now, version = version + 1
    where task_id = :taskId and caller = :caller and status = 'queued'`,

  dropKey:
    "update tasks set idempotency_key = null where task_id = :taskId and caller = :caller and finished_at is not null and idempotency_key is not null",

  dropToken: `update tasks set progress_token = null where task_id = :taskId and caller = :caller and ${live} and progress_token is not null`,

  retryLater: `
    update tasks
    set status = ${waitingStatus}, worker = null, lease_until = null, not_before = :notBefore, status_message = :why,
        updated_at = :now, version = version + 1
    where ${holds} and is_call = 0`,

  giveBack: `
    update tasks
    set status = ${waitingStatus}, worker = null, lease_until = null, attempts = attempts - 1, not_before = :now, status_message = coalesce(:why, status_message),
        updated_at = :now, version = version + 1
    where ${holds} and is_call = 0`,

  handOut: `
    update tasks
    set is_call = 0, reason = :reason, ttl_ms = :ttlMs, is_safe = :isSafe, max_attempts = :maxAttempts, backoff_ms = :backoffMs,
        updated_at = :now, version = version + 1
    where ${holds} and is_call = 1`,

  forget: `delete from tasks where ${holds} and is_call = 1`,

  requeueLost: `
    update tasks
    set status = ${waitingStatus}, crashes = crashes + 1, attempts = attempts - 1, worker = null, lease_until = null, not_before = :now, updated_at = :now, version = version + 1,
        status_message = case when crashes = 0 then :once else replace(:often, '#', crashes + 1) end
    where worker is not null and ${live} and (worker = :worker or lease_until < :before) and is_call = 0 and is_safe = 1 and crashes + 1 < :maxCrashes
    returning task_id`,

  giveUpLost: `
    update tasks
    set status = 'failed', crashes = crashes + 1, attempts = attempts - 1,
        ${weighing(lostOutcome)},
        status_message = case when is_call = 1 then :callMessage when is_safe = 1 then :crashedMessage else :unknownMessage end,
        ${ends}
    where worker is not null and ${live} and (worker = :worker or lease_until < :before)
    returning number, task_id, ${lostOutcome} as outcome`,

  keepStep: `
    insert into steps (task_id, name, value) select task_id, :name, :value from tasks where ${holds}
    on conflict (task_id, name) do update set value = excluded.value`,
  sayIfSafe: `update tasks set is_safe = :isSafe where ${holds}`,
  steps: "select name, value from steps where task_id = :taskId",
  dropSteps: "delete from steps where task_id = :taskId",

  freePages: "select freelist_count as free, page_count as pages from pragma_freelist_count, pragma_page_count",

  workers: "select distinct worker from tasks where worker is not null",
  sweep: `delete from tasks where number in (${someOf("expires_at <= :now")}) returning task_id`,
  sweepKey:
    "delete from tasks where caller = :caller and project = :project and idempotency_key = :idempotencyKey and expires_at <= :now",
  prune: `delete from tasks where number in (${someOf("caller = :caller and finished_at is not null")}) returning task_id`,
  pruneOne:
    "delete from tasks where task_id = :taskId and caller = :caller and finished_at is not null returning task_id",

  /** Who has been put right no longer fits the sum, so a second process changes nothing. */
  prolong:
    "update tasks set expires_at = expires_at + :byMs where finished_at <= :now - :byMs and expires_at = finished_at + ttl_ms",
  shorten: "update tasks set expires_at = :now + ttl_ms where expires_at > :now + ttl_ms",
  hasten:
    "update tasks set not_before = max(:now, not_before + :byMs) where finished_at is null and worker is null and not_before > :now",

  forgetFirst: `
    delete from tasks
    where number in (
      select number
      from (select number, row_number() over latest as place,
                   sum(bytes) over latest as bytes
            from tasks where caller = :caller and finished_at is not null
            window latest as (order by finished_at desc, number desc rows unbounded preceding))
      where place > :count or bytes > :bytes)
    returning task_id`,

  recordDuration: `
    insert into durations (command, kind, bucket, count) values (:command, :kind, :bucket, :count)
    on conflict (command, kind, bucket) do update set count = count + excluded.count`,
  durations: "select command, kind, bucket, count from durations order by command, kind, bucket",
  durationsOf: "select command, kind, bucket, count from durations where command = :command order by kind, bucket",
} as const;
