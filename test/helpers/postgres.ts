import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { afterAll, afterEach } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { waitFor } from "./meanwhile.ts";

/** The password of every test's server: it must turn up nowhere. */
export const testPassword = "secret-of-the-test";

/** One server for a whole run of tests: the first one that needs it starts it, and it ends with the run. */
export async function serverPort(): Promise<number> {
  // Every file is run by a child of the process that is the run.
  const server = await startServer(path.join(tmpdir(), `meanwhile-postgres-${process.ppid}`), process.ppid);
  return server.port;
}

export interface TestServer {
  readonly port: number;
  /** Of the process that keeps it: ends it on SIGTERM, and restarts it as after a crash on SIGUSR2. */
  readonly pid: number;
}

/** A server that ends with the process that owns it, at the latest; `settings` are PostgreSQL's own, `name=value`. */
export async function startServer(
  folder: string,
  owner: number,
  settings: readonly string[] = [],
): Promise<TestServer> {
  if (begin(folder)) {
    const keeper = path.join(import.meta.dirname, "postgres-keeper.mjs");
    const words = [keeper, folder, String(owner), ...settings];
    spawn(process.execPath, words, { detached: true, stdio: "ignore" }).unref();
  }
  const [ready, failed] = [path.join(folder, "ready"), path.join(folder, "failed")];
  await waitFor(
    () => existsSync(ready) || existsSync(failed),
    () => "PostgreSQL did not start",
  );
  if (existsSync(failed)) throw new Error(`PostgreSQL could not be started: ${readFileSync(failed, "utf8")}`);
  return JSON.parse(readFileSync(ready, "utf8")) as TestServer;
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
      await (await admin()).query(
        ["tasks", "workers", "durations", "shared_secret", "used_marks", "sessions", "nodes", "letters", "api_keys"]
          .map((table) => `delete from ${schema}.${table}`)
          .join("; "),
      );
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

/** What is said at once, without asking the database what time it is. */
const immediate = [
  ...["mayHaveLive", "keepLeases", "onChange", "onWork", "watchClosely", "close"],
  ...["onLetter", "catchUp"],
];

/** The same store, whose database is told the fake's time before every verb that it is asked for. */
function withFakeTime(store: Store, clock: FakeClock, write: (ms: number) => Promise<void>): Store {
  let written: number | undefined;
  let writing: Promise<void> | undefined;
  const tellTime = async () => {
    if (written !== clock.now()) {
      written = clock.now();
      writing = write(written);
    }
    await writing;
  };
  const timed = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(_, name) {
        if (name === "now") return () => clock.now();
        // Whoever waits for a store asks it for `then`.
        const part = (target as Record<PropertyKey, unknown>)[name];
        if (typeof part !== "function") return typeof part === "object" && part !== null ? timed(part) : part;
        if (immediate.includes(String(name))) return part.bind(target);
        return async (...given: unknown[]) => {
          await tellTime();
          return (await part.apply(target, given)) as unknown;
        };
      },
    });
  return timed(store);
}
