import type pg from "pg";
import type { Clock } from "../../clock.ts";
import { silentLog } from "../../log.ts";
import { type EarlierRows, earlierStatements, sumOf } from "../earlier-rows.ts";
import {
  checkStatements,
  problemOfCopy,
  problemOfSchema,
  problemsOf,
  type StoreFacts,
  type Strays,
  type TaskCounts,
} from "../store-facts.ts";
import { copyingTable } from "../unfinished.ts";
import { type PostgresAddress, parseAddress } from "./address.ts";
import { connectionTerms } from "./connection-terms.ts";
import { driver } from "./driver.ts";
import { inspectServer } from "./inspect.ts";
import { checkVersion, expectCurrent, knownVersion, migrate, tablesOf } from "./migrate-schema.ts";
import { toTrouble } from "./trouble.ts";

/** To look through all rows, or to change them, takes as long as there are many. */
const answerMs = 600_000;
/** The first schema that has what `local` may have left. */
const firstWithSessions = 2;

interface ServerLook {
  readonly version: string;
  readonly used: number;
  readonly allowed: number;
  readonly bytes: number;
}

/** Looks through a schema, and changes nothing of it. Throws where it cannot be opened. */
export async function checkDatabase(url: string, clock: Clock, besidePool?: number): Promise<StoreFacts> {
  return await withClient(parseAddress(url, besidePool), async (client, address) => {
    await client.query("begin transaction read only");
    const schema = { version: await checkVersion(client, address), known: knownVersion };
    const { version, bytes, used, allowed } = await lookAtServer(client, address);
    const connections = { used, allowed, nodeNeeds: address.needed };
    const tables = `"${address.schema}".`;
    const statements = checkStatements(tables);
    const isOurs = schema.version > 0;
    const tasks = isOurs ? await first<TaskCounts>(client, statements.counts) : undefined;
    const isCopying = (await tablesOf(client, address)).includes(copyingTable);
    const mark = isCopying
      ? await first<{ source: string }>(client, `select source from ${tables}${copyingTable}`)
      : undefined;
    const clockAheadMs = await measure(client, clock);
    const strays =
      schema.version === schema.known ? problemsOf((await first<Strays>(client, statements.strays)) as Strays) : [];
    return {
      kind: "PostgreSQL",
      place: `${address.shown}, schema ${address.schema}`,
      version,
      schema,
      tasks,
      earlier:
        schema.version < firstWithSessions ? sumOf([]) : sumOf(await readEarlier(client, earlierIn(address).count)),
      bytes,
      connections,
      clockAheadMs,
      problems: [
        ...problemOfSchema(schema),
        ...problemOfCopy(mark?.source),
        ...strays,
        ...problemOfConnections(connections),
      ],
    };
  });
}

/** What there is of `local`, by project. */
export async function countEarlierRows(url: string): Promise<readonly EarlierRows[]> {
  return await withClient(parseAddress(url), async (client, address) => {
    if ((await checkVersion(client, address)) < firstWithSessions) return [];
    return await readEarlier(client, earlierIn(address).count);
  });
}

/** Gives the rows of `local` to this caller; how many, by project. */
export async function takeEarlierRows(url: string, key: string): Promise<readonly EarlierRows[]> {
  return await changeEarlier(url, key, ({ count, take }) => ({ count, values: [], change: take }));
}

/** Gives back what this caller took; how many rows, by project. */
export async function giveBackRows(url: string, key: string): Promise<readonly EarlierRows[]> {
  return await changeEarlier(url, key, ({ countTaken, giveBack }) => ({
    count: countTaken,
    values: [key],
    change: giveBack,
  }));
}

async function changeEarlier(
  url: string,
  key: string,
  toPlan: (statements: ReturnType<typeof earlierStatements>) => {
    readonly count: string;
    readonly values: readonly string[];
    readonly change: readonly string[];
  },
): Promise<readonly EarlierRows[]> {
  return await withClient(parseAddress(url), async (client, address) => {
    await expectCurrent(client, address);
    const { count, values, change } = toPlan(earlierIn(address));
    await client.query("begin");
    // Two homes that take the same rows do so one after the other.
    await client.query(`lock table "${address.schema}".taken_rows in exclusive mode`);
    const rows = await readEarlier(client, count, values);
    for (const text of change) await client.query(text, text.includes("$1") ? [key] : []);
    await client.query("commit");
    return rows;
  });
}

const earlierIn = ({ schema }: PostgresAddress) => earlierStatements(`"${schema}".`, "$1::text");

async function readEarlier(
  client: pg.PoolClient,
  text: string,
  values: readonly string[] = [],
): Promise<readonly EarlierRows[]> {
  const { rows } = await client.query<Record<keyof EarlierRows, string>>(text, [...values]);
  return rows.map(({ project, tasks, sessions }) => ({ project, tasks: Number(tasks), sessions: Number(sessions) }));
}

/** Brings a schema up to date, and makes it when it is missing: from which version to which. */
export async function migrateDatabase(url: string): Promise<{ readonly from: number; readonly to: number }> {
  return await withClient(parseAddress(url), async (client, address) => {
    const from = await checkVersion(client, address);
    await migrate(client, address);
    return { from, to: knownVersion };
  });
}

async function withClient<T>(
  address: PostgresAddress,
  act: (client: pg.PoolClient, address: PostgresAddress) => Promise<T>,
): Promise<T> {
  const { Pool } = driver();
  const pool = new Pool({ ...connectionTerms(address.access), max: 2, query_timeout: answerMs });
  pool.on("error", () => undefined);
  try {
    const client = await pool.connect();
    try {
      await inspectServer(pool, client, address, silentLog);
      return await act(client, address);
    } finally {
      client.release(true);
    }
  } catch (error) {
    throw toTrouble(error, address.shown);
  } finally {
    await pool.end();
  }
}

async function first<Row extends object>(
  client: pg.PoolClient,
  text: string,
  values: unknown[] = [],
): Promise<Row | undefined> {
  return (await client.query<Row>(text, values)).rows[0];
}

async function lookAtServer(client: pg.PoolClient, { schema }: PostgresAddress): Promise<ServerLook> {
  const text = `
    select current_setting('server_version') as version,
           (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
           current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint as allowed,
           (select coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint from pg_class
            join pg_namespace on pg_namespace.oid = relnamespace where nspname = $1 and relkind = 'r') as bytes`;
  return (await first<ServerLook>(client, text, [schema])) as ServerLook;
}

/** What the server said was so in the middle between asking and hearing. */
async function measure(client: pg.PoolClient, clock: Clock): Promise<number> {
  const askedAt = clock.now();
  const there = await first<{ ms: number }>(
    client,
    "select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms",
  );
  return Math.round((there?.ms ?? askedAt) - (askedAt + clock.now()) / 2);
}

/** Those of this look count as used, and are given back. */
function problemOfConnections({ used, allowed, nodeNeeds }: NonNullable<StoreFacts["connections"]>): string[] {
  const left = allowed - used + 2;
  if (left >= nodeNeeds) return [];
  return [
    `${left} connections are left, and a node may need ${nodeNeeds}: raise max_connections on the server, or lower \`pool\` in the URL.`,
  ];
}
