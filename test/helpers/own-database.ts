import pg from "pg";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { loadDriver } from "../../src/store/postgres/driver.ts";
import { PostgresStore } from "../../src/store/postgres/postgres-store.ts";
import { waitFor } from "./meanwhile.ts";
import { type adminOf, newSchema, serverPort, urlOf } from "./postgres.ts";

// In the product the store that is opened loads it.
await loadDriver();

/** A store in a database of its own, of which the planner knows nothing. */
export interface OwnDatabase {
  readonly url: string;
  /** How many rows and entries of indexes each of so many acts reads, on a store that was opened for it. */
  readsOf(count: number, act: (store: PostgresStore) => Promise<unknown>): Promise<number>;
}

/** What only a whole database counts is counted in one of its own. */
export async function onOwnDatabase(
  admin: ReturnType<typeof adminOf>,
  act: (own: OwnDatabase) => Promise<void>,
): Promise<void> {
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

export async function withStore(url: string, act: (store: PostgresStore) => Promise<void>): Promise<void> {
  const store = new PostgresStore(url, systemClock, silentLog);
  try {
    await store.open();
    await act(store);
  } finally {
    await store.close();
  }
}

export async function withClient<T>(url: string, act: (client: pg.Client) => Promise<T>): Promise<T> {
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
