import type { ClientBase } from "pg";
import { thisProgram } from "../../program/program.ts";
import { pendingMigrations } from "../migrate.ts";
import { copyingTable, unfinishedCopy } from "../unfinished.ts";
import { tasks } from "./migrations/001-first-schema.ts";
import { sessions } from "./migrations/002-sessions.ts";
import { indexes } from "./migrations/003-indexes.ts";
import { manyAtOnce } from "./migrations/004-many-at-once.ts";
import { workers } from "./migrations/005-workers.ts";
import { limits } from "./migrations/006-limits.ts";
import { homes } from "./migrations/007-homes.ts";
import { apiKeys } from "./migrations/008-api-keys.ts";
import { unavailable } from "./trouble.ts";

const migrations = { statements: [tasks, sessions, indexes, manyAtOnce, workers, limits, homes, apiKeys] };
/** What this program brings every schema to. */
export const knownVersion = migrations.statements.length;
/** What is made of a large table takes its time, and so do others who do so already. */
const patiently = { query_timeout: 600_000 };
/** Ours, so nobody else's by accident. */
const versionTable = "meanwhile_schema";

const ourTables =
  "tasks inputs outcomes steps durations shared_secret used_marks sessions session_notes nodes letters workers taken_rows api_keys".split(
    " ",
  );

/** Whose schema, in which database. */
export interface SchemaPlace {
  readonly schema: string;
  readonly shown: string;
}

/** Brings a schema up to date; makes it when it is missing. Several nodes may do so at once. Not before it is filled. */
export async function migrate(client: ClientBase, place: SchemaPlace): Promise<void> {
  if ((await tablesOf(client, place)).includes(copyingTable)) throw unfinishedCopy(placeOf(place));
  await migrateForCopy(client, place);
}

/** The same for whoever fills it. */
export async function migrateForCopy(client: ClientBase, place: SchemaPlace): Promise<void> {
  let version = await readVersion(client, place);
  while (pending(version, place).length > 0) version = await migrateOnce(client, place);
}

/** For whoever may change nothing: refuses a schema that is not as this program wants it. */
export async function expectCurrent(client: ClientBase, place: SchemaPlace): Promise<void> {
  const version = await readVersion(client, place);
  if (pending(version, place).length > 0)
    throw unavailable(
      place.shown,
      `its schema ${place.schema} has version ${version}, and this program reads ${knownVersion}; \`${thisProgram.name} store migrate\` brings it up to date`,
    );
  if ((await tablesOf(client, place)).includes(copyingTable)) throw unfinishedCopy(placeOf(place));
}

/** One change, whole or not at all; the version from then on. */
async function migrateOnce(client: ClientBase, place: SchemaPlace): Promise<number> {
  await client.query("begin");
  try {
    const lock = "select pg_advisory_xact_lock(hashtextextended($1, 0))";
    await client.query({ ...patiently, text: lock, values: [`meanwhile migrate ${place.schema}`] });
    const version = await readVersion(client, place);
    const [next] = pending(version, place);
    if (next !== undefined) {
      if (version === 0) await begin(client, place);
      await client.query({ ...patiently, text: next.replaceAll("SCHEMA", `"${place.schema}"`) });
      await client.query(`update "${place.schema}".${versionTable} set version = ${version + 1}`);
    }
    await client.query("commit");
    return next === undefined ? version : version + 1;
  } catch (error) {
    // Where even this fails, the connection is gone, and with it all of the transaction.
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}

async function begin(client: ClientBase, { schema }: SchemaPlace): Promise<void> {
  const { rowCount } = await client.query("select 1 from pg_namespace where nspname = $1", [schema]);
  // Where it is there already its user need not be allowed to make one.
  if (rowCount === 0) await client.query(`create schema "${schema}"`);
  await client.query(`create table "${schema}".${versionTable} (version integer not null)`);
  await client.query(`insert into "${schema}".${versionTable} values (0)`);
}

/** Which version of our schema is there; 0 where there is none. Refuses what a newer program has written. */
export async function checkVersion(client: ClientBase, place: SchemaPlace): Promise<number> {
  const version = await readVersion(client, place);
  pending(version, place);
  return version;
}

async function readVersion(client: ClientBase, place: SchemaPlace): Promise<number> {
  const names = await tablesOf(client, place);
  if (!names.includes(versionTable)) return refuseForeign(names, place);
  const found = await client.query<{ version: number }>(`select version from "${place.schema}".${versionTable}`);
  return found.rows[0]?.version ?? 0;
}

/** The names of what is there. */
export async function tablesOf(client: ClientBase, { schema }: SchemaPlace): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    "select relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace where nspname = $1",
    [schema],
  );
  return rows.map(({ name }) => name);
}

/** Another program's tables must not be taken for ours. */
function refuseForeign(names: readonly string[], { schema, shown }: SchemaPlace): 0 {
  const inTheWay = ourTables.find((name) => names.includes(name));
  if (inTheWay === undefined) return 0;
  throw unavailable(
    shown,
    `its schema ${schema} has a table ${inTheWay} of another program, and nothing was changed; name another schema with ?schema= in the URL`,
  );
}

function pending(version: number, place: SchemaPlace): readonly string[] {
  return pendingMigrations(version, migrations, placeOf(place), "database");
}

function placeOf({ schema, shown }: SchemaPlace): string {
  return `The schema ${schema} of ${shown}`;
}
