import path from "node:path";
import Database from "better-sqlite3";
import { byStore } from "../../src/queue/open-dispatcher.ts";
import { openStore } from "../../src/store/open.ts";
import type { AuditLine, Row } from "./check.ts";
import type { Ground, GroundAddress } from "./ground.ts";

/** Every change of a task that matters, written down by the database itself in the same transaction. */
const auditTriggers = `
  create table if not exists audit (
    number integer primary key, at real, task_id text, old_status text, new_status text, old_fence integer, new_fence integer,
    old_worker text, new_worker text, was_over integer, is_crash integer);
  create trigger if not exists audit_update after update on tasks
  when old.status is not new.status or old.fence is not new.fence or old.worker is not new.worker or old.finished_at is not null
  begin
    insert into audit (at, task_id, old_status, new_status, old_fence, new_fence, old_worker, new_worker, was_over, is_crash)
    values (unixepoch('subsec') * 1000, new.task_id, old.status, new.status, old.fence, new.fence, old.worker, new.worker,
            old.finished_at is not null, new.crashes > old.crashes);
  end;
  create trigger if not exists audit_delete after delete on tasks
  begin
    insert into audit (at, task_id, old_status, new_status, old_fence, new_fence, was_over, is_crash)
    values (unixepoch('subsec') * 1000, old.task_id, old.status, 'deleted', old.fence, old.fence, old.finished_at is not null, 0);
  end;`;

/** One file that all processes share. */
export async function openSqliteGround(folder: string): Promise<Ground> {
  const address = addressOf(folder);
  await (await openStore(address.store)).close();
  const db = new Database(address.store, { timeout: 10_000 });
  db.exec(auditTriggers);
  const all = <T>(sql: string, ...values: unknown[]) => db.prepare(sql).all(...values) as T[];
  return {
    address,
    elsewhere: addressOf(path.join(folder, "warm-up")),
    cast: { nodes: 2, workers: 2, lateWorkers: 2 },
    upsets: new Map(),
    rows: async () => all<Row>("select * from tasks left join inputs using (number) left join outcomes using (number)"),
    audit: async () => all<AuditLine>("select * from audit order by number"),
    held: async () => all("select task_id, fence, worker from tasks where status = 'working'"),
    fenceOf: async (taskId) => all<Row>("select fence from tasks where task_id = ?", taskId)[0]?.fence,
    endedSince: async (at) =>
      all(
        "select task_id, status, outcome from tasks left join outcomes using (number) where finished_at is not null and updated_at >= ?",
        at,
      ),
    liveCount: async () => all("select 1 from tasks where finished_at is null").length,
    async damage() {
      const verdict = db.pragma("integrity_check", { simple: true });
      const left = all<Row>(
        "select task_id from steps where task_id not in (select task_id from tasks where finished_at is null)",
      );
      const orphans = ["inputs", "outcomes"].flatMap((table) =>
        all<{ number: number }>(`select number from ${table} except select number from tasks`).map(
          ({ number }) => `${table} has ${number}, whose task is gone`,
        ),
      );
      return [
        ...orphans,
        ...(verdict === "ok" ? [] : [`the database is damaged: ${String(verdict)}`]),
        ...left.map(({ task_id }) => `${task_id} has ended, but its steps are still there`),
      ];
    },
    close: async () => void db.close(),
  };
}

function addressOf(folder: string): GroundAddress {
  return { folder, store: path.join(folder, "tasks.db"), queue: byStore };
}
