// Ended tasks in bulk, straight into the tables of a file that was opened once.
import Database from "better-sqlite3";
import { project } from "./engine.mjs";

const dayMs = 86_400_000;

/**
 * Makes `count` completed tasks in one transaction: of `callers` in turn, with so many bytes of result; the first
 * `expired` of them are over.
 */
export function loadEnded(file, { count, callers = 100, resultBytes = 200, expired = 0 }) {
  const db = new Database(file);
  db.pragma("synchronous = OFF");
  db.pragma("journal_mode = MEMORY");
  db.pragma("cache_size = -256000");
  const result = { ending: "completed", data: { text: "y".repeat(resultBytes) }, messages: [], log: [], durationMs: 1 };
  const values = {
    first: db.prepare("select coalesce(max(number), 0) from tasks").pluck().get() + 1,
    count,
    expired,
    project,
    now: Date.now(),
    input: '{"text":"hello"}',
    outcome: JSON.stringify(result),
  };
  const numbers = "with recursive n (i) as (select 0 union all select i + 1 from n where i + 1 < :count)";
  const statements = [
    `insert into tasks (number, task_id, caller, project, command, digest, reason, ttl_ms, is_safe, max_attempts, backoff_ms, status, version, fence,
                        attempts, not_before, bytes, created_at, updated_at, started_at, finished_at, expires_at)
     ${numbers}
     select :first + i, lower(hex(randomblob(16))), 'caller ' || (i % ${callers}), :project, 'echo', lower(hex(randomblob(22))), 'bench', ${dayMs},
            1, 1, 1000, 'completed', 3, 1, 1, :now, octet_length(:input) + octet_length(:outcome) + 2, :now - :count + i, :now, :now, :now,
            iif(i < :expired, :now - 1, :now + ${dayMs})
     from n`,
    `insert into inputs ${numbers} select :first + i, :input from n`,
    `insert into outcomes ${numbers} select :first + i, :outcome from n`,
  ];
  db.transaction(() => {
    for (const statement of statements) db.prepare(statement).run(values);
  })();
  db.pragma("journal_mode = WAL");
  db.close();
}
