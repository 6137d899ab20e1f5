/** The statements of what servers share beside the tasks, whole, each named for its verb. */
const isHeld = `exists (select 1 from json_each(notes) where key glob 'stream:*')`;
const isOver = "used_at + silence_ms <= :now";

export const sessionStatements = {
  makeSecret: "insert into shared_secret (number, secret) values (1, :secret) on conflict do nothing",
  readSecret: "select secret from shared_secret where number = 1",

  useOnce: "insert into used_marks (mark, until) values (:mark, :until) on conflict do nothing",
  sweepMarks: "delete from used_marks where until <= :now",

  joinNode:
    "insert into nodes (node, seen_at) values (:node, :now) on conflict (node) do update set seen_at = excluded.seen_at",
  leaveNode: "delete from nodes where node = :node",
  findNode: "select node from nodes where node = :node and seen_at > :before",
  sweepNodes: "delete from nodes where seen_at <= :before",

  countSessions: "select count(*) as count from sessions where caller = :caller",
  endIdle: `
    delete from sessions where session_id in (
      select session_id from sessions where caller = :caller and not ${isHeld} order by used_at limit :count)
    returning session_id`,
  keepSession: `
    insert into sessions (session_id, caller, greeting, silence_ms, used_at)
    values (:sessionId, :caller, :greeting, :silenceMs, :now)`,
  findSession: `select * from sessions where session_id = :sessionId and caller = :caller and not ${isOver}`,
  noteSession: `
    update sessions set notes = json_patch(notes, :notes)
    where session_id = :sessionId and length(json_patch(notes, :notes)) <= :maxBytes`,
  touchSession: "update sessions set used_at = :usedAt where session_id = :sessionId and used_at < :usedAt",
  endSession: "delete from sessions where session_id = :sessionId",
  sweepSessions: `delete from sessions where ${isOver}`,

  postLetter: `
    insert into letters (session_id, from_node, to_node, text, posted_at)
    select :sessionId, :from, :to, :text, :now
    where (select count(*) < :maxCount and coalesce(sum(length(text)), 0) < :maxBytes from letters where session_id = :sessionId)`,
  lastLetter: "select coalesce(max(number), 0) as number from letters",
  lettersAfter:
    "select number, session_id, from_node, to_node, text from letters where number > :after order by number",
  dropLetters: "delete from letters where to_node = :node and number <= :last",
  sweepLetters: "delete from letters where posted_at <= :before",
} as const;
