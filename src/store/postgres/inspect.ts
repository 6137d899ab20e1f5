import type { Pool, PoolClient } from "pg";
import type { Logger } from "../../log.ts";
import type { PostgresAddress } from "./address.ts";
import { unavailable } from "./trouble.ts";

/** Older ones are no longer maintained, and lack what the statements use. */
const oldestVersion = 14;

interface ServerFacts {
  readonly version: number;
  readonly encoding: string;
  readonly is_standby: boolean;
  readonly is_read_only: boolean;
  readonly free: number;
}

/** Refuses a server that tasks cannot be kept on, before anything is changed; in one sentence each. */
export async function inspectServer(
  pool: Pool,
  client: PoolClient,
  { shown, needed }: PostgresAddress,
  log: Logger,
): Promise<void> {
  const facts = await readFacts(client);
  if (facts.version < oldestVersion)
    throw unavailable(shown, `its server is PostgreSQL ${facts.version}; ${oldestVersion} or newer is needed`);
  if (facts.is_standby)
    throw unavailable(shown, "its server is a replica that may only be read; point the URL at the primary server");
  if (facts.is_read_only)
    throw unavailable(shown, "its transactions may only read; switch default_transaction_read_only off");
  if (facts.encoding !== "UTF8")
    throw unavailable(shown, `it is encoded as ${facts.encoding}; create one with encoding UTF8`);
  await refusePooler(pool, client, shown);
  // The one that was asked is there already.
  const left = facts.free + 1;
  if (left < needed)
    log.warn(
      `The task database ${shown} has ${left} connections left, and this node may need ${needed}: raise max_connections there, or lower \`pool\` in the URL.`,
    );
}

async function readFacts(client: PoolClient): Promise<ServerFacts> {
  const { rows } = await client.query<ServerFacts>(`
    select current_setting('server_version_num')::int / 10000 as version,
           current_setting('server_encoding') as encoding,
           pg_is_in_recovery() as is_standby,
           current_setting('transaction_read_only') = 'on' as is_read_only,
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
             - (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as free`);
  return rows[0] as ServerFacts;
}

/**
 * A pooler that hands out a server's connection for one transaction only would lose what is listened to and prepared.
 * Behind one, two connections meet on one backend as soon as they take turns.
 */
async function refusePooler(pool: Pool, client: PoolClient, shown: string): Promise<void> {
  const other = await pool.connect();
  try {
    const first = await backendOf(client);
    await other.query("begin");
    const second = await backendOf(other);
    const third = await backendOf(client);
    await other.query("commit");
    if (first === second || first !== third)
      throw unavailable(
        shown,
        "a pooler such as pgbouncer stands before it in transaction mode; connect to PostgreSQL itself, or switch the pooler to session mode",
      );
  } finally {
    other.release();
  }
}

async function backendOf(client: PoolClient): Promise<number> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid ?? 0;
}
