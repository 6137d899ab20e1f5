import { keyStatements } from "./postgres-key-statements.ts";
import { transferStatements } from "./postgres-transfer-statements.ts";
import { sessionStatements } from "./shared-statements.ts";

/**
 * Every statement, whole, named for its verb: SQLite's say the same. A transition is one guarded statement; no row means
 * that somebody else was first. `SCHEMA` stands for the schema's name and `:name` for a value. Time is the database's
 * own, `now_ms()`, and the same all through a statement; `holds` is the guard of everything a worker writes.
 */
const now = "SCHEMA.now_ms()";
const live = "finished_at is null";
const holds = "task_id = :taskId and fence = :fence and worker is not null and finished_at is null";
const own = "task_id = :taskId and caller = :caller";
/** Lists have an index that nothing else can take: of tables that are new the planner knows nothing, and would read all that a caller has for one task. */
const ofCaller = "(caller || '') = :caller";
/** Open questions outlive the worker that asked them. */
const waitingStatus = "case when open_questions > 0 then 'input_required' else 'queued' end";
const fits = "SCHEMA.fits(environment, :environment)";
const inQueueOf = (who: string) =>
  `queued.status = 'queued' and queued.project = :project and queued.caller = ${who}.caller
          and not_before <= SCHEMA.now_ms() and task_id <> all(:except::text[]) and ${fits}`;
/** What nobody was told of, or could be told again, waits for no disk. */
const quickly = "(select set_config('synchronous_commit', 'off', true)) is not null";
const changed = `updated_at = ${now}, version = version + 1`;
const released = "worker = null, lease_until = null, claim_id = null";
const ended = `${released}, lapses_at = null, finished_at = ${now}, expires_at = ${now} + ttl_ms, ${changed}`;

/** A row as it is listed, counted and claimed; never `*`, which would mean another thing after a migration. */
const columns = [
  ..."number task_id caller project command digest idempotency_key reason ttl_ms estimate_ms is_safe".split(" "),
  ..."max_attempts backoff_ms status status_message version fence attempts crashes not_before worker".split(" "),
  ..."lease_until progress questions created_at updated_at started_at finished_at expires_at is_call".split(" "),
  ..."progress_token door folder is_endless is_proven environment client".split(" "),
].join(", ");
/** Looked up one by one: of tables that are new the planner knows nothing, and would read a join's other side as a whole. */
const inputOf = (task: string) => `(select input from SCHEMA.inputs as i where i.number = ${task}.number) as input`;
const whole = `${columns}, ${inputOf("t")}, (select outcome from SCHEMA.outcomes as o where o.number = t.number) as outcome
    from SCHEMA.tasks as t`;

const listed = `${ofCaller} and number < :before and (expires_at is null or expires_at > ${now})
      and (:project::text is null or project = :project) and ${fits} and (:withCalls or not is_call or finished_at is not null)`;
const claimed = `
      status = 'working', fence = fence + 1, attempts = attempts + 1, worker = :worker, lease_until = ${now} + :leaseMs, claim_id = :claimId,
      started_at = coalesce(started_at, ${now}), status_message = null, ${changed}`;
/** Steps end with their task, and its outcome begins: with the row, or not at all. */
const settled = `
    kept as (insert into SCHEMA.outcomes (number, outcome) select number, outcome from over),
    dropped as (delete from SCHEMA.steps where number in (select number from over))
    select task_id from over`;
const cancelledOutcome = `:outcomeHead::text || coalesce(${now} - started_at, 0) || '}'`;
/** The caller's time is an estimate of the database's, so the earlier of both counts. */
const expiredBefore = `least(${now}, :expiredBefore::bigint)`;
const isLost = `worker = any(:workers::text[]) and ${live} and (not :isOverdue or lease_until < ${expiredBefore})`;
/** Each is found by one look into an index, however many tasks it holds. */
const holders = `held (worker) as (
      select min(worker) from SCHEMA.tasks where worker is not null
      union all
      select (select min(worker) from SCHEMA.tasks where worker > held.worker) from held where held.worker is not null)`;
const mayRunAgain = "not is_call and is_safe and crashes + 1 < :maxCrashes";
const giveUpOutcome = "case when is_call then :call when is_safe then :crashed else :unknown end";

const statements = {
  now: `select ${now} as now`,

  create: "select * from SCHEMA.create_limited_tasks(:given::json)",
  wasCreated: `select ${whole} where ${own}`,

  find: `select ${whole} where task_id = :taskId`,
  /** The sum keeps the planner from walking through all of the caller's in their order. */
  findEqual: `select ${whole} where caller = :caller and project = :project and digest = :digest and ${live} and not is_call and ${fits} order by number + 0 limit 1`,
  get: `select ${whole} where ${own} and (expires_at is null or expires_at > ${now})`,
  countOpenQuestions: `
    select least(:most, coalesce(sum(open_questions), 0))::int as open from (
      select open_questions from SCHEMA.tasks where (caller || '') = :caller and status = 'input_required' limit :most) as found`,
  /** Each is looked up by itself, whatever the planner knows. Of a large one the row alone: those who wait for others need not wait for it. */
  getSome: `
    select asked.place, found.* from json_to_recordset(:given::json) as asked (place integer, caller text, task_id text)
    cross join lateral (
      select ${columns}, small.is_small,
             (select input from SCHEMA.inputs as i where small.is_small and i.number = t.number) as input,
             (select outcome from SCHEMA.outcomes as o where small.is_small and o.number = t.number) as outcome
      from SCHEMA.tasks as t cross join lateral (select t.bytes <= :smallBytes as is_small) as small
      where t.task_id = asked.task_id and t.caller = asked.caller and (expires_at is null or expires_at > ${now}) limit 1) as found`,
  versions: "select task_id, version from SCHEMA.tasks where task_id = any(:taskIds::text[])",
  list: `select ${columns} from SCHEMA.tasks where ${listed} order by number desc limit :limit`,
  /** Of each status only the newest are looked at: one that no task has costs nothing. */
  listByStatus: `
    select found.* from unnest(:statuses::text[]) as wanted (status) cross join lateral (
      select ${columns} from SCHEMA.tasks where status = wanted.status and ${listed} order by number desc limit :limit) as found
    order by number desc limit :limit`,

  /**
   * However many callers wait, some of them are looked at, in their order from where the last look ended, and round; of
   * each one's queue the first few: as many as nodes may be claiming at this instant. `seen` without a task means that
   * others are just taking those that were seen.
   */
  claim: `
    with recursive waiting (is_endless, caller, is_ready, found, is_round) as (
      select kind, :after::text collate "C", false, 0, false
      from (values (false, :full::text[]), (true, :fullOfEndless::text[])) as kinds (kind, busy) where busy is not null
      union all
      select waiting.is_endless, next.caller, ready.is_so, waiting.found + ready.is_so::int, next.is_round
      from waiting
      cross join lateral (
        select min(caller) as caller from SCHEMA.tasks as later
        where later.status = 'queued' and later.project = :project and later.is_endless = waiting.is_endless and later.caller > waiting.caller) as later
      cross join lateral (
        select coalesce(later.caller, (select min(caller) from SCHEMA.tasks as first
                 where not waiting.is_round and first.status = 'queued' and first.project = :project and first.is_endless = waiting.is_endless)) as caller,
               waiting.is_round or later.caller is null as is_round) as next
      cross join lateral (
        select next.caller <> all(case when waiting.is_endless then :fullOfEndless::text[] else :full::text[] end)
               and exists (select 1 from SCHEMA.tasks as queued where ${inQueueOf("next")} and queued.is_endless = waiting.is_endless) as is_so) as ready
      where waiting.found < :callersAtOnce and next.caller is not null and not (next.is_round and next.caller > :after)),
    ready as materialized (
      select first.number, first.not_before, coalesce((:turns::float8[])[array_position(:turnsOf::text[], waiting.caller)], 0) as turn
      from waiting cross join lateral (
        select number, not_before from SCHEMA.tasks as queued
        where ${inQueueOf("waiting")} and queued.is_endless = waiting.is_endless
        order by not_before, number limit 8) as first
      where waiting.is_ready),
    picked as (
      select free.number from (select number from ready order by turn, not_before, number) as next
      cross join lateral (
        select number from SCHEMA.tasks as t
        where t.number = next.number and t.status = 'queued' and t.not_before <= ${now} for update skip locked) as free
      limit 1),
    taken as (
      update SCHEMA.tasks set ${claimed}
      where number = (select number from picked) and status = 'queued'
      returning ${columns})
    select taken.*, ${inputOf("taken")}, exists (select 1 from ready) as seen
    from (select 1) as one left join taken on true`,
  claimNamed: `
    with taken as (
      update SCHEMA.tasks set ${claimed}
      where task_id = :taskId and status = 'queued' and project = :project and not_before <= ${now} and task_id <> all(:except::text[]) and ${fits}
      returning ${columns})
    select taken.*, ${inputOf("taken")}, false as seen from taken`,
  wasClaimed: `select claim_id, ${whole} where worker = :worker and claim_id = any(:claimIds::text[]) and ${live} limit 1`,
  /** Made ones only where somebody else knows of them: by their keys, or since they have joined them. */
  releaseUnsettled: `
    update SCHEMA.tasks set status = ${waitingStatus}, ${released}, attempts = attempts - 1, not_before = ${now}, ${changed}
    where worker = any(:workers::text[]) and ${live} and not is_call
      and (claim_id = any(:claimIds::text[]) or claim_id = any(:joinedIds::text[]) or (claim_id = any(:madeIds::text[]) and idempotency_key is not null))
    returning task_id`,
  /** What has a key is kept: who comes again with it means this one. */
  forgetUnsettled: `
    delete from SCHEMA.tasks
    where worker = any(:workers::text[]) and claim_id = any(:madeIds::text[]) and ${live} and (is_call or idempotency_key is null) returning task_id`,

  /** In the order in which others lock them. */
  renew: `
    with renewed as (
      update SCHEMA.tasks set lease_until = ${now} + :leaseMs
      where number in (select number from SCHEMA.tasks where worker = :worker and ${live} order by task_id for no key update) and ${quickly})
    insert into SCHEMA.workers (worker, lease_until) values (:worker, ${now} + :leaseMs)
    on conflict (worker) do update set lease_until = excluded.lease_until`,
  report: `
    update SCHEMA.tasks
    set progress = coalesce(:progress, progress), status_message = coalesce(:statusMessage, status_message), ${changed}
    where ${holds} and ${quickly} returning task_id`,

  findHeld: `select ${columns}, ${now} as now from SCHEMA.tasks where ${holds}`,
  findOwn: `select ${columns}, ${now} as now from SCHEMA.tasks where ${own}`,
  findLapsed: `select ${columns}, ${now} as now from SCHEMA.tasks where lapses_at <= ${now} and ${live} and not is_call`,
  /** Only as long as nothing has happened since the row was read. */
  writeQuestions: `
    update SCHEMA.tasks
    set questions = :questions, open_questions = :openQuestions, lapses_at = :lapsesAt, status = :status, not_before = :notBefore,
        updated_at = :updatedAt, version = version + 1
    where task_id = :taskId and version = :version and ${live} returning task_id`,
  lapse: `
    with over as (
      update SCHEMA.tasks set status = 'cancelled', status_message = :statusMessage, bytes = bytes + octet_length(:outcomeHead), ${ended}
      where task_id = :taskId and version = :version and ${live} returning number, task_id, ${cancelledOutcome} as outcome),${settled}`,

  /** Those with the environment of the asker are told apart by their text, before JSON is parsed. */
  findUnclaimable: `
    select ${columns}, ${now} as now from SCHEMA.tasks as t
    where status = 'queued' and project = :project and not_before <= ${now} - :dueMs::bigint
      and environment <> :environment and not ${fits}
      and (not starts_with(coalesce(status_message, ''), :prefix) or updated_at + ttl_ms <= ${now})
      and not exists (
        select 1 from SCHEMA.tasks as running
        where running.worker is not null and running.project = t.project and running.environment = t.environment)
    limit :count`,
  markUnclaimable: `
    update SCHEMA.tasks set status_message = :statusMessage, ${changed}
    where task_id = :taskId and version = :version and status = 'queued' and ${quickly} returning task_id`,
  giveUpUnclaimable: `
    with over as (
      update SCHEMA.tasks set status = 'failed', status_message = :statusMessage, bytes = bytes + octet_length(:outcome), ${ended}
      where task_id = :taskId and version = :version and status = 'queued' returning number, task_id, :outcome::text as outcome),${settled}`,
  setEnvironment: `
    update SCHEMA.tasks set environment = :environment, status_message = null, not_before = ${now}, ${changed}
    where ${own} and status = 'queued' returning task_id`,

  settle: "select SCHEMA.settle_tasks(:given::json) as place",
  wasSettled: `
    select task_id from SCHEMA.tasks join SCHEMA.outcomes using (number)
    where task_id = :taskId and fence = :fence and status = :status and outcome = :outcome`,
  cancel: `
    with over as (
      update SCHEMA.tasks set status = 'cancelled', status_message = :statusMessage, bytes = bytes + octet_length(:outcomeHead), ${ended}
      where ${own} and ${live} returning number, task_id, ${cancelledOutcome} as outcome),${settled}`,
  wasCancelled: `
    select task_id from SCHEMA.tasks join SCHEMA.outcomes using (number)
    where ${own} and status = 'cancelled' and starts_with(outcome, :outcomeHead)`,
  dropKey: `update SCHEMA.tasks set idempotency_key = null where ${own} and not (${live}) and idempotency_key is not null and ${quickly} returning task_id`,
  dropToken: `update SCHEMA.tasks set progress_token = null where ${own} and ${live} and progress_token is not null and ${quickly} returning task_id`,

  retryLater: `
    update SCHEMA.tasks set status = ${waitingStatus}, ${released}, not_before = ${now} + :delayMs, status_message = :why, ${changed}
    where ${holds} and not is_call returning task_id`,
  giveBack: `
    update SCHEMA.tasks
    set status = ${waitingStatus}, ${released}, attempts = attempts - 1, not_before = ${now}, status_message = coalesce(:why, status_message), ${changed}
    where ${holds} and not is_call returning task_id`,
  wasReleased: `
    select task_id from SCHEMA.tasks
    where task_id = :taskId and fence = :fence and worker is null and ${live} and (:why::text is null or status_message = :why)`,
  handOut: `
    update SCHEMA.tasks
    set is_call = false, reason = :reason, ttl_ms = :ttlMs, is_safe = :isSafe, max_attempts = :maxAttempts, backoff_ms = :backoffMs, ${changed}
    where ${holds} and is_call returning task_id`,
  wasHandedOut:
    "select task_id from SCHEMA.tasks where task_id = :taskId and fence = :fence and not is_call and reason = :reason",
  forget: `delete from SCHEMA.tasks where ${holds} and is_call and ${quickly} returning task_id`,
  isThere: "select task_id from SCHEMA.tasks where task_id = :taskId",

  interrupt: `
    with again as (
      update SCHEMA.tasks
      set status = ${waitingStatus}, crashes = crashes + 1, attempts = attempts - 1, ${released}, not_before = ${now}, ${changed},
          status_message = case when crashes = 0 then :once else replace(:often, '#', (crashes + 1)::text) end
      where ${isLost} and ${mayRunAgain}
      returning task_id),
    over as (
      update SCHEMA.tasks
      set status = 'failed', crashes = crashes + 1, attempts = attempts - 1, bytes = bytes + octet_length(${giveUpOutcome}),
          status_message = case when is_call then :callMessage when is_safe then :crashedMessage else :unknownMessage end, ${ended}
      where ${isLost} and not (${mayRunAgain})
      returning number, task_id, ${giveUpOutcome} as outcome),${settled}
    union all select task_id from again`,

  /** Both or neither, also where whether it may run again is said with it. */
  keepStep: `
    with task as (
      update SCHEMA.tasks set is_safe = coalesce(:isSafe, is_safe) where ${holds} returning number)
    insert into SCHEMA.steps (number, name, value) select number, :name, :value from task
    on conflict (number, name) do update set value = excluded.value returning name`,
  steps: "select name, value from SCHEMA.steps join SCHEMA.tasks using (number) where task_id = :taskId",

  workers: `with recursive ${holders} select worker from held where worker is not null`,
  /** Of whom nothing was heard for a lease's time, or never. */
  overdueWorkers: `
    with recursive ${holders}
    select worker from held left join SCHEMA.workers as known using (worker)
    where worker is not null and (known.lease_until is null or known.lease_until < ${expiredBefore})`,
  forgetWorkers: `delete from SCHEMA.workers where lease_until < ${now} - :ageMs and ${quickly}`,
  sweep: `
    delete from SCHEMA.tasks where number in (select number from SCHEMA.tasks where expires_at <= ${now} limit :limit for update skip locked)
      and ${quickly} returning task_id`,
  prune: `
    delete from SCHEMA.tasks
    where number in (select number from SCHEMA.tasks where ${ofCaller} and finished_at is not null limit :limit for update)
    returning task_id`,
  pruneOne: `delete from SCHEMA.tasks where ${own} and finished_at is not null returning task_id`,

  recordDurations: `
    insert into SCHEMA.durations as d (command, kind, bucket, count)
    select command, kind, bucket, sum(count)
    from unnest(:commands::text[], :kinds::text[], :buckets::bigint[], :counts::bigint[]) as fresh (command, kind, bucket, count)
    group by command, kind, bucket order by command, kind, bucket
    on conflict (command, kind, bucket) do update set count = d.count + excluded.count`,
  durations:
    "select command, kind, bucket, count from SCHEMA.durations where :command::text is null or command = :command order by command, kind, bucket",

  notify: "select pg_notify(:channel, :payload)",

  ...sessionStatements,
  ...transferStatements,
  ...keyStatements,
} as const;

export type StatementName = keyof typeof statements;

/** A statement as the driver takes it: its text, and which values it wants in which order. */
export interface PreparedText {
  readonly text: string;
  readonly names: readonly string[];
}

/** Every statement for one schema. */
export function prepareTexts(schema: string): Readonly<Record<StatementName, PreparedText>> {
  const prepared = Object.entries(statements).map(([name, text]) => [name, prepareText(text, schema)]);
  return Object.fromEntries(prepared) as Record<StatementName, PreparedText>;
}

function prepareText(text: string, schema: string): PreparedText {
  const names: string[] = [];
  const numbered = text.replaceAll("SCHEMA", `"${schema}"`).replace(/(?<!:):([a-z]\w*)/gi, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return { text: numbered, names };
}
