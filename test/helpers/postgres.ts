import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { afterAll, afterEach } from "vitest";
import { type Clock, sleep, systemClock } from "../../src/clock.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";

/** The password of every test's server: it must turn up nowhere. */
export const testPassword = "secret-of-the-test";

/** One server for a whole run of tests: the first one that needs it starts it, and it ends with the run. */
export async function serverPort(): Promise<number> {
  // Every file is run by a child of the process that is the run.
  return await startServer(path.join(tmpdir(), `meanwhile-postgres-${process.ppid}`), process.ppid);
}

/** A server of one's own, which ends with this process at the latest. */
export async function startServer(folder: string, owner: number): Promise<number> {
  if (begin(folder)) {
    const keeper = path.join(import.meta.dirname, "postgres-keeper.mjs");
    const words = [keeper, folder, String(owner)];
    spawn(process.execPath, words, { detached: true, stdio: "ignore" }).unref();
  }
  for (let tries = 0; tries < 6_000; tries++) {
    const [ready, failed] = [path.join(folder, "ready"), path.join(folder, "failed")];
    if (existsSync(failed)) throw new Error(`PostgreSQL could not be started: ${readFileSync(failed, "utf8")}`);
    if (existsSync(ready)) return (JSON.parse(readFileSync(ready, "utf8")) as { port: number }).port;
    await sleep(systemClock, 10);
  }
  throw new Error("PostgreSQL did not start within a minute.");
}

/** True for the one who is to start it. */
function begin(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o755 });
    return true;
  } catch {
    return false;
  }
}

/** The URL of a schema that nobody else uses; without a name, a new one. */
export function urlOf(port: number, schema = newSchema()): string {
  return `postgres://postgres:${testPassword}@127.0.0.1:${port}/postgres?schema=${schema}&pool=4`;
}

export function newSchema(): string {
  return `t_${randomBytes(8).toString("hex")}`;
}

/** Connections for what tests do behind a store's back; closed after the file. */
export function adminOf(port: () => Promise<number>): () => Promise<pg.Client> {
  let opened: Promise<pg.Client> | undefined;
  afterAll(async () => {
    await (await opened)?.end();
    opened = undefined;
  });
  return () =>
    (opened ??= port().then(async (at) => {
      const client = new pg.Client({ connectionString: urlOf(at, "public").replace(/\?.*/, "") });
      client.on("error", () => undefined);
      await client.connect();
      return client;
    }));
}

/**
 * Opens stores on PostgreSQL whose time is a fake clock's, by a function of the schema that reads it from a table. To
 * make a schema takes longer than most tests, so that one is emptied after a test and used by the next.
 */
export function postgresStores(): (options: { clock: Clock; place?: string }) => Promise<Store> {
  const admin = adminOf(serverPort);
  const idle: string[] = [];
  const used = new Map<string, string>();
  afterEach(async () => {
    for (const schema of used.values()) {
      await (await admin()).query(`delete from ${schema}.tasks; delete from ${schema}.durations`);
      idle.push(schema);
    }
    used.clear();
  });
  return async ({ clock, place = `own ${used.size}` }) => {
    if (!(clock instanceof FakeClock)) return await openStore(urlOf(await serverPort()));
    const schema = used.get(place) ?? idle.pop() ?? newSchema();
    used.set(place, schema);
    const store = await openStore(urlOf(await serverPort(), schema));
    const client = await admin();
    await client.query(`
      create table if not exists ${schema}.test_time (ms bigint not null);
      insert into ${schema}.test_time select 0 where not exists (select 1 from ${schema}.test_time);
      create or replace function ${schema}.now_ms() returns bigint language sql stable as 'select ms from ${schema}.test_time'`);
    return withFakeTime(store, clock, async (ms) => {
      await client.query(`update ${schema}.test_time set ms = ${ms}`);
    });
  };
}

/** What a store says at once, without asking the database what time it is. */
const immediate = ["mayHaveLive", "keepLeases", "onChange", "onWork", "watchClosely", "close"];

function withFakeTime(store: Store, clock: FakeClock, write: (ms: number) => Promise<void>): Store {
  let written: number | undefined;
  return new Proxy(store, {
    get(target, name: keyof Store) {
      if (name === "now") return () => clock.now();
      const verb = target[name] as ((...given: unknown[]) => unknown) | undefined;
      // Whoever waits for a store asks it for `then`.
      if (verb === undefined) return undefined;
      if (immediate.includes(name)) return verb.bind(target);
      return async (...given: unknown[]) => {
        if (written !== clock.now()) {
          written = clock.now();
          await write(written);
        }
        return await verb.apply(target, given);
      };
    },
  });
}
