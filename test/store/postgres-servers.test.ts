import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { describe, expect, test, vi } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { openLog, silentLog } from "../../src/log.ts";
import { connectionsBesidePool } from "../../src/queue/node-connections.ts";
import { openDispatcher } from "../../src/queue/open-dispatcher.ts";
import { openNodeStore } from "../../src/runtime/open-node-store.ts";
import { openStore } from "../../src/store/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { Bench, leaseMs } from "../../src/testing/store-cases/bench.ts";
import { cleanUp, shareAmongTests } from "../helpers/home.ts";
import { adminOf, newSchema, startServer, urlOf } from "../helpers/postgres.ts";
import { inTime, openAt, unusable } from "../helpers/postgres-bench.ts";

/** A server with few connections, that speaks TLS. */
const maxConnections = 24;
const reserved = 3;
const own = shareAmongTests(async () => {
  // Where another user gets to: it does not run as root.
  const folder = path.join(tmpdir(), `meanwhile-${newSchema()}`);
  const settings = ["ssl=on", "wal_level=replica", `max_connections=${maxConnections}`];
  const server = await startServer(folder, process.pid, settings);
  cleanUp(() => process.kill(server.pid, "SIGTERM"));
  return { ...server, data: path.join(folder, "data") };
});
const ownPort = async () => (await own()).port;
const admin = adminOf(ownPort);

/** How many connections there are, the test's own not counted, and how many of them are encrypted. */
async function connections(): Promise<{ all: number; encrypted: number }> {
  const { rows } = await (await admin()).query<{ all: number; encrypted: number }>(`
    select count(*)::int as all, (count(*) filter (where ssl))::int as encrypted
    from pg_stat_activity join pg_stat_ssl using (pid) where backend_type = 'client backend' and pid <> pg_backend_pid()`);
  return rows[0] as { all: number; encrypted: number };
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: urlOf(await ownPort(), "public").replace(/\?.*/, "") });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Takes connections until so many are left for users who are nobody special; what is returned gives them back. */
async function leave(left: number): Promise<() => Promise<void>> {
  const taken: pg.Client[] = [];
  const giveBack = async () => void (await Promise.all(taken.splice(0).map((client) => client.end())));
  cleanUp(giveBack);
  await vi.waitFor(async () => expect((await connections()).all).toBe(0), { timeout: 30_000 });
  // The test has one.
  while (taken.length < maxConnections - reserved - 1 - left) taken.push(await connect());
  return giveBack;
}

describe("connections", () => {
  test.each([
    [true, 11],
    [false, 7],
  ])(
    "a node (works: %s) opens as many as it counts, all of them encrypted where it is told to",
    async (worksHere, needed) => {
      await leave(maxConnections);
      const store = `${urlOf(await ownPort())}&sslmode=require`;
      const bench = await openAt(store);
      const terms = { queue: store, project: "counted", clock: systemClock, log: silentLog };
      const dispatcher = await openDispatcher(bench.store as never, terms);
      cleanUp(() => dispatcher.close());
      if (worksHere) {
        cleanUp(bench.store.keepLeases("w1", leaseMs, 20));
        cleanUp(dispatcher.onWork(() => undefined));
      }
      let ticket = 0;
      await vi.waitFor(
        async () => {
          for (let n = 0; n < 4; n++) dispatcher.offer(`t${ticket++}-0`, n);
          await Promise.all(Array.from({ length: 20 }, () => bench.store.list(bench.scope(), { limit: 1 })));
          expect(await connections()).toEqual({ all: needed, encrypted: needed });
        },
        { timeout: 30_000 },
      );
      expect(4 + (await connectionsBesidePool({ store, queue: undefined, worksHere }))).toBe(needed);
    },
  );

  test("a node that may need more than are left says so, and one that may need as many does not", async () => {
    const open = async (parts: { queue?: string; worksHere?: boolean }) => {
      const lines: string[] = [];
      const log = openLog({ level: "warn", isTerminal: false, write: (line) => lines.push(line) });
      const store = await openNodeStore({ store: urlOf(await ownPort()), queue: undefined, ...parts }, { log });
      await store.close();
      await vi.waitFor(async () => expect((await connections()).all).toBe(taken), { timeout: 30_000 });
      return lines.join("");
    };
    let giveBack = await leave(11);
    let taken = (await connections()).all;
    expect(await open({})).toBe("");
    await giveBack();
    giveBack = await leave(10);
    taken = (await connections()).all;
    expect(await open({})).toMatch(
      /has 10 connections left, and this node may need 11: raise max_connections there, or lower `pool` in the URL/,
    );
    for (const parts of [{ worksHere: false }, { queue: "store" }, { queue: "redis://127.0.0.1/" }])
      expect(await open(parts), JSON.stringify(parts)).toBe("");
  });

  test("of many nodes at once those that find none are told so in one sentence, nothing is lost, and they get in later", async () => {
    await leave(maxConnections);
    const url = urlOf(await ownPort());
    const ended = await Promise.allSettled(Array.from({ length: 60 }, () => openStore(url)));
    const stores = ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const refused = ended.flatMap((one) => (one.status === "rejected" ? [one.reason as Error] : []));
    expect(refused.length).toBeGreaterThan(60 - maxConnections);
    for (const error of refused)
      expect(error).toMatchObject(
        unusable("the server has no connection left; raise its max_connections, or lower `pool` in the URL\\.$"),
      );
    const names = stores.map((_, n) => `t${n}`);
    await Promise.all(stores.map((store, n) => new Bench(store, new FakeClock()).make({ taskId: names[n] as string })));
    await Promise.all(stores.map((store) => store.close()));
    const later = await openAt(url);
    const { tasks } = await later.store.list(later.scope(), { limit: 99 });
    expect(tasks.map(({ taskId }) => taskId).toSorted()).toEqual(names.toSorted());
  });

  test("a call that finds none waits for one; after a while it is told so, and is not done later", async () => {
    const giveBack = await leave(-reserved);
    const clock = new FakeClock();
    const bench = new Bench(await openStore(urlOf(await ownPort()), { clock, isPatient: true }), clock);
    cleanUp(() => inTime(bench, bench.store.close()));
    await expect(inTime(bench, bench.create({ taskId: "told" }))).rejects.toMatchObject(
      unusable("the server has no connection left"),
    );
    const waiting = bench.create({ taskId: "waits" });
    await expect(connect()).rejects.toMatchObject({ code: "53300" });
    await giveBack();
    expect((await inTime(bench, waiting)).kind).toBe("created");
    const { tasks } = await bench.store.list(bench.scope(), { limit: 9 });
    expect(tasks.map(({ taskId }) => taskId)).toEqual(["waits"]);
  });
});
