import pg from "pg";
import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { PostgresStore } from "../../src/store/postgres/postgres-store.ts";
import { Turns } from "../../src/task/shares.ts";
import { newTask } from "../../src/testing/store-cases/bench.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { adminOf, newSchema, serverPort, urlOf } from "../helpers/postgres.ts";

const admin = adminOf(serverPort);
const many = 400;
const waiting = 500;

/** A store in a database of its own, of which the planner knows nothing. */
interface OwnDatabase {
  readonly url: string;
  /** How many rows and entries of indexes each of so many acts reads, on a store that was opened for it. */
  readsOf(count: number, act: (store: PostgresStore) => Promise<unknown>): Promise<number>;
}

async function onOwnDatabase(act: (own: OwnDatabase) => Promise<void>): Promise<void> {
  const name = newSchema();
  await (await admin()).query(`create database ${name}`);
  const url = urlOf(await serverPort()).replace(/postgres\?.*/, name);
  try {
    await withStore(url, () => withClient(url, keepPlannerInTheDark));
    await act({
      url,
      async readsOf(count, act) {
        const before = await readsSoFar(url);
        await withStore(url, async (store) => {
          for (let n = 0; n < count; n++) await act(store);
        });
        return ((await readsSoFar(url)) - before) / count;
      },
    });
  } finally {
    await (await admin()).query(`drop database ${name}`);
  }
}

/** Nothing looks at the tables by itself while this lasts. */
async function keepPlannerInTheDark(client: pg.Client): Promise<void> {
  for (const table of ["tasks", "inputs", "outcomes", "steps", "workers"])
    await client.query(`alter table meanwhile.${table} set (autovacuum_enabled = off)`);
}

async function withStore(url: string, act: (store: PostgresStore) => Promise<void>): Promise<void> {
  const store = new PostgresStore(url, systemClock, silentLog);
  try {
    await store.open();
    await act(store);
  } finally {
    await store.close();
  }
}

async function withClient<T>(url: string, act: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}

/** What has been read of the tasks, once nobody else is connected to the database. */
function readsSoFar(url: string): Promise<number> {
  return withClient(url, async (client) => {
    // A connection has told the server what it read by the time it is gone.
    await waitFor(async () => {
      const { rows } = await client.query(
        "select 1 from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()",
      );
      return rows.length === 0;
    });
    const { rows } = await client.query<{ reads: string }>(
      `select (select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'tasks')
            + (select seq_tup_read from pg_stat_user_tables where relname = 'tasks') as reads`,
    );
    return Number(rows[0]?.reads);
  });
}

/** Tasks as somebody has left them: `rows` selects id, caller, status and worker of each. */
async function fill(url: string, rows: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(
      `insert into meanwhile.tasks (task_id, caller, project, command, digest, reason, ttl_ms, is_safe, max_attempts, backoff_ms,
         status, worker, lease_until, fence, attempts, not_before, questions, open_questions, bytes, created_at, updated_at, is_call,
         door, is_endless, is_proven)
       select id, caller, 'p', 'work', id, '', 1000, true, 1, 0, status, worker, case when worker is null then null else 0 end, 1, 0, 0,
         '[]', 0, 2, 0, 0, false, 'mcp', false, false
       from (${rows}) as given (id, caller, status, worker)`,
    ),
  );
}

test("on tables that the planner knows nothing of, a task is made, found, claimed and settled without reading the caller's others", async () => {
  await onOwnDatabase(async ({ url, readsOf }) => {
    const work = async (store: PostgresStore) => {
      const created = await store.create(
        newTask(0, { taskId: crypto.randomUUID(), caller: "ada", digest: crypto.randomUUID(), project: "p" }),
        { joinsEqual: true, maxLive: 10 },
      );
      const task = await store.claim({ project: "p", worker: "w", leaseMs: 60_000 });
      expect(created).toMatchObject({ kind: "created", task: { taskId: task?.taskId } });
      if (task === undefined) return;
      await store.get({ caller: "ada" }, task.taskId);
      await store.settle(task, { ending: "completed", data: {}, messages: [], log: [], durationMs: 1 });
    };
    await withStore(url, async (store) => {
      for (let n = 0; n < many; n++) await work(store);
      const listed = await store.list({ caller: "ada" }, { limit: 10, statuses: ["failed", "queued"] });
      expect(listed.tasks).toEqual([]);
    });
    // Of each row that changed there are dead ones, and entries of them, until somebody cleans up.
    expect(await readsOf(50, work)).toBeLessThan(many / 2);
  });
});

test("however many callers wait, a claim looks at some of them only, and all have their turns", async () => {
  await onOwnDatabase(async ({ url, readsOf }) => {
    const turns = new Turns();
    const served = new Map<string, number>();
    const claim = async (store: PostgresStore) => {
      const shares = { full: [], fullOfEndless: [], turns: turns.order(new Map()) };
      const task = await store.claim({ project: "p", worker: "w", leaseMs: 60_000, shares });
      if (task === undefined) throw new Error("There was nothing to claim.");
      turns.serve(task.caller);
      served.set(task.caller, (served.get(task.caller) ?? 0) + 1);
    };
    // Who has come last comes first in the alphabet.
    await fill(
      url,
      `select n || ' of ' || c, 'caller ' || lpad((${waiting} - c)::text, 6, '0'), 'queued', null
       from generate_series(1, ${waiting}) as c, generate_series(1, 4) as n`,
    );
    expect(await readsOf(50, claim)).toBeLessThan(600);
    await withStore(url, async (store) => {
      for (let n = 0; n < 2 * waiting; n++) await claim(store);
    });
    expect([served.size, Math.max(...served.values())]).toEqual([waiting, expect.toSatisfy((most) => most <= 4)]);
  });
});

test("however many tasks are held, only those of workers that were not heard of are judged", async () => {
  await onOwnDatabase(async ({ url, readsOf }) => {
    await fill(url, "select n::text, 'ada', 'working', 'alive ' || n % 5 from generate_series(1, 2000) as n");
    await withClient(url, (client) =>
      client.query("insert into meanwhile.workers select distinct worker, 1e15::bigint from meanwhile.tasks"),
    );
    expect(await readsOf(20, (store) => store.interrupt())).toBeLessThan(30);
    await fill(
      url,
      "select n::text, 'ada', 'working', case when n = 3000 then 'gone' else 'silent' end from generate_series(3000, 3001) as n",
    );
    await withClient(url, (client) => client.query("insert into meanwhile.workers values ('silent', 1)"));
    await withStore(url, async (store) => {
      expect((await store.interrupt()).toSorted()).toEqual(["3000", "3001"]);
      expect((await store.workers()).toSorted()).toEqual([0, 1, 2, 3, 4].map((n) => `alive ${n}`));
      await store.sweep();
    });
    const { rows } = await withClient(url, (client) =>
      client.query("select count(*)::int as count from meanwhile.workers"),
    );
    expect(rows).toEqual([{ count: 5 }]);
  });
});
