import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Redis } from "ioredis";
import pg from "pg";
import { byStore } from "../../src/queue/open-dispatcher.ts";
import { openStore } from "../../src/store/open.ts";
import { startServer, urlOf } from "../helpers/postgres.ts";
import type { AuditLine, Row } from "./check.ts";
import type { Ground } from "./ground.ts";

const schema = "chaos";
const guardMs = 60_000;

/** As SQLite's, in the words of this database. */
const auditTriggers = `
  create table ${schema}.audit (
    number bigint generated always as identity primary key, at float8, task_id text, old_status text, new_status text,
    old_fence int, new_fence int, old_worker text, new_worker text, was_over int, is_crash int);
  create function ${schema}.audit_update() returns trigger language plpgsql as $$
  begin
    insert into ${schema}.audit (at, task_id, old_status, new_status, old_fence, new_fence, old_worker, new_worker, was_over, is_crash)
    values (extract(epoch from clock_timestamp()) * 1000, new.task_id, old.status, new.status, old.fence, new.fence, old.worker,
            new.worker, (old.finished_at is not null)::int, (new.crashes > old.crashes)::int);
    return null;
  end $$;
  create function ${schema}.audit_delete() returns trigger language plpgsql as $$
  begin
    insert into ${schema}.audit (at, task_id, old_status, new_status, old_fence, new_fence, was_over, is_crash)
    values (extract(epoch from clock_timestamp()) * 1000, old.task_id, old.status, 'deleted', old.fence, old.fence,
            (old.finished_at is not null)::int, 0);
    return null;
  end $$;
  create trigger audit_update after update on ${schema}.tasks for each row
  when (old.status is distinct from new.status or old.fence is distinct from new.fence
     or old.worker is distinct from new.worker or old.finished_at is not null)
  execute function ${schema}.audit_update();
  create trigger audit_delete after delete on ${schema}.tasks for each row execute function ${schema}.audit_delete();`;

const row = `
  task_id, command, input, idempotency_key, status, is_safe::int as is_safe, max_attempts::int as max_attempts,
  fence::int as fence, attempts, crashes, outcome, finished_at::float8 as finished_at
  from ${schema}.tasks join ${schema}.inputs using (number) left join ${schema}.outcomes using (number)`;

/**
 * A PostgreSQL server of the run's own, whose nodes are taken to be machines of their own: nobody can tell that
 * another's process is gone. `queue` is the address of another queue than the one in the same database.
 */
export async function openPostgresGround(folder: string, queue?: string): Promise<Ground> {
  const server = new Server(path.join(tmpdir(), `${path.basename(folder)}-postgres`));
  const port = await server.start();
  const addressOf = (name: string) => ({ folder, store: urlOf(port, name), queue: queue ?? urlOf(port, name) });
  const address = addressOf(schema);
  const warmUp = path.join(folder, "warm-up");
  mkdirSync(warmUp);
  await (await openStore(address.store)).close();
  const pool = new pg.Pool({ connectionString: address.store.replace(/\?.*/, ""), max: 2 });
  pool.on("error", () => undefined);
  const all = <T>(sql: string, ...values: unknown[]) =>
    patiently(() => pool.query(sql, values)).then((it) => it.rows as T[]);
  await pool.query(auditTriggers);
  return {
    address,
    elsewhere: { ...addressOf(`${schema}_warm_up`), folder: warmUp },
    cast: { nodes: 3, workers: 2, lateWorkers: 0 },
    upsets: new Map([
      ...(queue === byStore
        ? []
        : [["queue emptied", () => (queue === undefined ? emptyTables(pool) : flush(queue))] as const]),
      ["connections cut", () => cutConnections(pool)],
      ["database stopped", () => server.restart("SIGINT")],
      ["database crashed", () => server.restart("SIGQUIT")],
    ]),
    rows: () => all<Row>(`select ${row}`),
    audit: () => all<AuditLine>(`select * from ${schema}.audit order by number`),
    held: () => all(`select task_id, fence::int as fence, worker from ${schema}.tasks where status = 'working'`),
    fenceOf: async (taskId) => (await all<Row>(`select ${row} where task_id = $1`, taskId))[0]?.fence,
    endedSince: (at) => all(`select ${row} where finished_at is not null and updated_at >= $1`, Math.floor(at)),
    liveCount: async () => (await all(`select 1 from ${schema}.tasks where finished_at is null`)).length,
    async damage() {
      const ended = `from ${schema}.tasks where finished_at is not null and number`;
      const left = await all<Row>(`select task_id ${ended} in (select number from ${schema}.steps)`);
      const bare = await all<Row>(`select task_id ${ended} not in (select number from ${schema}.outcomes)`);
      return [
        ...left.map(({ task_id }) => `${task_id} has ended, but its steps are still there`),
        ...bare.map(({ task_id }) => `${task_id} has ended, but has no outcome`),
      ];
    },
    async close() {
      await pool.end();
      await server.stop();
    },
  };
}

/** What is only read is read again while the database is away. */
async function patiently<T>(act: () => Promise<T>): Promise<T> {
  for (const endsAt = performance.now() + guardMs; ; await wait(50)) {
    try {
      return await act();
    } catch (error) {
      if (performance.now() > endsAt) throw error;
    }
  }
}

/** All that BullMQ has, but for the tables themselves and which of them there are. */
async function emptyTables(pool: pg.Pool): Promise<void> {
  await patiently(async () => {
    const { rows } = await pool.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
       where schemaname = '${schema}_queue' and tablename !~ 'migration|version'`,
    );
    if (rows.length > 0) await pool.query(`truncate ${rows.map(({ name }) => name).join(", ")} cascade`);
  });
}

async function flush(queue: string): Promise<void> {
  const redis = new Redis(queue);
  await redis.flushall();
  redis.disconnect();
}

async function cutConnections(pool: pg.Pool): Promise<void> {
  await patiently(() =>
    pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
    ),
  );
}

/** The server, by the process that keeps it. */
class Server {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async start(): Promise<number> {
    return (await startServer(this.#folder, process.pid)).port;
  }

  /** Ends it as its operator would, or as if it had crashed, and waits until it is there again. */
  async restart(how: "SIGINT" | "SIGQUIT"): Promise<void> {
    const { starts, keeper } = this.#state();
    process.kill(keeper, how === "SIGINT" ? "SIGHUP" : "SIGUSR2");
    await this.#until(() => this.#state().starts > starts);
  }

  async stop(): Promise<void> {
    process.kill(this.#state().keeper, "SIGTERM");
    await this.#until(() => !existsSync(this.#folder));
  }

  async #until(isSo: () => boolean): Promise<void> {
    for (const endsAt = performance.now() + guardMs; !isSo(); await wait(10))
      if (performance.now() > endsAt) throw new Error("The database did not do as it was told within a minute.");
  }

  #state(): { readonly keeper: number; readonly starts: number } {
    return JSON.parse(readFileSync(path.join(this.#folder, "ready"), "utf8"));
  }
}
