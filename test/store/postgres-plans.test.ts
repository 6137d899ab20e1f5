import pg from "pg";
import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { PostgresStore } from "../../src/store/postgres/postgres-store.ts";
import { newTask } from "../../src/testing/store-cases/bench.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { adminOf, newSchema, serverPort, urlOf } from "../helpers/postgres.ts";

const admin = adminOf(serverPort);
const many = 400;

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
