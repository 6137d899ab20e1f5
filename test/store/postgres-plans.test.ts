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

async function withClient<T>(url: string, act: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}

/** How many rows and entries of indexes were read from the tasks of a database, once nobody else is connected to it. */
function readsOf(url: string): Promise<number> {
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

test("on tables that the planner knows nothing of, a task is made, found, claimed and settled without reading the caller's others", async () => {
  const name = newSchema();
  await (await admin()).query(`create database ${name}`);
  const url = urlOf(await serverPort()).replace(/postgres\?.*/, name);
  const open = () => new PostgresStore(url, systemClock, silentLog);
  let store = open();
  const create = (claim?: { worker: string; leaseMs: number }) =>
    store.create(
      newTask(0, { taskId: crypto.randomUUID(), caller: "ada", digest: crypto.randomUUID(), project: "p" }),
      {
        joinsEqual: true,
        maxLive: 10,
        ...(claim && { claim }),
      },
    );
  const work = async () => {
    const created = await create();
    const task = await store.claim({ project: "p", worker: "w", leaseMs: 60_000 });
    expect(created).toMatchObject({ kind: "created", task: { taskId: task?.taskId } });
    if (task === undefined) return;
    await store.get({ caller: "ada" }, task.taskId);
    await store.settle(task, { ending: "completed", data: {}, messages: [], log: [], durationMs: 1 });
  };
  try {
    await store.open();
    // Nothing looks at the tables by itself while this lasts.
    await withClient(url, async (client) => {
      for (const table of ["tasks", "inputs", "outcomes", "steps"])
        await client.query(`alter table meanwhile.${table} set (autovacuum_enabled = off)`);
    });
    for (let n = 0; n < many; n++) await work();
    const listed = await store.list({ caller: "ada" }, { limit: 10, statuses: ["failed", "queued"] });
    expect(listed.tasks).toEqual([]);
    await store.close();
    const before = await readsOf(url);
    store = open();
    for (let n = 0; n < 50; n++) await work();
    await store.close();
    const reads = ((await readsOf(url)) - before) / 50;
    // Of each row that changed there are dead ones, and entries of them, until somebody cleans up.
    expect(reads).toBeLessThan(many / 2);
  } finally {
    await store.close();
    await (await admin()).query(`drop database ${name}`);
  }
});

test("however many callers wait, a claim looks at some of them only, and all have their turns", async () => {
  const name = newSchema();
  await (await admin()).query(`create database ${name}`);
  const url = urlOf(await serverPort()).replace(/postgres\?.*/, name);
  let store = new PostgresStore(url, systemClock, silentLog);
  const turns = new Turns();
  const served = new Map<string, number>();
  const claim = async () => {
    const shares = { full: [], fullOfEndless: [], turns: turns.order(new Map()) };
    const task = await store.claim({ project: "p", worker: "w", leaseMs: 60_000, shares });
    if (task === undefined) throw new Error("There was nothing to claim.");
    turns.serve(task.caller);
    served.set(task.caller, (served.get(task.caller) ?? 0) + 1);
  };
  try {
    await store.open();
    await withClient(url, async (client) => {
      await client.query("alter table meanwhile.tasks set (autovacuum_enabled = off)");
      // Who has come last comes first in the alphabet.
      await client.query(
        `insert into meanwhile.tasks (task_id, caller, project, command, digest, reason, ttl_ms, is_safe, max_attempts, backoff_ms,
           status, fence, attempts, not_before, questions, open_questions, bytes, created_at, updated_at, is_call, door, is_endless, is_proven)
         select n || ' of ' || c, 'caller ' || lpad((${waiting} - c)::text, 6, '0'), 'p', 'work', n || ' of ' || c, '', 1000, true, 1, 0,
           'queued', 0, 0, 0, '[]', 0, 2, 0, 0, false, 'mcp', false, false
         from generate_series(1, ${waiting}) as c, generate_series(1, 4) as n`,
      );
    });
    await store.close();
    const before = await readsOf(url);
    store = new PostgresStore(url, systemClock, silentLog);
    for (let n = 0; n < 50; n++) await claim();
    await store.close();
    expect(((await readsOf(url)) - before) / 50).toBeLessThan(600);
    store = new PostgresStore(url, systemClock, silentLog);
    for (let n = 0; n < 2 * waiting; n++) await claim();
    expect([served.size, Math.max(...served.values())]).toEqual([waiting, expect.toSatisfy((most) => most <= 4)]);
  } finally {
    await store.close();
    await (await admin()).query(`drop database ${name}`);
  }
});
