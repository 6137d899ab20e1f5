import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { PostgresStore } from "../../src/store/postgres/postgres-store.ts";
import { newTask } from "../../src/testing/store-cases/bench.ts";
import { adminOf, newSchema, serverPort, urlOf } from "../helpers/postgres.ts";

const admin = adminOf(serverPort);
const many = 400;

/** How many rows and entries of indexes were read from the tasks of a schema, once the server has counted them. */
async function readsOf(schema: string): Promise<number> {
  const client = await admin();
  let last = -1;
  for (;;) {
    // Whoever has read tells the server of it a second later.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    const { rows } = await client.query<{ reads: string }>(
      `select (select sum(idx_tup_read) from pg_stat_user_indexes where schemaname = $1 and relname = 'tasks')
            + (select seq_tup_read from pg_stat_user_tables where schemaname = $1 and relname = 'tasks') as reads`,
      [schema],
    );
    const reads = Number(rows[0]?.reads);
    if (reads === last) return reads;
    last = reads;
  }
}

test("on tables that the planner knows nothing of, a task is made, found, claimed and settled without reading the caller's others", async () => {
  const schema = newSchema();
  const store = new PostgresStore(urlOf(await serverPort(), schema), systemClock, silentLog);
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
    for (const table of ["tasks", "inputs", "outcomes", "steps"])
      await (await admin()).query(`alter table "${schema}".${table} set (autovacuum_enabled = off)`);
    for (let n = 0; n < many; n++) await work();
    const before = await readsOf(schema);
    for (let n = 0; n < 50; n++) await work();
    const reads = ((await readsOf(schema)) - before) / 50;
    // Of each row that changed there are dead ones, and entries of them, until somebody cleans up.
    expect(reads).toBeLessThan(many / 2);
    const listed = await store.list({ caller: "ada" }, { limit: 10, statuses: ["failed", "queued"] });
    expect(listed.tasks).toEqual([]);
  } finally {
    await store.close();
    await (await admin()).query(`drop schema "${schema}" cascade`);
  }
});
