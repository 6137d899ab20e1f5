/**
 * The statements of what servers share beside the tasks, whole, each named for its verb; SQLite's say the same.
 *
 * Whoever writes a letter holds a lock until it is committed, so that letters are seen in the order of their numbers: who
 * has read up to one has missed none before it.
 */
const now = "SCHEMA.now_ms()";
const inTurn = "turn as materialized (select pg_advisory_xact_lock(hashtextextended('meanwhile letters SCHEMA', 0)))";
const isHeld =
  "exists (select 1 from SCHEMA.session_notes as n where n.session_id = s.session_id and n.name like 'stream:%')";
const isOver = `used_at + silence_ms <= ${now}`;
const intoLetters = "insert into SCHEMA.letters (letter_id, session_id, from_node, to_node, text, posted_at)";
/** What nobody reads of one session is bounded. */
const hasRoom = (session: string) => `(
      select count(*) < :maxCount and coalesce(sum(length(l.text)), 0) < :maxBytes
      from SCHEMA.letters as l where l.session_id = ${session})`;

export const sessionStatements = {
  makeSecret: "insert into SCHEMA.shared_secret (number, secret) values (1, :secret) on conflict do nothing",
  readSecret: "select secret from SCHEMA.shared_secret where number = 1",

  /** Who comes again under the same id, because no answer came, was the first. */
  useOnce: `
    insert into SCHEMA.used_marks as m (mark, until, use_id) values (:mark, ${now} + :forMs, :useId)
    on conflict (mark) do update set until = excluded.until, use_id = excluded.use_id
    where m.use_id = excluded.use_id or m.until <= ${now} returning mark`,
  sweepMarks: `delete from SCHEMA.used_marks where until <= ${now}`,

  joinNode: `
    insert into SCHEMA.nodes (node, seen_at) values (:node, ${now})
    on conflict (node) do update set seen_at = excluded.seen_at`,
  leaveNode: "delete from SCHEMA.nodes where node = :node",
  findNode: `select node from SCHEMA.nodes where node = :node and seen_at > ${now} - :livesMs`,
  sweepNodes: `delete from SCHEMA.nodes where seen_at <= ${now} - :livesMs`,

  keepSession: `
    with ${inTurn},
    known as (select count(*) as count from SCHEMA.sessions, turn where caller = :caller),
    over as (
      delete from SCHEMA.sessions where session_id in (
        select session_id from SCHEMA.sessions as s where caller = :caller and not ${isHeld}
        order by used_at limit (select greatest(count + 1 - :most, 0) from known))
      returning session_id),
    told as (${intoLetters} select gen_random_uuid()::text, session_id, :from, null, :ended, ${now} from over)
    insert into SCHEMA.sessions (session_id, caller, greeting, silence_ms, used_at)
    select :sessionId, :caller, :greeting, :silenceMs, ${now} from known
    where count < :most or exists (select 1 from over)
    on conflict (session_id) do update set used_at = excluded.used_at returning session_id`,
  findSession: `
    select session_id, caller, greeting, silence_ms,
           array(select name from SCHEMA.session_notes as n where n.session_id = s.session_id order by name) as names,
           array(select value from SCHEMA.session_notes as n where n.session_id = s.session_id order by name) as notes
    from SCHEMA.sessions as s where session_id = :sessionId and caller = :caller and not ${isOver}`,
  /** What would be too much of either is left out; the other is written all the same. */
  noteSession: `
    with ${inTurn},
    gone as (delete from SCHEMA.session_notes where session_id = :sessionId and name = any(:gone::text[])),
    kept as (
      insert into SCHEMA.session_notes (session_id, name, value)
      select :sessionId, fresh.name, fresh.value from unnest(:names::text[], :notes::text[]) as fresh (name, value)
      where exists (select 1 from SCHEMA.sessions where session_id = :sessionId)
        and (select coalesce(sum(length(n.name) + length(n.value)), 0) from SCHEMA.session_notes as n
             where n.session_id = :sessionId and not n.name = any(:names::text[])) + :bytes <= :maxNoteBytes
      on conflict (session_id, name) do update set value = excluded.value)
    ${intoLetters} select :letterId, :sessionId, :from, :to, :text, ${now} from turn where ${hasRoom(":sessionId")}
    on conflict (letter_id) do nothing`,
  touchSessions: `
    update SCHEMA.sessions as s set used_at = ${now} - used.ago
    from unnest(:sessionIds::text[], :agos::bigint[]) as used (session_id, ago)
    where s.session_id = used.session_id and s.used_at < ${now} - used.ago`,
  endSession: `
    with ${inTurn},
    over as (delete from SCHEMA.sessions using turn where session_id = :sessionId returning session_id),
    told as (${intoLetters} select gen_random_uuid()::text, session_id, :from, null, :ended, ${now} from over)
    select session_id from over`,
  sweepSessions: `delete from SCHEMA.sessions where ${isOver}`,

  postLetters: `
    with ${inTurn}
    ${intoLetters}
    select fresh.letter_id, fresh.session_id, fresh.from_node, nullif(fresh.to_node, ''), fresh.text, ${now}
    from turn, unnest(:ids::text[], :sessionIds::text[], :froms::text[], :tos::text[], :texts::text[])
      as fresh (letter_id, session_id, from_node, to_node, text)
    where ${hasRoom("fresh.session_id")}
    on conflict (letter_id) do nothing`,
  lastLetter: "select coalesce(max(number), 0) as number from SCHEMA.letters",
  lettersAfter:
    "select number, session_id, from_node, to_node, text from SCHEMA.letters where number > :after order by number limit :limit",
  dropLetters: "delete from SCHEMA.letters where to_node = :node and number <= :last",
  sweepLetters: `delete from SCHEMA.letters where posted_at <= ${now} - :livesMs`,
} as const;
